//! Sandboxes on the wire.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::capabilities::Capability;
use crate::files::DirEntry;
use crate::isolation::Isolation;
use crate::path::SandboxPath;
use crate::pool::{PoolEntry, Service};
use crate::process::{ProcessInfo, Usage};
use crate::provider::{SandboxInfo, SandboxStatus};
use crate::published::PublishedPort;
use crate::spec::{SandboxId, SandboxName, SandboxSpec};

/// What to make.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct CreateSandbox {
    /// The pool; by default the key's own.
    #[serde(default)]
    pub pool: Option<String>,
    /// What to make it from; every part has a default.
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
    /// Its id, never used twice.
    #[cfg_attr(feature = "openapi", schema(value_type = String, example = "sb_0192f0c1e7d87c3e9a4b5c6d7e8f9a0b"))]
    pub id: SandboxId,
    /// Its name in its pool.
    #[cfg_attr(feature = "openapi", schema(value_type = String))]
    pub name: SandboxName,
    /// Its pool.
    #[cfg_attr(feature = "openapi", schema(value_type = String))]
    pub pool: SandboxName,
    /// The provider.
    pub provider: String,
    /// Whether it can be used.
    pub status: SandboxStatus,
    /// Which of its lives this is: another text after every wake. Empty where it was not looked at: in a list of Docker's.
    pub life: String,
    /// The working directory.
    #[cfg_attr(feature = "openapi", schema(value_type = String))]
    pub workdir: SandboxPath,
    /// When it was made, in milliseconds since 1970 (UTC).
    pub created_ms: i64,
    /// When its ttl ends (RFC 3339); `null`: never.
    pub expires_at: Option<String>,
    /// The time without use after which it sleeps or is destroyed, in milliseconds; `null`: any.
    pub idle_timeout_ms: Option<u64>,
    /// Its labels.
    pub labels: BTreeMap<String, String>,
    /// What it was made from, without the values of variables and the contents of files.
    pub spec: SandboxSpec,
    /// The names of its variables.
    pub env_names: Vec<String>,
    /// What holds around it.
    pub isolation: Isolation,
}

impl SandboxAnswer {
    /// What is known of the sandbox, as far as it is told.
    pub fn info(self) -> SandboxInfo {
        let Self { id, name, provider, status, workdir, created_ms, spec, isolation, life, .. } = self;
        SandboxInfo { id, name, provider, status, workdir, created_ms, spec, isolation, life }
    }
}

/// Some sandboxes of a pool, oldest first.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct SandboxList {
    /// The sandboxes.
    pub sandboxes: Vec<SandboxAnswer>,
    /// What to send as `cursor` for those that follow; `null`: there are none.
    pub next_cursor: Option<String>,
}

/// What a sandbox can do and what it uses now.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct UsageAnswer {
    /// What it uses; what the provider can't tell is absent.
    pub usage: Usage,
}

/// What the server's sandboxes can do, and what would hold around one.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct CapabilitiesAnswer {
    /// The provider.
    pub provider: String,
    /// What its sandboxes can do.
    pub capabilities: Vec<Capability>,
    /// What would hold around one that is made from a default spec.
    pub isolation: Isolation,
}

/// How large a file is now.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Written {
    /// In bytes.
    pub size: u64,
}

/// Whether something is there.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Exists {
    /// It is.
    pub exists: bool,
}

/// What is in a directory.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Listing {
    /// Sorted by name.
    pub entries: Vec<DirEntry>,
}

/// What was unpacked.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Unpacked {
    /// How many entries were made.
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
    /// Its name.
    #[cfg_attr(feature = "openapi", schema(value_type = String))]
    pub name: SandboxName,
    /// Its sandboxes, by name.
    pub sandboxes: Vec<PoolEntry>,
}

/// What a pool's sandbox is made from, where that differs from the pool's template.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(default, deny_unknown_fields)]
pub struct MemberBody {
    /// Its image: an alias of the pool, or what the provider knows by that name.
    pub image: Option<String>,
    /// It sleeps after this many idle milliseconds; by default the pool's number.
    pub sleep_after_ms: Option<u64>,
    /// What runs in it whenever it is awake.
    pub services: Vec<Service>,
}

/// What to copy between sandboxes of a pool.
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
