//! The capabilities of a provider, as data: callers ask before, conformance cases are gated by it,
//! and a refusal names it.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use crate::error::{Result, SandboxOperationUnsupported};

/// One thing that a provider may or may not do beyond the required methods.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Capability {
    /// Shell lines run by a real bash or sh.
    Shell,
    /// A program and arguments without a shell.
    Argv,
    /// Commands on a terminal, with resize.
    Pty,
    /// Signals other than the kill of a whole tree.
    Signals,
    /// Killing a command kills every descendant, `setsid` and double-forked ones included.
    KillTree,
    /// Commands as another user than the sandbox's own.
    Users,
    /// Started processes with logs.
    Processes,
    /// Paths held beneath a directory against symbolic links.
    Beneath,
    /// Ranged reads without reading the whole file.
    RangedRead,
    /// Append in place.
    Append,
    /// Replacement of a file as a whole.
    AtomicWrite,
    /// Symbolic links exist.
    Symlinks,
    /// Glob.
    Glob,
    /// Grep.
    Grep,
    /// Trees as tar streams, in and out.
    Tar,
    /// TCP connections to a port inside.
    Dial,
    /// Files and directories can be watched.
    Watch,
    /// Current use of resources.
    Usage,
    /// Everything that runs can be listed.
    LiveProcesses,
    /// A sandbox can be opened again by another process.
    Reopen,
    /// Workspaces that outlive their sandbox.
    PersistentWorkspace,
    /// Folders of the host inside.
    Mounts,
    /// Network mode `host`.
    NetworkHost,
    /// Network mode `egress`.
    NetworkEgress,
    /// ttl and idle deadlines that fire with no Eyot process alive.
    Deadlines,
    /// Both can be changed while the sandbox lives.
    ChangeDeadlines,
    /// Sandboxes can be put to sleep and woken.
    Sleep,
    /// The files of a sandbox can be kept, gone back to, compared, and made into other sandboxes.
    Snapshots,
    /// Folders of the host of which a sandbox changes a copy of its own, whose changes can be applied to the folder.
    CowMounts,
    /// Images can be made of snapshots and sandboxes.
    Commit,
}

impl Capability {
    /// Returns the capability in words, such as `started processes with logs`.
    pub fn words(self) -> &'static str {
        match self {
            Self::Shell => "shell lines",
            Self::Argv => "programs with arguments",
            Self::Pty => "terminals",
            Self::Signals => "signals to processes",
            Self::KillTree => "ending whole process trees",
            Self::Users => "commands as other users",
            Self::Processes => "started processes with logs",
            Self::Beneath => "paths confined to a directory",
            Self::RangedRead => "reading parts of files",
            Self::Append => "appending to files",
            Self::AtomicWrite => "replacing files atomically",
            Self::Symlinks => "symbolic links",
            Self::Glob => "finding files",
            Self::Grep => "finding lines",
            Self::Tar => "trees as tar archives",
            Self::Dial => "connections to ports",
            Self::Watch => "watching files",
            Self::Usage => "usage of resources",
            Self::LiveProcesses => "listing everything that runs",
            Self::Reopen => "use by later processes",
            Self::PersistentWorkspace => "persistent workspaces",
            Self::Mounts => "folders of the host",
            Self::NetworkHost => "network of the host",
            Self::NetworkEgress => "network egress",
            Self::Deadlines => "deadlines without an Eyot process",
            Self::ChangeDeadlines => "changing deadlines",
            Self::Sleep => "sleep and wake",
            Self::Snapshots => "snapshots and forks",
            Self::CowMounts => "copies on write of folders of the host",
            Self::Commit => "images of snapshots",
        }
    }
}

/// The set of what a provider can do.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Capabilities(BTreeSet<Capability>);

impl Capabilities {
    /// These and no others.
    pub fn new(capabilities: impl IntoIterator<Item = Capability>) -> Self {
        Self(capabilities.into_iter().collect())
    }

    /// Returns whether this one is among them.
    pub fn has(&self, capability: Capability) -> bool {
        self.0.contains(&capability)
    }

    /// All of them, in order.
    pub fn iter(&self) -> impl Iterator<Item = Capability> + '_ {
        self.0.iter().copied()
    }

    /// Refuses `operation` with `options` for `provider` unless `capability` is there.
    pub fn require(
        &self,
        capability: Capability,
        provider: &str,
        operation: &str,
        options: &[&str],
    ) -> Result<()> {
        if self.has(capability) {
            Ok(())
        } else {
            Err(SandboxOperationUnsupported::new(operation, provider, options).into())
        }
    }
}
