//! Sandboxes on the wire.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::capabilities::Capability;
use crate::created::{SandboxInfo, SandboxStatus};
use crate::files::DirEntry;
use crate::isolation::Isolation;
use crate::path::SandboxPath;
use crate::pool_entry::{PoolEntry, Service};
use crate::process::{ProcessInfo, Usage};
use crate::published::PublishedPort;
use crate::spec::{SandboxId, SandboxName, SandboxSpec};

/// A sandbox to make.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct CreateSandbox {
    /// The pool; by default the key's own.
    #[serde(default)]
    pub pool: Option<String>,
    /// The spec to make it from; every part has a default.
    #[serde(default)]
    pub spec: SandboxSpec,
    /// Answer with the sandbox that has the name already, woken if it sleeps, instead of refusing.
    #[serde(default)]
    pub get_or_create: bool,
}

/// A sandbox.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct SandboxAnswer {
    /// The id, never used twice.
    #[cfg_attr(feature = "openapi", schema(value_type = String, example = "sb_0192f0c1e7d87c3e9a4b5c6d7e8f9a0b"))]
    pub id: SandboxId,
    /// The name in its pool.
    #[cfg_attr(feature = "openapi", schema(value_type = String))]
    pub name: SandboxName,
    /// The pool.
    #[cfg_attr(feature = "openapi", schema(value_type = String))]
    pub pool: SandboxName,
    /// The provider.
    pub provider: String,
    /// The status.
    pub status: SandboxStatus,
    /// The life of the sandbox: another text after every wake. Empty in lists of Docker's
    /// sandboxes, which do not look it up.
    pub life: String,
    /// The working directory.
    #[cfg_attr(feature = "openapi", schema(value_type = String))]
    pub workdir: SandboxPath,
    /// The time at which it was made, in milliseconds since 1970 (UTC).
    pub created_ms: i64,
    /// The time at which its ttl ends (RFC 3339); `null`: never.
    pub expires_at: Option<String>,
    /// The time without use after which it sleeps or is destroyed, in milliseconds; `null`: any.
    pub idle_timeout_ms: Option<u64>,
    /// The labels.
    pub labels: BTreeMap<String, String>,
    /// The spec it was made from, without the values of variables and the contents of files.
    pub spec: SandboxSpec,
    /// The names of its variables.
    pub env_names: Vec<String>,
    /// The protections around it.
    pub isolation: Isolation,
}

impl SandboxAnswer {
    /// Returns what is known of the sandbox, as far as it is told.
    pub fn info(self) -> SandboxInfo {
        let Self { id, name, pool, provider, status, workdir, created_ms, spec, isolation, life, .. } = self;
        let pool = Some(pool);
        SandboxInfo { id, name, pool, provider, status, workdir, created_ms, spec, isolation, life }
    }
}

/// Some sandboxes of a pool, oldest first.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct SandboxList {
    /// The sandboxes.
    pub sandboxes: Vec<SandboxAnswer>,
    /// The `cursor` to send for those that follow; `null`: there are none.
    pub next_cursor: Option<String>,
}

/// A sandbox's use of resources now.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct UsageAnswer {
    /// The figures; those that the provider does not know are absent.
    pub usage: Usage,
}

/// The capabilities of the server's sandboxes, and the protections around one.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct CapabilitiesAnswer {
    /// The provider.
    pub provider: String,
    /// The capabilities of its sandboxes.
    pub capabilities: Vec<Capability>,
    /// The protections that would hold around one that is made from a default spec.
    pub isolation: Isolation,
}

/// The size of a file after a write.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Written {
    /// In bytes.
    pub size: u64,
}

/// The answer whether something is there.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Exists {
    /// It is.
    pub exists: bool,
}

/// The entries of a directory.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Listing {
    /// Sorted by name.
    pub entries: Vec<DirEntry>,
}

/// The result of unpacking.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Unpacked {
    /// The number of entries that were made.
    pub entries: u64,
}

/// The published ports.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct PublishedPorts {
    /// In the order in which the spec has them.
    pub ports: Vec<PublishedPort>,
}

/// Started processes.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct ProcessList {
    /// Oldest first; of those that ended, the last 64.
    pub processes: Vec<ProcessInfo>,
}

/// The pools that a key opens; the first is its own.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct PoolList {
    /// Their names.
    #[cfg_attr(feature = "openapi", schema(value_type = Vec<String>))]
    pub pools: Vec<SandboxName>,
}

/// A pool.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct PoolAnswer {
    /// The name.
    #[cfg_attr(feature = "openapi", schema(value_type = String))]
    pub name: SandboxName,
    /// The sandboxes, by name.
    pub sandboxes: Vec<PoolEntry>,
}

/// The properties of a pool's sandbox, where they differ from the pool's template.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(default, deny_unknown_fields)]
pub struct MemberBody {
    /// The image: an alias of the pool, or what the provider knows by that name.
    pub image: Option<String>,
    /// It sleeps after this many idle milliseconds; by default the pool's number.
    pub sleep_after_ms: Option<u64>,
    /// The programs that run in it whenever it is awake.
    pub services: Vec<Service>,
}

/// A copy between sandboxes of a pool.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct TransferBody {
    /// The sandbox that has it.
    pub from: String,
    /// The sandbox that gets it; made if need be.
    pub to: String,
    /// The path in the one.
    pub from_path: String,
    /// The path in the other; not a directory to put it in. Parents are made.
    pub to_path: String,
    /// Directories are copied with everything below them.
    #[serde(default)]
    pub recursive: bool,
}
