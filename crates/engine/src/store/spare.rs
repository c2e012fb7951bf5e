//! Spare room on the disk, in a file beside the store. A disk that is full to its last block leaves
//! SQLite no room to open the store, and then nothing could be destroyed to make room. The spare is
//! given up for that, and put back once there is room again.

use std::fs::{self, OpenOptions};
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use rustix::fs::{FallocateFlags, fallocate, statvfs};

/// The room that is kept: SQLite's log and its index take some 70 KiB, an event less than one.
const SPARE_BYTES: u64 = 512 << 10;
/// A disk with less room gets no spare.
const LEAST_ROOM_BYTES: u64 = 8 << 20;

fn file(folder: &Path) -> PathBuf {
    folder.join("eyot.db.spare")
}

/// Keeps spare room in this folder, if there is none and the disk has enough. The store is good
/// without it, so a failure is only noted.
pub(super) fn keep(folder: &Path) {
    let path = file(folder);
    if path.exists() || free_bytes(folder) < LEAST_ROOM_BYTES {
        return;
    }
    if let Err(error) = make(&path) {
        tracing::debug!(%error, "keep spare room beside the store");
        give_up(folder);
    }
}

fn make(path: &Path) -> io::Result<()> {
    let file = OpenOptions::new().write(true).create(true).truncate(false).mode(0o600).open(path)?;
    Ok(fallocate(&file, FallocateFlags::empty(), 0, SPARE_BYTES)?)
}

/// Frees the spare room. `false`: there was none.
pub(super) fn give_up(folder: &Path) -> bool {
    fs::remove_file(file(folder)).is_ok()
}

fn free_bytes(folder: &Path) -> u64 {
    statvfs(folder).map_or(0, |disk| disk.f_bavail.saturating_mul(disk.f_frsize))
}
