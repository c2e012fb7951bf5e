//! The spec of a new sandbox, as flags. Flags win over `--spec`, which wins over `EYOT_*` and the
//! configuration files.

use std::fs;
use std::net::IpAddr;
use std::path::{Path, PathBuf};

use clap::Args;
use eyot::{
    ContainerSpec, EgressRule, IdleAction, Mount, PullPolicy, Requirement, Sandbox, SandboxId, SandboxName,
    SandboxPath, SandboxSpec, WorkspaceSpec,
};
use eyot_engine::{NameInPool, shown_name};

use super::environment::environment;
use super::values::{
    EnvArg, NetworkArg, parse_cpus, parse_disk, parse_env, parse_extra_host, parse_file, parse_memory,
    parse_mount, parse_on_idle, parse_pair, parse_pids, parse_publish, parse_pull, parse_requirement,
    parse_volume,
};
use crate::config::{Defaults, SetFields};
use crate::durations::{self, DeadlineArg};
use crate::errors::Failure;
use crate::sizes::{parse_bytes, parse_mib_or_number};

/// The spec of a new sandbox, as flags.
#[derive(Debug, Default, Args)]
#[command(next_help_heading = "Sandbox options")]
pub struct SpecArgs {
    /// Name: lowercase letters, digits and hyphens, or POOL/NAME; by default generated from the id
    #[arg(long, value_parser = parse_new_name)]
    pub name: Option<NameInPool>,
    /// Id: `sb_` and 32 hexadecimal digits; by default a new one
    #[arg(long, value_parser = parse_id)]
    pub id: Option<SandboxId>,
    /// The image: `host`, a name such as node:22, which is pulled when it is missing, or the path
    /// of a root file system (a directory or a tarball), which begins with `/` or `./`
    /// [env: EYOT_IMAGE]
    #[arg(long)]
    pub image: Option<String>,
    /// The directory in which commands start [default: /workspace]
    #[arg(long, short = 'w', value_name = "DIR", value_parser = parse_sandbox_path)]
    pub workdir: Option<SandboxPath>,
    /// The network: none, egress, bridge (docker) or host [default: none] [env: EYOT_NET]
    #[arg(long, alias = "network", value_name = "MODE", hide_possible_values = true)]
    pub net: Option<NetworkArg>,
    /// With egress, allow only this address: example.com, *.example.com, 10.1.0.0/16, each
    /// optionally with :port; may be repeated
    #[arg(long, value_name = "RULE")]
    pub allow: Vec<EgressRule>,
    /// With egress, refuse this address even if a rule allows it
    #[arg(long, value_name = "RULE")]
    pub deny: Vec<EgressRule>,
    /// Mount a folder of the host; read-only unless it ends in :rw, or in :cow for a copy that the sandbox changes
    #[arg(long, value_name = "SRC:DST[:rw|:cow]", value_parser = parse_mount)]
    pub mount: Vec<Mount>,
    /// Mount a folder of the host, as Docker spells it
    #[arg(long, short = 'v', value_name = "SRC:DST:ro|rw|cow", value_parser = parse_volume)]
    pub volume: Vec<Mount>,
    /// A variable for every command; K alone takes the value from eyot's environment
    #[arg(long, short, value_name = "K=V", value_parser = parse_env)]
    pub env: Vec<EnvArg>,
    /// Read variables from a file, one K=V a line
    #[arg(long, value_name = "FILE")]
    pub env_file: Vec<PathBuf>,
    /// The user that runs commands [default: user] [env: EYOT_USER]
    #[arg(long, short, value_name = "USER")]
    pub user: Option<String>,
    /// A label, for `eyot ls --label`
    #[arg(long, short, value_name = "K=V", value_parser = parse_pair)]
    pub label: Vec<(String, String)>,
    /// A key and value to keep; `eyot inspect` shows them
    #[arg(long, value_name = "K=V", value_parser = parse_pair)]
    pub metadata: Vec<(String, String)>,
    /// Limit of memory, such as 512m [default: 2g where it can be held; with docker, none] [env:
    /// EYOT_MEMORY_MIB]
    #[arg(long, short, value_name = "SIZE", value_parser = parse_memory)]
    pub memory: Option<u64>,
    /// The same in MiB
    #[arg(long, value_name = "N", hide = true, value_parser = parse_mib_or_number, conflicts_with = "memory")]
    pub memory_mib: Option<u64>,
    /// Limit of processors, such as 1.5 [default: none] [env: EYOT_CPUS]
    #[arg(long, value_name = "N", value_parser = parse_cpus)]
    pub cpus: Option<f64>,
    /// Limit of processes and threads [default: 512] [env: EYOT_PIDS]
    #[arg(long, alias = "pids-limit", value_name = "N", value_parser = parse_pids)]
    pub pids: Option<u64>,
    /// Limit of disk space, such as 10g; at least 8m [default: none] [env: EYOT_DISK_MIB]
    #[arg(long, value_name = "SIZE", value_parser = parse_disk)]
    pub disk: Option<u64>,
    /// The same in MiB
    #[arg(long, value_name = "N", hide = true, value_parser = parse_mib_or_number, conflicts_with = "disk")]
    pub disk_mib: Option<u64>,
    /// Default deadline of commands, such as 10s, 500ms, 1.5h [default: none] [env: EYOT_TIMEOUT]
    #[arg(long, value_name = "DURATION", value_parser = durations::parse_timeout_ms, conflicts_with = "timeout_ms")]
    pub timeout: Option<u64>,
    /// The same in milliseconds
    #[arg(long, value_name = "N", hide = true)]
    pub timeout_ms: Option<u64>,
    /// The bytes to keep of each stream when output is not streamed, such as 64k [default: 1m] [env:
    /// EYOT_MAX_OUTPUT_BYTES]
    #[arg(long, value_name = "SIZE", value_parser = parse_bytes)]
    pub max_output_bytes: Option<u64>,
    /// The largest file that Eyot reads or writes, such as 100m [default: none] [env:
    /// EYOT_MAX_FILE_BYTES]
    #[arg(long, value_name = "SIZE", value_parser = parse_bytes)]
    pub max_file_bytes: Option<u64>,
    /// Destroy it this long after its creation, such as 1.5h, or never [default: never] [env:
    /// EYOT_TTL]
    #[arg(long, value_name = "DURATION", allow_negative_numbers = true)]
    pub ttl: Option<DeadlineArg>,
    /// Destroy it (see --on-idle) after this long without activity, or never [default: never] [env:
    /// EYOT_IDLE_TIMEOUT]
    #[arg(long, value_name = "DURATION", allow_negative_numbers = true)]
    pub idle_timeout: Option<DeadlineArg>,
    /// With --idle-timeout: destroy or sleep [default: destroy]
    #[arg(long, value_name = "WHAT", value_parser = parse_on_idle)]
    pub on_idle: Option<IdleAction>,
    /// Keep the working directory's files under this id; they outlive the sandbox (see `eyot
    /// workspace`)
    #[arg(long, value_name = "ID")]
    pub workspace: Option<String>,
    /// Remove those files with the sandbox
    #[arg(long, requires = "workspace")]
    pub destroy_workspace: bool,
    /// Make everything read-only but the workspace, home and the temporary directories
    #[arg(long)]
    pub read_only: bool,
    /// Fail unless these protections hold: memory, cpus, pids, disk, landlock, seccomp, identity_range, own_kernel
    #[arg(long, value_name = "LIST", value_delimiter = ',', value_parser = parse_requirement)]
    pub require: Vec<Requirement>,
    /// Copy a file of the host into the new working directory
    #[arg(long, value_name = "DST=SRC", value_parser = parse_file)]
    pub file: Vec<(String, PathBuf)>,
    /// Create a directory in the new working directory
    #[arg(long, value_name = "PATH")]
    pub dir: Vec<String>,
    /// When to fetch the image: missing, always or never [default: missing]
    #[arg(long, value_name = "WHEN", value_parser = parse_pull)]
    pub pull: Option<PullPolicy>,
    /// The Engine's runtime, such as runsc
    #[arg(long, value_name = "NAME", help_heading = WITH_DOCKER)]
    pub runtime: Option<String>,
    /// With --net bridge, the Engine's network to join
    #[arg(long, value_name = "NAME", help_heading = WITH_DOCKER)]
    pub engine_network: Option<String>,
    /// Publish this port on the Engine's 127.0.0.1, on a port that the Engine chooses
    #[arg(long, short, value_name = "PORT", value_parser = parse_publish, help_heading = WITH_DOCKER)]
    pub publish: Vec<u16>,
    /// Add a host name to the sandbox
    #[arg(long, value_name = "NAME:IP", value_parser = parse_extra_host, help_heading = WITH_DOCKER)]
    pub add_host: Vec<(String, IpAddr)>,
    /// Begin with a SandboxSpec in JSON
    #[arg(long, value_name = "FILE")]
    pub spec: Option<PathBuf>,
}

const WITH_DOCKER: &str = "With the provider docker";

/// Refuses an `--on-idle` that would never happen.
pub fn idle_action_without_timeout() -> Failure {
    let message = "--on-idle says what happens at the idle timeout, and there is none";
    Failure::usage(message).hint("add --idle-timeout 10m, say")
}

impl SpecArgs {
    /// Returns the pool of the new sandbox, if it was named.
    pub fn pool(&self) -> Option<&SandboxName> {
        self.name.as_ref()?.pool.as_ref()
    }

    /// Returns the name by which commands find the new sandbox.
    pub fn shown_name(&self, sandbox: &Sandbox) -> String {
        match self.pool() {
            Some(pool) => shown_name(pool, sandbox.name()),
            None => sandbox.name().to_string(),
        }
    }

    /// Returns the first flag that only the Docker provider takes, as it was given.
    pub fn docker_flag(&self) -> Option<&'static str> {
        let flags = [
            (self.net == Some(NetworkArg::Bridge), "--net bridge"),
            (self.runtime.is_some(), "--runtime"),
            (self.engine_network.is_some(), "--engine-network"),
            (!self.publish.is_empty(), "--publish"),
            (!self.add_host.is_empty(), "--add-host"),
        ];
        flags.into_iter().find(|(is_given, _)| *is_given).map(|(_, flag)| flag)
    }

    /// Returns the limit of memory.
    pub fn memory_mib(&self) -> Option<u64> {
        self.memory.or(self.memory_mib)
    }

    /// Returns the limit of the disk.
    pub fn disk_mib(&self) -> Option<u64> {
        self.disk.or(self.disk_mib)
    }

    /// Makes the spec from the `--spec` file, the flags over it, and `defaults` for the rest.
    pub fn to_spec(&self, defaults: &Defaults) -> Result<SandboxSpec, Failure> {
        self.to_spec_in(defaults, None)
    }

    /// The same for a place where commands start in another directory unless it is named.
    pub fn to_spec_in(&self, defaults: &Defaults, workdir: Option<&str>) -> Result<SandboxSpec, Failure> {
        let file = self.spec.as_deref().map(read_spec).transpose()?.unwrap_or_default();
        let mut spec = file.spec;
        let set = SetFields {
            network: file.named.network || self.net.is_some(),
            pull: file.named.pull || self.pull.is_some(),
            ttl: self.ttl.is_some(),
            idle_timeout: self.idle_timeout.is_some(),
        };
        self.set_what_it_is(&mut spec);
        self.set_limits(&mut spec);
        self.set_container(&mut spec.container);
        spec.env.extend(environment(&self.env_file, &self.env)?);
        self.add_manifest(&mut spec)?;
        defaults.fill(&mut spec, set);
        self.check_idle(&spec)?;
        if let (None, Some(workdir)) = (&spec.workdir, workdir) {
            spec.workdir = Some(SandboxPath::parse(workdir)?);
        }
        spec.clone().validate().map_err(|error| Failure::with_code(error, crate::errors::USAGE))?;
        Ok(spec)
    }

    fn set_what_it_is(&self, spec: &mut SandboxSpec) {
        replace(&mut spec.id, &self.id);
        replace(&mut spec.name, &self.name.as_ref().map(|new| new.name.clone()));
        replace(&mut spec.image, &self.image);
        replace(&mut spec.workdir, &self.workdir);
        replace(&mut spec.user, &self.user);
        if let Some(network) = self.net {
            spec.network = network.into();
        }
        spec.egress.allow.extend(self.allow.iter().cloned());
        spec.egress.deny.extend(self.deny.iter().cloned());
        if let Some(id) = &self.workspace {
            let destroy_on_session_destroy = self.destroy_workspace;
            spec.workspace = WorkspaceSpec::Persistent { id: id.clone(), destroy_on_session_destroy };
        }
        spec.mounts.extend(self.mount.iter().chain(&self.volume).cloned());
        spec.labels.extend(self.label.iter().cloned());
        spec.metadata.extend(self.metadata.iter().cloned());
        spec.require.extend(self.require.iter().copied());
        spec.security.readonly_rootfs |= self.read_only;
    }

    fn set_container(&self, container: &mut ContainerSpec) {
        container.pull = self.pull.unwrap_or(container.pull);
        replace(&mut container.runtime, &self.runtime);
        replace(&mut container.network, &self.engine_network);
        container.ports.extend(self.publish.iter().copied());
        container.extra_hosts.extend(self.add_host.iter().cloned());
    }

    fn set_limits(&self, spec: &mut SandboxSpec) {
        let limits = &mut spec.limits;
        replace(&mut limits.memory_mib, &self.memory_mib());
        replace(&mut limits.cpus, &self.cpus);
        replace(&mut limits.pids, &self.pids);
        replace(&mut limits.disk_mib, &self.disk_mib());
        replace(&mut limits.timeout_ms, &self.timeout.or(self.timeout_ms));
        replace(&mut limits.max_output_bytes, &self.max_output_bytes);
        replace(&mut limits.max_file_bytes, &self.max_file_bytes);
        if let Some(DeadlineArg(ttl)) = self.ttl {
            spec.lifecycle.ttl_ms = ttl;
        }
        if let Some(DeadlineArg(idle_timeout)) = self.idle_timeout {
            spec.lifecycle.idle_timeout_ms = idle_timeout;
        }
        if let Some(action) = self.on_idle {
            spec.lifecycle.on_idle = action;
        }
    }

    /// Refuses what would never happen.
    fn check_idle(&self, spec: &SandboxSpec) -> Result<(), Failure> {
        if self.on_idle.is_none() || spec.lifecycle.idle_timeout_ms.is_some() {
            return Ok(());
        }
        Err(idle_action_without_timeout())
    }

    fn add_manifest(&self, spec: &mut SandboxSpec) -> Result<(), Failure> {
        for (target, source) in &self.file {
            let content = fs::read(source)
                .map_err(|error| Failure::host(format!("read the file `{}`", source.display()), error))?;
            spec.manifest.files.insert(target.clone(), content.into());
        }
        spec.manifest.directories.extend(self.dir.iter().cloned());
        Ok(())
    }
}

fn replace<T: Clone>(field: &mut Option<T>, flag: &Option<T>) {
    if let Some(value) = flag {
        *field = Some(value.clone());
    }
}

#[derive(Default)]
struct SpecFile {
    spec: SandboxSpec,
    named: SetFields,
}

fn read_spec(path: &Path) -> Result<SpecFile, Failure> {
    let shown = path.display();
    let text =
        fs::read_to_string(path).map_err(|error| Failure::host(format!("read the spec `{shown}`"), error))?;
    let wrong = |error: serde_json::Error| Failure::usage(format!("the spec `{shown}` is wrong: {error}"));
    let spec = serde_json::from_str(&text).map_err(wrong)?;
    let value: serde_json::Value = serde_json::from_str(&text).map_err(wrong)?;
    let named = |field: &str| value.pointer(field).is_some();
    let named =
        SetFields { network: named("/network"), pull: named("/container/pull"), ..SetFields::default() };
    Ok(SpecFile { spec, named })
}

pub(super) fn parse_new_name(text: &str) -> Result<NameInPool, String> {
    NameInPool::parse(text).map_err(|error| error.to_string())
}

fn parse_id(text: &str) -> Result<SandboxId, String> {
    SandboxId::parse(text).map_err(|error| error.to_string())
}

fn parse_sandbox_path(text: &str) -> Result<SandboxPath, String> {
    SandboxPath::parse(text).map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use clap::Parser;
    use eyot::NetworkMode;

    use super::*;

    #[derive(Parser)]
    struct Flags {
        #[command(flatten)]
        spec: SpecArgs,
    }

    fn spec(arguments: &[&str], defaults: &Defaults) -> Result<SandboxSpec, Failure> {
        let arguments = [&["x"], arguments].concat();
        Flags::try_parse_from(arguments).expect("arguments that parse").spec.to_spec(defaults)
    }

    #[test]
    fn no_flag_at_all_is_the_default_spec() {
        assert_eq!(spec(&[], &Defaults::default()).unwrap(), SandboxSpec::default());
    }

    #[test]
    fn every_flag_reaches_its_field() {
        let flags = "--name a --image host --net host -e A=1 --user root --label k=v --metadata m=n --memory-mib 64 \
                     --cpus 0.5 --pids 9 --disk-mib 7 --timeout 2s --max-output-bytes 5 --max-file-bytes 6 --ttl 1m \
                     --idle-timeout 3s --on-idle sleep --workspace w --destroy-workspace --read-only --require memory,pids --dir out";
        let flags: Vec<&str> = flags.split_whitespace().collect();
        let spec = serde_json::to_value(spec(&flags, &Defaults::default()).unwrap()).unwrap();
        assert_eq!(spec["name"], "a");
        assert_eq!(spec["network"], "host");
        assert_eq!(spec["env"]["A"], "1");
        assert_eq!(spec["labels"]["k"], "v");
        assert_eq!(spec["metadata"]["m"], "n");
        assert_eq!(spec["user"], "root");
        assert_eq!(spec["limits"]["memory_mib"], 64);
        assert_eq!(spec["limits"]["cpus"], 0.5);
        assert_eq!(spec["limits"]["timeout_ms"], 2000);
        assert_eq!(spec["lifecycle"]["ttl_ms"], 60_000);
        assert_eq!(spec["lifecycle"]["idle_timeout_ms"], 3000);
        assert_eq!(spec["lifecycle"]["on_idle"], "sleep");
        assert_eq!(spec["workspace"]["destroy_on_session_destroy"], true);
        assert_eq!(spec["security"]["readonly_rootfs"], true);
        assert_eq!(spec["require"], serde_json::json!(["memory", "pids"]));
        assert_eq!(spec["manifest"]["directories"], serde_json::json!(["out"]));
    }

    #[test]
    fn sizes_have_units_and_the_flags_in_mebibytes_stay() {
        let made =
            spec(&["-m", "1.5g", "--disk", "10g", "--max-file-bytes", "64k"], &Defaults::default()).unwrap();
        assert_eq!((made.limits.memory_mib, made.limits.disk_mib), (Some(1536), Some(10_240)));
        assert_eq!(made.limits.max_file_bytes, Some(65_536));
        let made = spec(&["--memory-mib", "64", "--disk-mib", "9"], &Defaults::default()).unwrap();
        assert_eq!((made.limits.memory_mib, made.limits.disk_mib), (Some(64), Some(9)));
    }

    #[test]
    fn rules_are_added_to_those_of_the_file_and_need_the_network_egress() {
        let flags = [
            "--net",
            "egress",
            "--allow",
            "Example.com:443",
            "--allow",
            "10.1.2.3/8",
            "--deny",
            "*.evil.com",
        ];
        let made = spec(&flags, &Defaults::default()).unwrap();
        assert_eq!(
            serde_json::to_value(&made.egress).unwrap(),
            serde_json::json!({ "allow": ["example.com:443", "10.0.0.0/8"], "deny": ["*.evil.com"] })
        );
        assert!(spec(&["--allow", "example.com"], &Defaults::default()).is_err());
    }

    #[test]
    fn flags_win_over_the_file_and_the_file_over_the_configuration() {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        write!(file, r#"{{"image":"file","network":"none","limits":{{"pids":20}}}}"#).unwrap();
        let defaults = Defaults {
            image: Some("config".to_owned()),
            net: Some(NetworkArg::Host),
            pids: Some(30),
            cpus: Some(2.0),
            ..Defaults::default()
        };
        let path = file.path().to_str().unwrap();
        let spec = spec(&["--spec", path, "--pids", "10"], &defaults).unwrap();
        assert_eq!(spec.image.as_deref(), Some("file"));
        assert_eq!(spec.network, NetworkMode::None);
        assert_eq!((spec.limits.pids, spec.limits.cpus), (Some(10), Some(2.0)));
    }

    #[test]
    fn never_wins_over_the_deadlines_of_the_file_and_of_the_configuration() {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        write!(file, r#"{{"lifecycle":{{"ttl_ms":60000}}}}"#).unwrap();
        let path = file.path().to_str().unwrap();
        let hour = Some(DeadlineArg(Some(3_600_000)));
        let defaults = Defaults { ttl: hour, idle_timeout: hour, ..Defaults::default() };
        let made = spec(&["--spec", path, "--ttl", "never"], &defaults).unwrap();
        assert_eq!((made.lifecycle.ttl_ms, made.lifecycle.idle_timeout_ms), (None, Some(3_600_000)));
        let made = spec(&["--spec", path, "--idle-timeout", "never"], &defaults).unwrap();
        assert_eq!((made.lifecycle.ttl_ms, made.lifecycle.idle_timeout_ms), (Some(60_000), None));
    }

    #[test]
    fn a_spec_that_is_refused_is_a_usage_error_that_names_the_field() {
        let Err(Failure::Error { error, exit_code }) = spec(&["--memory-mib", "1"], &Defaults::default())
        else {
            panic!("refused")
        };
        assert_eq!(exit_code, crate::errors::USAGE);
        assert!(error.to_string().contains("`limits.memory_mib`"), "{error}");
    }

    #[test]
    fn a_manifest_file_is_read_from_the_host_and_a_missing_one_is_named() {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        file.write_all(b"hi").unwrap();
        let pair = format!("a/b.txt={}", file.path().display());
        let made = spec(&["--file", &pair], &Defaults::default()).unwrap();
        assert_eq!(&made.manifest.files["a/b.txt"][..], b"hi");
        let Err(Failure::Error { error, .. }) = spec(&["--file", "a=/nowhere/x"], &Defaults::default())
        else {
            panic!("refused")
        };
        assert!(error.to_string().contains("`/nowhere/x`"), "{error}");
    }
}
