//! A state folder as one file, and back: a tar compressed with zstd, whose first entry says what it is.
//!
//! Everything is in it that can't be made again: the store (pools, keys' hashes), the event log, images, persistent
//! workspaces, and the files of sandboxes that sleep, with owners, permissions, times to the nanosecond, extended attributes,
//! hard links and the marks of what was removed from an image. What belongs to this boot of this host is not: sockets, locks,
//! control groups, `trash`.

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

/// The entry that says what the file is. It comes first.
const MANIFEST: &str = "eyot-backup.json";
/// The store.
const STORE: &str = "eyot.db";
/// The folders of a state folder that are kept.
const FOLDERS: [&str; 7] = ["events", "sandboxes", "names", "blocks", "workspaces", "layers", "images"];
/// How large the first entry may be, and what describes an entry: names, targets of links, extended attributes.
const MAX_HEADER_BYTES: u64 = 4 << 20;
/// The form of the file. Another one is refused.
const FORMAT: u32 = 1;

/// What a backup says of itself.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Manifest {
    /// The form of the file.
    pub format: u32,
    /// Which Eyot made it.
    pub eyot: String,
    /// Where the state folder was.
    pub state: PathBuf,
    /// Whether root made it: then files have the ids of whom they belong to.
    pub as_root: bool,
    /// The ids of the sandboxes in it.
    pub sandboxes: Vec<String>,
}

/// How far the work is, and whether it is wanted any more.
#[derive(Debug, Clone, Default)]
pub struct Course(Arc<Shared>);

#[derive(Debug, Default)]
struct Shared {
    bytes: AtomicU64,
    entries: AtomicU64,
    is_over: AtomicBool,
}

impl Course {
    /// Has the work end with an error, soon.
    pub fn stop(&self) {
        self.0.is_over.store(true, Ordering::Relaxed);
    }

    /// How many bytes of files have passed.
    pub fn bytes(&self) -> u64 {
        self.0.bytes.load(Ordering::Relaxed)
    }

    /// How many files, directories and links have passed.
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

    /// An error once the work is not wanted any more.
    pub fn check(&self) -> std::io::Result<()> {
        if self.0.is_over.load(Ordering::Relaxed) {
            // Not the kind that is tried again.
            Err(std::io::Error::other("it was interrupted"))
        } else {
            Ok(())
        }
    }
}

/// That of a state folder, with these sandboxes.
pub fn manifest(state: &std::path::Path, sandboxes: &[eyot::SandboxId]) -> Manifest {
    Manifest {
        format: FORMAT,
        eyot: env!("CARGO_PKG_VERSION").to_owned(),
        state: state.to_owned(),
        as_root: rustix::process::geteuid().is_root(),
        sandboxes: sandboxes.iter().map(ToString::to_string).collect(),
    }
}
