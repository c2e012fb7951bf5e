//! Values of arguments: variables, mounts, pairs, permission bits, names of protections.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::path::{Path, PathBuf};

use clap::ValueEnum;
use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use eyot::internal::system_reason;
use eyot::{IdleAction, Limits, Mount, NetworkMode, PullPolicy, Requirement, SandboxPath};

use eyot_providers::registry::{default_row, find, in_words, names, rows};
use eyot_providers::row::ProviderRow;

use crate::errors::Failure;
use crate::sizes::{parse_mib, shown_mib};

/// A network that a sandbox may have.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum NetworkArg {
    /// Only its own loopback
    None,
    /// Public addresses, through a proxy
    Egress,
    /// Everything that the Engine's network reaches
    Bridge,
    /// Everything that the host reaches
    Host,
}

/// Returns the parser of a provider's name. It offers the names of the table to completions.
pub fn provider_parser() -> impl TypedValueParser<Value = &'static ProviderRow> {
    PossibleValuesParser::new(rows().iter().map(|row| PossibleValue::new(row.name).help(row.summary)))
        .try_map(|name| find(&name))
}

/// Returns the help of the option that names the provider.
pub fn provider_help() -> String {
    let (names, default) = (in_words(&names()), default_row().name);
    format!("The provider of sandboxes: {names} [default: {default}] [env: EYOT_PROVIDER]")
}

impl From<NetworkArg> for NetworkMode {
    fn from(network: NetworkArg) -> Self {
        match network {
            NetworkArg::None => Self::None,
            NetworkArg::Egress => Self::Egress,
            NetworkArg::Bridge => Self::Bridge,
            NetworkArg::Host => Self::Host,
        }
    }
}

/// Parses a limit of memory, into MiB.
pub fn parse_memory(text: &str) -> Result<u64, String> {
    match parse_mib(text)? {
        mib if mib < Limits::MIN_MEMORY_MIB => {
            Err(format!("`{text}` is too little for a sandbox; the least is {}m", Limits::MIN_MEMORY_MIB))
        }
        mib if mib > MAX_MIB => Err(format!("`{text}` is too much; the most is {}", shown_mib(MAX_MIB))),
        mib => Ok(mib),
    }
}

/// Parses a limit of disk space, into MiB.
pub fn parse_disk(text: &str) -> Result<u64, String> {
    match parse_mib(text)? {
        0..MIN_DISK_MIB => {
            Err(format!("`{text}` is too little for a file system; the least is {MIN_DISK_MIB}m"))
        }
        mib if mib > MAX_MIB => Err(format!("`{text}` is too much; the most is {}", shown_mib(MAX_MIB))),
        mib => Ok(mib),
    }
}

/// The most memory or disk space, in MiB: 8 TiB.
const MAX_MIB: u64 = 8 << 20;

/// The least limit of disk space, in MiB: a file system of its own needs so much.
const MIN_DISK_MIB: u64 = 8;

/// Parses a limit of processors.
pub fn parse_cpus(text: &str) -> Result<f64, String> {
    let number = text.parse().ok().filter(|number| (0.01..=4096.0).contains(number));
    number.ok_or_else(|| {
        format!("`{text}` is not a number of processors from 0.01 to 4096; write 0.5, 1.5 or 2")
    })
}

/// Parses a limit of processes.
pub fn parse_pids(text: &str) -> Result<u64, String> {
    let number = text.parse().ok().filter(|number| (Limits::MIN_PIDS..=Limits::MAX_PIDS).contains(number));
    number.ok_or_else(|| {
        format!(
            "`{text}` is not a number of processes; the least is {}, the most {}, so write 64 or 512",
            Limits::MIN_PIDS,
            Limits::MAX_PIDS
        )
    })
}

/// Parses when to fetch an image: `missing`, `always` or `never`.
pub fn parse_pull(text: &str) -> Result<PullPolicy, String> {
    match text {
        "missing" => Ok(PullPolicy::Missing),
        "always" => Ok(PullPolicy::Always),
        "never" => Ok(PullPolicy::Never),
        _ => Err("use missing, always or never".to_owned()),
    }
}

/// Parses `NAME:IP`, as `docker run` does.
pub fn parse_extra_host(text: &str) -> Result<(String, IpAddr), String> {
    let (name, address) = text.split_once(':').ok_or("is not NAME:IP")?;
    let address = address.parse().map_err(|_| format!("`{address}` is not an IP address"))?;
    Ok((name.to_owned(), address))
}

/// The argument that names a variable.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum EnvArg {
    /// `K=V`
    Set(String, String),
    /// `K`: the variable with the value that it has here.
    Inherit(String),
}

/// Parses `K=V` or `K`.
pub fn parse_env(text: &str) -> Result<EnvArg, String> {
    match text.split_once('=') {
        Some(("", _)) => Err("has no name before the `=`".to_owned()),
        None if text.is_empty() => Err("must not be empty".to_owned()),
        Some((name, _)) if name.starts_with("export ") => {
            Err("must be NAME=VALUE: leave `export` out".to_owned())
        }
        Some((name, _)) if name.contains(char::is_whitespace) => {
            Err(format!("`{name}` is no name: it has spaces"))
        }
        Some((name, value)) => Ok(EnvArg::Set(name.to_owned(), value.to_owned())),
        None if text.contains(char::is_whitespace) => Err(format!("`{text}` has no value; write NAME=VALUE")),
        None => Ok(EnvArg::Inherit(text.to_owned())),
    }
}

/// Returns the variables with their values. `lookup` returns the host's.
pub fn resolve_env(
    variables: &[EnvArg],
    lookup: impl Fn(&str) -> Option<String>,
) -> Result<BTreeMap<String, String>, Failure> {
    let mut env = BTreeMap::new();
    for variable in variables {
        let (name, value) = match variable {
            EnvArg::Set(name, value) => (name, value.clone()),
            EnvArg::Inherit(name) => (name, inherited(name, &lookup)?),
        };
        env.insert(name.clone(), value);
    }
    Ok(env)
}

fn inherited(name: &str, lookup: impl Fn(&str) -> Option<String>) -> Result<String, Failure> {
    lookup(name).ok_or_else(|| {
        Failure::usage(format!("the variable `{name}` has no value here that could be passed on"))
            .hint(format!("write {name}=VALUE, or export it first"))
    })
}

/// Parses a file of variables: `K=V` or `K` a line, taken literally. Empty lines and those that
/// begin with `#` are skipped.
pub fn parse_env_file(text: &str) -> Result<Vec<EnvArg>, String> {
    let lines = text.lines().enumerate().filter(|(_, line)| {
        let line = line.trim_start();
        !line.is_empty() && !line.starts_with('#')
    });
    lines
        .map(|(index, line)| parse_env(line).map_err(|error| format!("line {}: {error}", index + 1)))
        .collect()
}

/// Parses `SRC:DST`, `SRC:DST:ro`, `SRC:DST:rw` or `SRC:DST:cow`. The source may be relative. It may have colons;
/// the target may not.
pub fn parse_mount(text: &str) -> Result<Mount, String> {
    let (rest, writable, cow) = match text.rsplit_once(':') {
        Some((rest, "rw")) => (rest, true, false),
        Some((rest, "cow")) => (rest, false, true),
        Some((rest, "ro")) => (rest, false, false),
        _ => (text, false, false),
    };
    let Some((source, target)) = rest.rsplit_once(':').filter(|(source, _)| !source.is_empty()) else {
        return Err(
            of_fields(text).unwrap_or_else(|| "must be SRC:DST, SRC:DST:rw or SRC:DST:cow".to_owned())
        );
    };
    if let Some(refusal) = unknown_access(text) {
        return Err(refusal);
    }
    let target = SandboxPath::parse(target).map_err(|error| error.to_string())?;
    Ok(Mount { source: absolute(Path::new(source))?, target, writable, cow })
}

/// Says how a mount is written that Docker writes as fields: `type=bind,src=SRC,dst=DST,readonly`.
fn of_fields(text: &str) -> Option<String> {
    let field = |names: &[&str]| {
        let mut fields = text.split(',').filter_map(|field| field.split_once('='));
        fields.find(|(name, _)| names.contains(name)).map(|(_, value)| value)
    };
    let source = field(&["source", "src"])?;
    let target = field(&["target", "destination", "dst"])?;
    Some(with_access(&format!("{source}:{target}")))
}

/// Parses `SRC:DST:ro`, `SRC:DST:rw` or `SRC:DST:cow`. Without the last part Docker means `rw` and `--mount` means
/// `ro`, a source without a slash is a volume's name to Docker, and its other options are not ours:
/// all are refused.
pub fn parse_volume(text: &str) -> Result<Mount, String> {
    let source = text.split(':').next().unwrap_or_default();
    if !source.contains('/') && !source.starts_with('.') {
        return Err(format!(
            "`{source}` is a volume's name to Docker; for a folder {}; or keep files by --workspace ID",
            with_access(&format!("./{}", without_access(text)))
        ));
    }
    if !text.contains(":/") {
        return Err(format!(
            "`{text}` names no place in the sandbox; write SRC:DST:ro, such as {source}:/data:ro"
        ));
    }
    match text.rsplit_once(':') {
        Some((_, "ro" | "rw" | "cow")) => parse_mount(text),
        _ => Err(unknown_access(text).unwrap_or_else(|| with_access(text))),
    }
}

/// Refuses what follows the target, if it is none of `ro`, `rw` and `cow`.
fn unknown_access(text: &str) -> Option<String> {
    let (rest, options) = text.rsplit_once(':')?;
    let is_known = matches!(options, "ro" | "rw" | "cow") || options.contains('/') || !rest.contains(":/");
    (!is_known).then(|| format!("`{options}` is not an option of a mount; {}", with_access(rest)))
}

/// Returns a volume without what follows the target.
fn without_access(volume: &str) -> &str {
    match volume.rsplit_once(':') {
        Some((rest, options)) if !options.contains('/') => rest,
        _ => volume,
    }
}

/// Says how a volume is written with what the sandbox may do.
fn with_access(volume: &str) -> String {
    format!(
        "write {volume}:ro, or {volume}:rw if the sandbox may change the folder, or {volume}:cow if it is to change a copy"
    )
}

/// Parses the port to publish. Docker's `HOST:PORT` is refused: the Engine chooses the host's port.
pub fn parse_publish(text: &str) -> Result<u16, String> {
    if let Some((_, inside)) = text.rsplit_once(':') {
        return Err(format!(
            "the host's port cannot be chosen: `eyot browse NAME {inside}` opens a port of any sandbox that \
             is there, and with --provider docker write {inside}"
        ));
    }
    parse_port(text)
}

/// Parses a port.
pub fn parse_port(text: &str) -> Result<u16, String> {
    let port = text.parse().ok().filter(|port| *port > 0);
    port.ok_or_else(|| format!("`{text}` is not a port; write a number from 1 to 65535, such as 8000"))
}

/// The most slots that may be asked for.
pub const MOST_SLOTS: usize = 64;

/// Parses a number of slots.
pub fn parse_slots(text: &str) -> Result<usize, String> {
    let slots = text.parse().ok().filter(|slots| *slots <= MOST_SLOTS);
    slots.ok_or_else(|| format!("`{text}` is not a number of slots; write one from 0 to {MOST_SLOTS}"))
}

fn absolute(path: &Path) -> Result<PathBuf, String> {
    // Folders that are named from here are meant as they are now, `..` and symbolic links included.
    path.canonicalize().map_err(|error| {
        // An agent's client, for one, starts eyot where it likes.
        let from = std::env::current_dir().ok().filter(|_| path.is_relative());
        let from = from.map_or_else(String::new, |folder| format!(", from `{}`", folder.display()));
        format!("the folder `{}` of this host{from}: {}", path.display(), system_reason(&error))
    })
}

/// Parses `K=V`.
pub fn parse_pair(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((key, value)) if !key.is_empty() => Ok((key.to_owned(), value.to_owned())),
        _ => Err("must be K=V, such as team=web".to_owned()),
    }
}

/// Parses an option of a provider, `KEY=VALUE`.
pub fn parse_provider_option(text: &str) -> Result<(String, String), String> {
    parse_pair(text).map_err(|_| "must be KEY=VALUE, such as image=debian:12".to_owned())
}

/// Parses `DST=SRC`: a path in the working directory, and a file of the host.
pub fn parse_file(text: &str) -> Result<(String, PathBuf), String> {
    match text.split_once('=') {
        Some((target, source)) if !target.is_empty() && !source.is_empty() => {
            Ok((target.to_owned(), PathBuf::from(source)))
        }
        _ => Err("must be DST=SRC, such as src/a.py=./a.py: the path in the sandbox, then the host's file"
            .to_owned()),
    }
}

/// Parses permission bits in octal, without setuid, setgid and sticky.
pub fn parse_mode(text: &str) -> Result<u32, String> {
    let mode = u32::from_str_radix(text.trim_start_matches("0o"), 8).ok().filter(|mode| *mode <= 0o777);
    mode.ok_or_else(|| format!("must be octal permission bits such as 644 or 755, not `{text}`"))
}

/// Parses a protection's name, such as `memory` or `identity-range`.
pub fn parse_requirement(text: &str) -> Result<Requirement, String> {
    let name = text.trim().replace('-', "_");
    serde_json::from_value(name.into()).map_err(|_| {
        let known = "memory, cpus, pids, disk, landlock, seccomp, identity_range, own_kernel";
        format!("must be one of {known}, not `{text}`")
    })
}

/// Parses the action for an idle sandbox: `destroy` or `sleep`.
pub fn parse_on_idle(text: &str) -> Result<IdleAction, String> {
    match text {
        "destroy" => Ok(IdleAction::Destroy),
        "sleep" => Ok(IdleAction::Sleep),
        _ => Err(format!("must be `destroy` or `sleep`, not `{text}`")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_variable_has_a_value_or_takes_the_one_it_has_here() {
        let env = ["A=1", "B=x=y", "C=", "HOME"].map(|text| parse_env(text).unwrap());
        let resolved = resolve_env(&env, |name| (name == "HOME").then(|| "/h".to_owned())).unwrap();
        let pairs: Vec<(&str, &str)> = resolved.iter().map(|(k, v)| (k.as_str(), v.as_str())).collect();
        assert_eq!(pairs, [("A", "1"), ("B", "x=y"), ("C", ""), ("HOME", "/h")]);
        assert!(parse_env("=x").is_err() && parse_env("").is_err());
    }

    #[test]
    fn a_variable_that_has_no_value_here_is_refused() {
        let Err(Failure::Error { error, exit_code }) =
            resolve_env(&[EnvArg::Inherit("NOPE".to_owned())], |_| None)
        else {
            panic!("refused")
        };
        assert_eq!(exit_code, crate::errors::USAGE);
        assert!(error.to_string().contains("`NOPE`"));
    }

    #[test]
    fn an_env_file_is_taken_literally_and_names_the_line_that_is_wrong() {
        let parsed = parse_env_file("# c\n\nA=1\nB=\"q\" # kept\nPATH\n").unwrap();
        assert_eq!(
            parsed,
            [
                EnvArg::Set("A".to_owned(), "1".to_owned()),
                EnvArg::Set("B".to_owned(), "\"q\" # kept".to_owned()),
                EnvArg::Inherit("PATH".to_owned()),
            ]
        );
        for wrong in ["A=1\n=2", "A=1\nno name"] {
            assert!(parse_env_file(wrong).unwrap_err().starts_with("line 2"), "{wrong}");
        }
    }

    #[test]
    fn a_mount_is_read_only_unless_it_says_rw() {
        let read_only = parse_mount("/:/src").unwrap();
        assert_eq!((read_only.target.as_str(), read_only.writable), ("/src", false));
        assert!(parse_mount("/:/src:rw").unwrap().writable);
        assert!(!parse_mount("/:/src:ro").unwrap().writable);
        let copied = parse_mount("/:/src:cow").unwrap();
        assert!(copied.cow && !copied.writable && parse_volume("/:/src:cow").unwrap() == copied);
        assert!(parse_mount(".:/src").unwrap().source.is_absolute());
        for wrong in ["/a", "/:relative", ":/x", "/does-not-exist-anywhere:/x", ""] {
            assert!(parse_mount(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_volume_says_whether_it_may_be_written_to() {
        assert!(parse_volume("/:/src:rw").unwrap().writable && !parse_volume("/:/src:ro").unwrap().writable);
        assert!(parse_volume("/:/src").unwrap_err().contains("write /:/src:ro"));
        for volume in ["data:/data:rw", "data:/data"] {
            assert!(parse_volume(volume).unwrap_err().contains("./data"), "{volume}");
        }
        for volume in ["/:/src:z", "/:/src:rw,z", "/:/src:cached"] {
            assert!(parse_volume(volume).unwrap_err().contains("write /:/src:ro, or /:/src:rw "), "{volume}");
        }
    }

    #[test]
    fn a_published_port_has_no_port_of_the_host() {
        assert_eq!(parse_publish("80"), Ok(80));
        assert!(parse_publish("8080:80").unwrap_err().contains("write 80"));
    }

    #[test]
    fn permission_bits_are_octal_without_setuid() {
        assert_eq!((parse_mode("644"), parse_mode("0755")), (Ok(0o644), Ok(0o755)));
        assert!(parse_mode("4755").is_err() && parse_mode("rwx").is_err() && parse_mode("9").is_err());
    }

    #[test]
    fn a_protection_is_named_with_either_dash() {
        assert_eq!(parse_requirement("identity-range"), Ok(Requirement::IdentityRange));
        assert_eq!(parse_requirement("own_kernel"), Ok(Requirement::OwnKernel));
        assert!(parse_requirement("luck").unwrap_err().contains("seccomp"));
    }
}
