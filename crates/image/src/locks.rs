//! Locks of the store. All three are the kernel's, so a process that is killed lets go of them:
//!
//! - `importing`: shared while an image is added, until the index names it; exclusive while unnamed
//!   items are removed.
//! - `using`: shared while a sandbox of an image is made, from the look-up until the sandbox's
//!   record names the layers; exclusive while layers are removed. It lasts for milliseconds.
//! - `turn`: passed by both kinds of takers of `using`, so that a remover gets its turn however
//!   many sandboxes are being made.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use rustix::fs::{FlockOperation, flock};

/// A file lock that is released by unlocking, not by closing. A process that is being started at
/// that moment has a copy of every descriptor until it runs its program, and the copy would hold
/// the lock for so long.
#[derive(Debug)]
#[must_use]
pub struct FileLock(File);

impl FileLock {
    /// Takes over the `flock` that this open file has.
    pub fn new(file: File) -> Self {
        Self(file)
    }
}

impl Drop for FileLock {
    fn drop(&mut self) {
        if let Err(error) = flock(&self.0, FlockOperation::Unlock) {
            tracing::debug!(%error, "a lock is let go of by closing its file");
        }
    }
}

/// Keeps an image's layers while it is held.
#[derive(Debug)]
#[must_use]
pub struct UseGuard {
    _held: FileLock,
}

impl UseGuard {
    /// Blocks while layers are removed.
    pub(crate) fn shared(root: &Path) -> io::Result<Self> {
        let _turn = locked(root, "turn", FlockOperation::LockShared)?;
        Ok(Self { _held: locked(root, "using", FlockOperation::LockShared)? })
    }

    /// Blocks until no process is about to use a layer.
    pub(crate) fn alone(root: &Path) -> io::Result<Self> {
        let _turn = locked(root, "turn", FlockOperation::LockExclusive)?;
        Ok(Self { _held: locked(root, "using", FlockOperation::LockExclusive)? })
    }
}

/// Keeps unnamed blobs and layers while it is held.
#[derive(Debug)]
pub(crate) struct ImportGuard {
    held: FileLock,
}

impl ImportGuard {
    /// Blocks while unnamed items are removed.
    pub(crate) fn shared(root: &Path) -> io::Result<Self> {
        Ok(Self { held: locked(root, "importing", FlockOperation::LockShared)? })
    }

    /// Turns the exclusive lock into a shared one.
    pub(crate) fn share(self) -> io::Result<Self> {
        flock(&self.held.0, FlockOperation::LockShared)?;
        Ok(self)
    }

    /// Takes the lock alone; `WouldBlock` while another process adds an image.
    pub(crate) fn alone(root: &Path) -> io::Result<Self> {
        Ok(Self { held: locked(root, "importing", FlockOperation::NonBlockingLockExclusive)? })
    }
}

/// Takes the lock of the index, held for one change of it.
pub(crate) fn index_lock(root: &Path) -> io::Result<FileLock> {
    locked(root, "changing", FlockOperation::LockExclusive)
}

fn locked(root: &Path, name: &str, how: FlockOperation) -> io::Result<FileLock> {
    let file =
        OpenOptions::new().write(true).create(true).truncate(false).mode(0o600).open(root.join(name))?;
    loop {
        match flock(&file, how) {
            Err(rustix::io::Errno::INTR) => {}
            other => return other.map(|()| FileLock(file)).map_err(io::Error::from),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_let_go_of_is_free_though_somebody_has_a_copy_of_its_descriptor() {
        let root = tempfile::tempdir().unwrap();
        let importing = ImportGuard::shared(root.path()).unwrap();
        let _copy = importing.held.0.try_clone().unwrap();
        assert!(ImportGuard::alone(root.path()).is_err());
        drop(importing);
        assert!(ImportGuard::alone(root.path()).is_ok());
    }
}
