//! Temporary files and folders with random names, needed only as long as the process that made them
//! lives. A process that is killed leaves them behind. Each is locked while it is in use, so the
//! next process can tell and remove the abandoned ones.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::Path;

use eyot_archive::remove_tree;
use rustix::fs::{FlockOperation, OFlags, flock};
use rustix::io::Errno;

/// Marks a file or a folder that was just made as in use, for as long as `open` is. Returns `false`
/// if another process has taken it for abandoned before; then make another one.
///
/// # Errors
/// Errors of the kernel.
pub fn keep(open: &File, path: &Path) -> io::Result<bool> {
    match flock(open, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => is_named(open, path),
        Err(Errno::WOULDBLOCK) => Ok(false),
        Err(error) => Err(error.into()),
    }
}

/// Removes everything in a folder that begins with `prefix`, belongs to this user, and is not in
/// use. Entries that can't be removed stay for the next sweep.
///
/// # Errors
/// Errors of reading the folder.
pub fn sweep_abandoned(folder: &Path, prefix: &str) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        if !entry.file_name().to_string_lossy().starts_with(prefix) {
            continue;
        }
        match sweep(&entry.path()) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => tracing::debug!(%error, path = %entry.path().display(), "sweep what was left"),
            Ok(()) => {}
        }
    }
    Ok(())
}

fn sweep(path: &Path) -> io::Result<()> {
    let flags = (OFlags::NOFOLLOW | OFlags::NONBLOCK).bits() as i32;
    let open = OpenOptions::new().read(true).custom_flags(flags).open(path)?;
    let found = open.metadata()?;
    let is_own = found.uid() == rustix::process::geteuid().as_raw();
    if !is_own || !(found.is_dir() || found.is_file()) || !keep(&open, path)? {
        return Ok(());
    }
    if found.is_dir() { remove_tree(path) } else { fs::remove_file(path) }
}

/// Tells whether an open file still has this name.
fn is_named(open: &File, path: &Path) -> io::Result<bool> {
    let found = open.metadata()?;
    match fs::symlink_metadata(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        named => named.map(|named| (named.dev(), named.ino()) == (found.dev(), found.ino())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_in_use_or_called_otherwise_stays_and_the_rest_goes() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        fs::create_dir_all(path("x-dead/below")).unwrap();
        fs::create_dir(path("x-used")).unwrap();
        for file in ["x-dead-file", "x-used-file", "other"] {
            fs::write(path(file), "").unwrap();
        }
        std::os::unix::fs::symlink("other", path("x-link")).unwrap();
        let used = ["x-used", "x-used-file"].map(|name| File::open(path(name)).unwrap());
        assert!(keep(&used[0], &path("x-used")).unwrap() && keep(&used[1], &path("x-used-file")).unwrap());
        sweep_abandoned(folder.path(), "x-").unwrap();
        let there = |name: &str| fs::symlink_metadata(path(name)).is_ok();
        assert!(!there("x-dead") && !there("x-dead-file"));
        assert!(there("x-used") && there("x-used-file") && there("other") && there("x-link"));
        drop(used);
        sweep_abandoned(folder.path(), "x-").unwrap();
        assert!(!there("x-used") && !there("x-used-file"));
    }

    #[test]
    fn what_was_swept_before_it_was_kept_is_told() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x");
        fs::create_dir(&path).unwrap();
        let open = File::open(&path).unwrap();
        sweep_abandoned(folder.path(), "x").unwrap();
        assert!(!keep(&open, &path).unwrap());
    }
}
