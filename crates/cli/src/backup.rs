//! A state folder as one file, and back: a tar compressed with zstd, whose first entry describes
//! it.
//!
//! It contains everything that cannot be made again: the store (pools, keys' hashes), the event
//! log, images, persistent workspaces, and the files of sleeping sandboxes, with owners,
//! permissions, times to the nanosecond, extended attributes, hard links and the marks of files
//! that were removed from an image. It does not contain what belongs to this boot of this host:
//! sockets, locks, control groups, `trash`.

mod header;
mod pack;
mod place;
mod unpack;

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use serde::{Deserialize, Serialize};

pub use pack::{Contents, pack};
pub use unpack::unpack;

/// The name of the entry that describes the file. It comes first.
const MANIFEST: &str = "eyot-backup.json";
/// The name of the store.
const STORE: &str = "eyot.db";
/// The folders of a state folder that a backup contains.
const FOLDERS: [&str; 8] =
    ["events", "sandboxes", "names", "blocks", "workspaces", "layers", "snapshots", "images"];
/// The largest first entry, and the largest description of an entry (names, targets of links,
/// extended attributes), in bytes.
const MAX_HEADER_BYTES: u64 = 4 << 20;
/// The version of the file's format. Others are refused.
const FORMAT: u32 = 1;

/// The description of a backup, which is its first entry.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct BackupManifest {
    /// The version of the file's format.
    pub format: u32,
    /// The version of Eyot that made it.
    pub eyot: String,
    /// The path of the state folder that it was made of.
    pub state: PathBuf,
    /// Set if root made it. Only then do its files have their owners' ids.
    pub as_root: bool,
    /// The ids of the sandboxes in it.
    pub sandboxes: Vec<String>,
}

/// The progress of long work, with a way to stop it.
#[derive(Debug, Clone, Default)]
pub struct TaskProgress(Arc<ProgressState>);

#[derive(Debug, Default)]
struct ProgressState {
    bytes: AtomicU64,
    entries: AtomicU64,
    is_over: AtomicBool,
}

impl TaskProgress {
    /// Makes the work end soon, with an error.
    pub fn stop(&self) {
        self.0.is_over.store(true, Ordering::Relaxed);
    }

    /// Returns the number of bytes of files that were written so far.
    pub fn bytes(&self) -> u64 {
        self.0.bytes.load(Ordering::Relaxed)
    }

    /// Returns the number of files, directories and links that were written so far.
    pub fn entries(&self) -> u64 {
        self.0.entries.load(Ordering::Relaxed)
    }

    fn entry(&self) -> std::io::Result<()> {
        self.0.entries.fetch_add(1, Ordering::Relaxed);
        self.advance(0)
    }

    fn advance(&self, bytes: u64) -> std::io::Result<()> {
        self.0.bytes.fetch_add(bytes, Ordering::Relaxed);
        self.check()
    }

    /// Fails if the work was stopped.
    pub fn check(&self) -> std::io::Result<()> {
        if self.0.is_over.load(Ordering::Relaxed) {
            // Not the kind that is tried again.
            Err(std::io::Error::other("it was interrupted"))
        } else {
            Ok(())
        }
    }
}

/// Makes the manifest of a backup of a state folder, with these sandboxes.
pub fn manifest(state: &std::path::Path, sandboxes: &[eyot::SandboxId]) -> BackupManifest {
    BackupManifest {
        format: FORMAT,
        eyot: env!("CARGO_PKG_VERSION").to_owned(),
        state: state.to_owned(),
        as_root: rustix::process::geteuid().is_root(),
        sandboxes: sandboxes.iter().map(ToString::to_string).collect(),
    }
}
