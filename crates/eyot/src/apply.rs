//! Applying the changes of a sandbox's copy of a folder (a mount with `cow`) to that folder.

use async_trait::async_trait;
use serde::{Deserialize, Serialize};

use crate::error::Result;
use crate::path::SandboxPath;
use crate::snapshot::FileChange;
use crate::spec::SandboxId;

/// Options of an apply.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ApplyOptions {
    /// The target of the mount. By default the only one with a copy on write.
    pub target: Option<SandboxPath>,
    /// Only says what would be done.
    pub dry_run: bool,
}

/// A path that keeps an apply from being done.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ApplyConflict {
    /// The path inside.
    pub path: String,
    /// The reason.
    pub reason: ApplyConflictReason,
}

/// The reason of a conflict.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum ApplyConflictReason {
    /// The host has changed it since the sandbox was made.
    Changed,
    /// The host has made it since the sandbox was made.
    Added,
    /// The host has removed it since the sandbox was made.
    Removed,
    /// It was being written when the sandbox was made, and is too large to be compared.
    Unknown,
    /// The name is not UTF-8, or the file can't be read.
    Unreadable,
}

impl ApplyConflictReason {
    /// Returns the reason in words.
    pub fn words(self) -> &'static str {
        match self {
            Self::Changed => "the host changed it",
            Self::Added => "the host made it",
            Self::Removed => "the host removed it",
            Self::Unknown => "it was being written when the sandbox was made",
            Self::Unreadable => "it can't be read, or its name is not UTF-8",
        }
    }
}

/// The result of an apply, or of its dry run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ApplyReport {
    /// The target of the mount.
    pub target: SandboxPath,
    /// The changes, by path inside.
    pub changes: Vec<FileChange>,
    /// Sockets, pipes and devices, which are not applied, by path inside.
    pub left_out: Vec<String>,
    /// The paths that keep it from being done. Only a dry run has some: else they are the error.
    pub conflicts: Vec<ApplyConflict>,
    /// The changes are in the folder.
    pub applied: bool,
}

/// The mounts with a copy on write of a provider's sandboxes. The caller of these is on the host whose folders they are.
#[async_trait]
pub trait SandboxCowMounts: Send + Sync + 'static {
    /// Writes the changes of a sleeping sandbox's copy of a folder into that folder: all of them or, on a failure, none. A dry
    /// run takes a sandbox that runs, too.
    ///
    /// # Errors
    /// `conflict` if the host has changed one of the files since the sandbox was made, with their paths; `invalid` if the sandbox
    /// has no such mount.
    async fn apply(&self, sandbox: &SandboxId, options: &ApplyOptions) -> Result<ApplyReport>;
}
