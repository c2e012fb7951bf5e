//! The checks of a spec, made once before anything has been created.

use std::collections::{BTreeMap, BTreeSet};

use eyot_egress::EgressRules;

use super::{
    Lifecycle, Limits, Manifest, Mount, NetworkMode, SandboxId, SandboxSpec, ValidSpec, WorkspaceSpec,
};
use crate::error::{Error, Result};
use crate::linux_capability;
use crate::path::{SandboxPath, WorkspacePath};

/// The longest that a variable's name and value together may be, in bytes; Linux's own limit for one string.
const MAX_VARIABLE_BYTES: usize = 128 * 1024;
const MAX_TEXT_BYTES: usize = 4096;
const MAX_ENTRIES: usize = 256;

impl SandboxSpec {
    /// Checks everything that can be checked without a provider, and fills in id, name and working directory. An error
    /// names the field and the reason.
    pub fn validate(mut self) -> Result<ValidSpec> {
        let id = self.id.take().unwrap_or_else(SandboxId::generate);
        let name = self.name.take().unwrap_or_else(|| id.default_name());
        let has_default_workdir = self.workdir.is_none();
        let workdir = match self.workdir.take() {
            Some(workdir) => workdir,
            None => SandboxPath::parse("/workspace")?,
        };
        check_workdir(&workdir, self.image.as_deref())?;
        check_workspace(&self.workspace)?;
        check_mounts(&self.mounts)?;
        check_manifest(&self.manifest)?;
        check_env("env", &self.env)?;
        check_texts("metadata", &self.metadata)?;
        check_labels(&self.labels)?;
        check_egress(self.network, &self.egress)?;
        check_limits(&self.limits)?;
        check_lifecycle(&self.lifecycle)?;
        check_user(self.user.as_deref())?;
        check_capabilities(&self.security.drop_capabilities)?;
        self.container.check(self.network, &workdir)?;
        if self.image.as_deref().is_some_and(|image| image.trim().is_empty() || image.contains('\0')) {
            return Err(Error::invalid("image", "must not be empty, and has no null byte"));
        }
        if self.image.is_some() && self.snapshot.is_some() {
            return Err(Error::invalid("snapshot", "brings its own image: leave the image out"));
        }
        self.id = Some(id.clone());
        self.name = Some(name.clone());
        self.workdir = Some(workdir.clone());
        Ok(ValidSpec { spec: self, id, name, workdir, has_default_workdir })
    }
}

/// Directories that the provider owns; a working directory or a mount there would hide what the sandbox needs.
const RESERVED: [&str; 7] = ["/proc", "/dev", "/sys", "/usr", "/etc", "/.eyot-guest", "/.eyot-run"];

pub(super) fn reserved_base(path: &SandboxPath) -> Option<&'static str> {
    RESERVED
        .into_iter()
        .find(|base| SandboxPath::parse(base).is_ok_and(|base| path.strip_prefix(&base).is_some()))
}

/// An image of one's own has its own `/usr`.
pub(super) fn check_workdir(workdir: &SandboxPath, image: Option<&str>) -> Result<()> {
    let is_own = image.is_some_and(|image| image != "host");
    match reserved_base(workdir).filter(|base| *base != "/usr" || !is_own) {
        Some(base) => Err(Error::invalid("workdir", format!("must not be in `{base}`: {workdir}"))),
        None if workdir.is_root() => Err(Error::invalid("workdir", "must not be `/`")),
        None => Ok(()),
    }
}

fn check_workspace(workspace: &WorkspaceSpec) -> Result<()> {
    let WorkspaceSpec::Persistent { id, .. } = workspace else { return Ok(()) };
    let good = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"_.-".contains(&byte);
    let begins = id.bytes().next().is_some_and(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit());
    if begins && id.len() <= 63 && id.bytes().all(good) {
        Ok(())
    } else {
        Err(Error::invalid(
            "workspace.id",
            format!(
                "must be 1 to 63 of a-z, 0-9, `_`, `.`, `-`, beginning with a letter or a digit; got `{id}`"
            ),
        ))
    }
}

fn check_mounts(mounts: &[Mount]) -> Result<()> {
    if mounts.len() > MAX_ENTRIES {
        return Err(Error::invalid(
            "mounts",
            format!("may have {MAX_ENTRIES} entries, not {}", mounts.len()),
        ));
    }
    let mut targets = BTreeSet::new();
    for mount in mounts {
        let Mount { source, target, writable, cow } = mount;
        if *writable && *cow {
            return Err(Error::invalid("mounts.cow", "must not be set beside `writable`")
                .with_hint("choose one: the sandbox changes the folder, or a copy of its own"));
        }
        if !source.is_absolute() {
            return Err(Error::invalid("mounts.source", format!("must be absolute: {}", source.display())));
        }
        if target.is_root() {
            return Err(Error::invalid("mounts.target", "must not be `/`"));
        }
        if let Some(base) = reserved_base(target).filter(|base| *base != "/usr" && *base != "/etc") {
            return Err(Error::invalid("mounts.target", format!("must not be in `{base}`: {target}")));
        }
        if !targets.insert(target) {
            return Err(Error::invalid("mounts.target", format!("is there twice: {target}")));
        }
    }
    Ok(())
}

fn check_manifest(manifest: &Manifest) -> Result<()> {
    for path in manifest.files.keys() {
        WorkspacePath::parse(path).map_err(|error| error.context("`manifest.files`"))?;
    }
    for path in &manifest.directories {
        WorkspacePath::parse_directory(path).map_err(|error| error.context("`manifest.directories`"))?;
    }
    check_env("manifest.env", &manifest.env)
}

/// Refuses variables that no process could have: an empty name, `=` or NUL in the name, NUL in the value, too long.
pub(crate) fn check_env(field: &str, env: &BTreeMap<String, String>) -> Result<()> {
    for (name, value) in env {
        if name.is_empty() || name.contains(['=', '\0']) {
            return Err(Error::invalid(
                field,
                format!("has a name that is empty or contains `=` or a null byte: `{name}`"),
            ));
        }
        if value.contains('\0') {
            return Err(Error::invalid(field, format!("has a null byte in the value of `{name}`")));
        }
        if name.len() + value.len() + 2 > MAX_VARIABLE_BYTES {
            let reason = format!(
                "has {} bytes in `{name}`; the limit is {MAX_VARIABLE_BYTES}",
                name.len() + value.len()
            );
            return Err(Error::invalid(field, reason));
        }
    }
    Ok(())
}

/// Refuses labels that no sandbox can have.
pub fn check_labels(labels: &BTreeMap<String, String>) -> Result<()> {
    check_texts("labels", labels)
}

fn check_texts(field: &str, texts: &BTreeMap<String, String>) -> Result<()> {
    if texts.len() > MAX_ENTRIES {
        return Err(Error::invalid(field, format!("may have {MAX_ENTRIES} entries, not {}", texts.len())));
    }
    for (key, value) in texts {
        if key.is_empty() || key.contains('\0') || value.contains('\0') {
            return Err(Error::invalid(field, format!("has an empty key or a null byte: `{key}`")));
        }
        if key.len() + value.len() > MAX_TEXT_BYTES {
            return Err(Error::invalid(field, format!("has more than {MAX_TEXT_BYTES} bytes in `{key}`")));
        }
    }
    Ok(())
}

fn check_egress(network: NetworkMode, rules: &EgressRules) -> Result<()> {
    if network != NetworkMode::Egress && *rules != EgressRules::default() {
        let error = Error::invalid(
            "egress",
            "has rules (--allow, --deny), which hold for the network `egress` alone",
        );
        return Err(error.with_hint("add --net egress; in JSON: \"network\": \"egress\""));
    }
    check_rules(rules)
}

/// Refuses more rules than a sandbox may have.
pub fn check_rules(rules: &EgressRules) -> Result<()> {
    let most = EgressRules::MAX_RULES;
    match rules.allow.len().max(rules.deny.len()) {
        count if count > most => {
            Err(Error::invalid("egress", format!("may have {most} rules of a kind, not {count}")))
        }
        _ if rules.bytes() > EgressRules::MAX_BYTES => {
            Err(Error::invalid("egress", format!("may have {} bytes of rules", EgressRules::MAX_BYTES)))
        }
        _ => Ok(()),
    }
}

fn check_limits(limits: &Limits) -> Result<()> {
    let within = |field: &str, value: Option<u64>, least: u64, most: u64| match value {
        Some(value) if value < least => {
            Err(Error::invalid(format!("limits.{field}"), format!("must be at least {least}, not {value}")))
        }
        Some(value) if value > most => {
            Err(Error::invalid(format!("limits.{field}"), format!("must be at most {most}, not {value}")))
        }
        _ => Ok(()),
    };
    let at_least = |field: &str, value: Option<u64>, least: u64| within(field, value, least, Limits::MAX);
    at_least("timeout_ms", limits.timeout_ms, 0)?;
    at_least("max_output_bytes", limits.max_output_bytes, 0)?;
    at_least("max_file_bytes", limits.max_file_bytes, 0)?;
    at_least("memory_mib", limits.memory_mib, Limits::MIN_MEMORY_MIB)?;
    within("pids", limits.pids, Limits::MIN_PIDS, Limits::MAX_PIDS)?;
    at_least("disk_mib", limits.disk_mib, 1)?;
    match limits.cpus {
        Some(cpus) if !(0.01..=4096.0).contains(&cpus) => {
            Err(Error::invalid("limits.cpus", format!("must be from 0.01 to 4096, not {cpus}")))
        }
        _ => Ok(()),
    }
}

/// Refuses deadlines that no sandbox can have.
pub fn check_lifecycle(lifecycle: &Lifecycle) -> Result<()> {
    let fields =
        [("lifecycle.ttl_ms", lifecycle.ttl_ms), ("lifecycle.idle_timeout_ms", lifecycle.idle_timeout_ms)];
    for (field, value) in fields {
        if value.is_some_and(|value| value == 0 || value > Limits::MAX) {
            return Err(Error::invalid(field, format!("must be from 1 to {}", Limits::MAX)));
        }
    }
    Ok(())
}

pub(super) fn check_user(user: Option<&str>) -> Result<()> {
    let Some(user) = user else { return Ok(()) };
    let good = |byte: u8| byte.is_ascii_alphanumeric() || b"_.-:".contains(&byte);
    if !user.is_empty() && user.len() <= 64 && user.bytes().all(good) {
        Ok(())
    } else {
        Err(Error::invalid("user", format!("must be a user's name or number, not `{user}`")))
    }
}

fn check_capabilities(names: &[String]) -> Result<()> {
    match names.iter().find(|name| linux_capability::mask(name).is_none()) {
        Some(name) => {
            Err(Error::invalid("security.drop_capabilities", format!("has no capability's name: `{name}`")))
        }
        None => Ok(()),
    }
}
