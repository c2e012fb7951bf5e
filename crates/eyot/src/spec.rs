//! The spec of a sandbox to create. A [`SandboxSpec`] is plain data with a default for everything;
//! [`SandboxSpec::validate`] checks it once, before anything has been created, and names the field
//! and the reason of what is wrong.

mod checks;
mod container;
mod image_defaults;
mod requests;
mod snapshot_id;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::path::PathBuf;

use bytes::Bytes;
use eyot_egress::EgressRules;
use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};
use crate::linux_capability;
use crate::path::SandboxPath;

pub(crate) use checks::check_env;
pub use checks::{check_labels, check_lifecycle, check_rules};
pub use container::{ContainerSpec, PullPolicy};
pub use image_defaults::ImageDefaults;
pub use snapshot_id::SnapshotId;

/// A sandbox's id: `sb_` and a UUID (version 7) in 32 hexadecimal digits. Never used twice.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct SandboxId(String);

impl SandboxId {
    /// A new id, different from every other.
    pub fn generate() -> Self {
        Self(format!("sb_{}", uuid::Uuid::now_v7().simple()))
    }

    /// Parses `sb_` and 32 lower-case hexadecimal digits.
    pub fn parse(text: &str) -> Result<Self> {
        let digits = text.strip_prefix("sb_").unwrap_or_default();
        let is_digit = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
        if digits.len() == 32 && digits.bytes().all(is_digit) {
            Ok(Self(text.to_owned()))
        } else {
            Err(Error::invalid("id", format!("must be `sb_` and 32 hexadecimal digits, not `{text}`")))
        }
    }

    /// The id as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// A name for a sandbox that was given none: `sb-` and the id's last twelve digits.
    pub fn default_name(&self) -> SandboxName {
        SandboxName(format!("sb-{}", &self.0[self.0.len() - 12..]))
    }
}

impl fmt::Display for SandboxId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl TryFrom<String> for SandboxId {
    type Error = Error;
    fn try_from(text: String) -> Result<Self> {
        Self::parse(&text)
    }
}

impl From<SandboxId> for String {
    fn from(id: SandboxId) -> Self {
        id.0
    }
}

/// A sandbox's name: `[a-z0-9][a-z0-9-]{0,40}`; also its host name.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct SandboxName(String);

impl SandboxName {
    /// The most characters that a name may have.
    pub const MAX_CHARS: usize = 41;

    /// Parses a name.
    pub fn parse(text: &str) -> Result<Self> {
        let good = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
        let fits = !text.is_empty() && text.len() <= Self::MAX_CHARS && !text.starts_with('-');
        if fits && text.bytes().all(good) {
            Ok(Self(text.to_owned()))
        } else {
            Err(Error::invalid(
                "name",
                format!("must be 1 to 41 of a-z, 0-9 and `-`, not beginning with `-`; got `{text}`"),
            ))
        }
    }

    /// The name as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for SandboxName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl TryFrom<String> for SandboxName {
    type Error = Error;
    fn try_from(text: String) -> Result<Self> {
        Self::parse(&text)
    }
}

impl From<SandboxName> for String {
    fn from(name: SandboxName) -> Self {
        name.0
    }
}

/// The home of the working directory's files.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(tag = "mode", rename_all = "snake_case", deny_unknown_fields)]
#[doc(alias = "SandboxWorkspaceOptions")]
pub enum WorkspaceSpec {
    /// In the sandbox; gone with it.
    #[default]
    Ephemeral,
    /// In a directory of this id, which sandboxes may share and which outlives them.
    Persistent {
        /// The directory's id: 1 to 63 of `a-z`, `0-9`, `_`, `.`, `-`, beginning with a letter or a digit.
        id: String,
        /// Destroying the sandbox removes the directory too.
        #[serde(default)]
        destroy_on_session_destroy: bool,
    },
}

/// A folder of the host inside the sandbox.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct Mount {
    /// The folder (or file) on the host, absolute.
    #[cfg_attr(feature = "openapi", schema(value_type = String))]
    pub source: PathBuf,
    /// The path at which it appears inside.
    #[cfg_attr(feature = "openapi", schema(value_type = String))]
    pub target: SandboxPath,
    /// The sandbox may write to it; by default not.
    #[serde(default)]
    pub writable: bool,
    /// Copy on write: the sandbox changes a copy of its own, which begins as the folder is. The folder stays as it is until the
    /// changes are applied.
    #[serde(default, skip_serializing_if = "is_false")]
    pub cow: bool,
}

/// As serde asks it.
fn is_false(value: &bool) -> bool {
    !*value
}

/// Files, directories and variables that are put into a new sandbox before its first use. Paths are
/// relative to the working directory and stay beneath it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(default, deny_unknown_fields)]
#[doc(alias = "SandboxManifest")]
pub struct Manifest {
    /// Files and their contents.
    #[cfg_attr(feature = "openapi", schema(value_type = BTreeMap<String, String>))]
    pub files: BTreeMap<String, Bytes>,
    /// Directories.
    pub directories: Vec<String>,
    /// Variables for every command, layered over `SandboxSpec::env`.
    pub env: BTreeMap<String, String>,
}

/// The network that a sandbox may reach.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
#[doc(alias = "SandboxNetworkMode")]
pub enum NetworkMode {
    /// The sandbox's own loopback and nothing else.
    #[default]
    None,
    /// Public addresses, through a proxy, as far as [`SandboxSpec::egress`] allows them. A provider without such a proxy
    /// refuses rules; without any it may give its own network instead, and then `isolation()` says `bridge`.
    Egress,
    /// The network of a container engine: whatever that reaches, private addresses included. Only a provider that has
    /// such an engine takes it; [`ContainerSpec::network`] names another of its networks.
    Bridge,
    /// Everything that the host reaches, the host's loopback included.
    Host,
}

/// Limits on what a sandbox may use. `None`: the provider's default.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(default, deny_unknown_fields)]
#[doc(alias = "SandboxLimits")]
pub struct Limits {
    /// The deadline of a command that names none, in milliseconds. By default none.
    pub timeout_ms: Option<u64>,
    /// The most bytes of each stream of a command that are kept. By default 1,048,576.
    pub max_output_bytes: Option<u64>,
    /// The largest file that is read or written through the handle, in bytes. By default unlimited.
    pub max_file_bytes: Option<u64>,
    /// Memory in MiB, at least 16.
    pub memory_mib: Option<u64>,
    /// Processors, such as 1.5; at least 0.01.
    pub cpus: Option<f64>,
    /// Processes and threads, at least 8. By default 512.
    pub pids: Option<u64>,
    /// Disk in MiB, at least 1; where the native provider can hold it, at least 8. What lies in a persistent workspace or
    /// in a mount is not counted. `isolation()` says whether it is held.
    pub disk_mib: Option<u64>,
}

impl Limits {
    /// Bytes of each stream that are kept by default.
    pub const DEFAULT_MAX_OUTPUT_BYTES: u64 = 1 << 20;
    /// The default limit of processes and threads.
    pub const DEFAULT_PIDS: u64 = 512;
    /// The least memory, in MiB, that can be asked for.
    pub const MIN_MEMORY_MIB: u64 = 16;
    /// The fewest processes that can be asked for.
    pub const MIN_PIDS: u64 = 8;
    /// The most processes that a sandbox may be limited to: no kernel has numbers for more.
    pub const MAX_PIDS: u64 = 1 << 22;
    /// The largest number that is accepted in any field: 2^53, which every client can count to.
    pub const MAX: u64 = 1 << 53;
}

/// The action taken on a sandbox that was not used for its idle timeout.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum IdleAction {
    /// It is destroyed.
    #[default]
    Destroy,
    /// It is put to sleep: see [`crate::SandboxProvider::sleep`].
    Sleep,
}

/// The deadlines of a sandbox. Both deadlines run from the create, whether an Eyot process is alive
/// or not.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(default, deny_unknown_fields)]
#[doc(alias = "SandboxLifecycleOptions")]
pub struct Lifecycle {
    /// It is destroyed this many milliseconds after it was made, even while it works, and even while it sleeps.
    pub ttl_ms: Option<u64>,
    /// After this many milliseconds without a call, a running command or traffic, `on_idle` happens. Time that it sleeps
    /// does not count.
    pub idle_timeout_ms: Option<u64>,
    /// The action taken once it has been idle for so long.
    pub on_idle: IdleAction,
    /// `false` switches both deadlines off.
    pub auto_destroy: bool,
}

impl Default for Lifecycle {
    fn default() -> Self {
        Self { ttl_ms: None, idle_timeout_ms: None, on_idle: IdleAction::default(), auto_destroy: true }
    }
}

/// Restrictions on the programs in a sandbox. The defaults are what native always does.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(default, deny_unknown_fields)]
#[doc(alias = "DockerSandboxSecurityOptions")]
pub struct Security {
    /// The root file system can't be written to; the workspace, home, `/tmp`, `/var/tmp`, `/run` and `/dev/shm` still can.
    pub readonly_rootfs: bool,
    /// `no_new_privs`; setuid programs gain nothing.
    pub no_new_privileges: bool,
    /// Capabilities to drop: `ALL`, or names such as `CAP_CHOWN` beyond what the provider always drops.
    pub drop_capabilities: Vec<String>,
}

impl Security {
    /// [`drop_capabilities`](Self::drop_capabilities) as a mask. A name that is none drops nothing; a valid spec has none.
    pub fn dropped_capabilities(&self) -> u64 {
        self.drop_capabilities
            .iter()
            .filter_map(|name| linux_capability::mask(name))
            .fold(0, |all, one| all | one)
    }
}

impl Default for Security {
    fn default() -> Self {
        Self { readonly_rootfs: false, no_new_privileges: true, drop_capabilities: vec!["ALL".to_owned()] }
    }
}

/// A protection without which the create must fail.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum Requirement {
    /// `limits.memory_mib` is enforced.
    Memory,
    /// `limits.cpus` is enforced.
    Cpus,
    /// `limits.pids` is enforced.
    Pids,
    /// `limits.disk_mib` is enforced by a quota.
    Disk,
    /// Landlock is in force.
    Landlock,
    /// A seccomp filter is in force.
    Seccomp,
    /// A block of host ids of its own.
    IdentityRange,
    /// A kernel of its own.
    OwnKernel,
}

/// The spec of a sandbox to create. Every field has a default.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(default, deny_unknown_fields)]
#[doc(alias = "SandboxCreateSessionOptions")]
#[doc(alias = "DockerSandboxOptions")]
pub struct SandboxSpec {
    /// The id; by default a new one.
    #[cfg_attr(feature = "openapi", schema(value_type = Option<String>))]
    pub id: Option<SandboxId>,
    /// The name; by default made from the id.
    #[cfg_attr(feature = "openapi", schema(value_type = Option<String>))]
    pub name: Option<SandboxName>,
    /// The host name inside; by default the name.
    #[cfg_attr(feature = "openapi", schema(value_type = Option<String>))]
    pub hostname: Option<SandboxName>,
    /// The image it is made of: `host`, the name of an image such as `node:22`, a directory, a
    /// rootfs tarball. By default the provider's default.
    pub image: Option<String>,
    /// The snapshot whose files it begins with, in place of an image.
    #[cfg_attr(feature = "openapi", schema(value_type = Option<String>))]
    pub snapshot: Option<SnapshotId>,
    /// The directory in which commands start; by default the image's, else `/workspace`.
    #[cfg_attr(feature = "openapi", schema(value_type = Option<String>))]
    pub workdir: Option<SandboxPath>,
    /// The home of the working directory's files.
    pub workspace: WorkspaceSpec,
    /// Folders of the host inside.
    pub mounts: Vec<Mount>,
    /// Files, directories and variables that are put into it before its first use.
    pub manifest: Manifest,
    /// Variables for every command.
    pub env: BTreeMap<String, String>,
    /// The user who runs commands: by default the image's, else `user` (1000); `root` only with an
    /// identity range. A name or a number, with another group behind a colon.
    pub user: Option<String>,
    /// Facts that the caller wants to find again.
    pub metadata: BTreeMap<String, String>,
    /// Labels to select by.
    pub labels: BTreeMap<String, String>,
    /// The network that it may reach. In JSON also `true` for `egress`, `false` for `none`, and
    /// `{"mode": …}`.
    pub network: NetworkMode,
    /// Rules on which public addresses and which others it may reach, with [`NetworkMode::Egress`].
    /// By default all public ones.
    pub egress: EgressRules,
    /// Limits on what it may use.
    pub limits: Limits,
    /// The deadlines.
    pub lifecycle: Lifecycle,
    /// Restrictions on its programs.
    pub security: Security,
    /// Protections without which the create must fail.
    pub require: BTreeSet<Requirement>,
    /// Options that only a provider with a container engine has; others refuse all but the default.
    pub container: ContainerSpec,
}

/// A spec that has been checked. Only [`SandboxSpec::validate`] makes one.
#[derive(Debug, Clone)]
pub struct ValidSpec {
    spec: SandboxSpec,
    id: SandboxId,
    name: SandboxName,
    workdir: SandboxPath,
    /// The caller asked for no working directory.
    has_default_workdir: bool,
}

impl ValidSpec {
    /// The id to create, generated if none was given.
    pub fn id(&self) -> &SandboxId {
        &self.id
    }

    /// The name to create, made from the id if none was given.
    pub fn name(&self) -> &SandboxName {
        &self.name
    }

    /// The working directory.
    pub fn workdir(&self) -> &SandboxPath {
        &self.workdir
    }

    /// The host name inside.
    pub fn hostname(&self) -> &SandboxName {
        self.spec.hostname.as_ref().unwrap_or(&self.name)
    }

    /// The variables for every command: `env` with the manifest's layered over it.
    pub fn env(&self) -> BTreeMap<String, String> {
        let mut env = self.spec.env.clone();
        env.extend(self.spec.manifest.env.clone());
        env
    }

    /// The spec as it was asked for: without a working directory if none was asked for.
    pub fn requested(&self) -> SandboxSpec {
        let workdir = self.spec.workdir.clone().filter(|_| !self.has_default_workdir);
        SandboxSpec { workdir, ..self.spec.clone() }
    }

    /// The spec with id, name and working directory filled in.
    pub fn spec(&self) -> &SandboxSpec {
        &self.spec
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refusal(spec: SandboxSpec) -> String {
        spec.validate().unwrap_err().to_string()
    }

    #[test]
    fn an_empty_spec_is_valid_and_gets_an_id_a_name_and_a_working_directory() {
        let valid = SandboxSpec::default().validate().unwrap();
        assert!(valid.id().as_str().starts_with("sb_"));
        assert!(SandboxName::parse(valid.name().as_str()).is_ok());
        assert_eq!(valid.workdir().as_str(), "/workspace");
    }

    #[test]
    fn a_name_of_41_characters_is_accepted_and_one_of_42_is_refused() {
        assert!(SandboxName::parse(&"a".repeat(41)).is_ok());
        for name in ["a".repeat(42).as_str(), "", "-a", "A", "a_b", "ä"] {
            assert!(SandboxName::parse(name).is_err(), "{name}");
        }
    }

    #[test]
    fn a_refusal_names_the_field_and_the_reason() {
        let limits = Limits { memory_mib: Some(15), ..Limits::default() };
        assert_eq!(
            refusal(SandboxSpec { limits, ..SandboxSpec::default() }),
            "`limits.memory_mib` must be at least 16, not 15"
        );
        let env = BTreeMap::from([("A=B".to_owned(), String::new())]);
        assert!(refusal(SandboxSpec { env, ..SandboxSpec::default() }).starts_with("`env` has a name"));
    }

    #[test]
    fn a_manifest_path_that_leaves_the_workspace_is_refused_before_anything_exists() {
        let files = BTreeMap::from([("../x".to_owned(), Bytes::new())]);
        let manifest = Manifest { files, ..Manifest::default() };
        assert!(
            refusal(SandboxSpec { manifest, ..SandboxSpec::default() })
                .contains("cannot leave the workspace")
        );
    }

    #[test]
    fn every_limit_is_accepted_at_its_edge_and_refused_beyond_it() {
        let with = |limits| SandboxSpec { limits, ..SandboxSpec::default() }.validate();
        let pids = |pids| Limits { pids: Some(pids), ..Limits::default() };
        assert!(with(pids(8)).is_ok() && with(pids(7)).is_err());
        let cpus = |cpus| Limits { cpus: Some(cpus), ..Limits::default() };
        assert!(with(cpus(0.01)).is_ok() && with(cpus(0.0)).is_err() && with(cpus(f64::NAN)).is_err());
        let timeout = |timeout_ms| Limits { timeout_ms: Some(timeout_ms), ..Limits::default() };
        assert!(
            with(timeout(0)).is_ok()
                && with(timeout(1 << 53)).is_ok()
                && with(timeout((1 << 53) + 1)).is_err()
        );
    }

    #[test]
    fn a_network_is_a_word_a_switch_or_an_object_with_a_mode() {
        let network = |text: &str| {
            serde_json::from_str::<SandboxSpec>(&format!(r#"{{"network":{text}}}"#)).map(|spec| spec.network)
        };
        assert_eq!(network("true").unwrap(), NetworkMode::Egress);
        assert_eq!(network("false").unwrap(), NetworkMode::None);
        assert_eq!(network(r#""host""#).unwrap(), NetworkMode::Host);
        assert_eq!(network(r#""bridge""#).unwrap(), NetworkMode::Bridge);
        assert_eq!(network(r#"{"mode":"egress"}"#).unwrap(), NetworkMode::Egress);
        assert_eq!(network(r#"{"mode":true}"#).unwrap(), NetworkMode::Egress);
        for wrong in ["1", "null", r#""lan""#, "{}", r#"{"mode":"none","allow":[]}"#] {
            assert!(network(wrong).is_err(), "{wrong}");
        }
        assert_eq!(serde_json::to_string(&NetworkMode::Egress).unwrap(), r#""egress""#);
    }

    #[test]
    fn rules_of_a_network_that_has_none_and_rules_that_are_none_are_refused() {
        let spec: SandboxSpec = serde_json::from_str(r#"{"egress":{"allow":["example.com"]}}"#).unwrap();
        assert!(refusal(spec).starts_with("`egress` has rules"));
        let text = r#"{"network":true,"egress":{"allow":["127.0.0.1"]}}"#;
        assert!(
            serde_json::from_str::<SandboxSpec>(text).unwrap_err().to_string().contains("no rule can open")
        );
        let allow = vec!["example.com".parse().unwrap(); 257];
        let egress = EgressRules { allow, ..EgressRules::default() };
        let spec = SandboxSpec { network: NetworkMode::Egress, egress, ..SandboxSpec::default() };
        assert_eq!(refusal(spec), "`egress` may have 256 rules of a kind, not 257");
    }

    #[test]
    fn an_unknown_field_is_refused() {
        assert!(serde_json::from_str::<SandboxSpec>(r#"{"imagine":"x"}"#).is_err());
    }
}
