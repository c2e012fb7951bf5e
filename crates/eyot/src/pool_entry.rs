//! A sandbox of a pool as it is listed, and the services that run in it. What a pool does is the engine's.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::spec::SandboxName;

/// A sandbox of a pool.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct PoolEntry {
    /// The name.
    #[cfg_attr(feature = "openapi", schema(value_type = String))]
    pub name: SandboxName,
    /// The image, as it was named.
    pub image: String,
    /// The status.
    pub status: PoolStatus,
}

/// The status of a sandbox of a pool.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum PoolStatus {
    /// It answers at once.
    Running,
    /// It wakes when it is used.
    Sleeping,
    /// The kept state can't be read. It can only be removed.
    Damaged,
}

/// A program that runs whenever its sandbox is awake.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct Service {
    /// A shell line.
    pub command: String,
    /// The directory in which it starts, resolved against the working directory.
    #[serde(default)]
    pub cwd: Option<String>,
    /// Variables layered over the sandbox's.
    #[serde(default)]
    pub env: BTreeMap<String, String>,
}
