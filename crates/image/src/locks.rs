//! Who must not be in the store at once. Three locks, all of the kernel's, so that whoever is killed lets go:
//!
//! - `importing`: shared by whoever adds an image, until the index names it; alone by whoever removes what nothing names.
//! - `using`: shared by whoever makes a sandbox of an image, from the look-up until the sandbox's record names the layers;
//!   alone by whoever removes layers. It lasts for milliseconds.
//! - `turn`: passed by both kinds of takers of `using`, so that a remover comes to its turn however many sandboxes are
//!   being made.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use rustix::fs::{FlockOperation, flock};

/// A lock that is let go of by unlocking, not by closing: a process that is being started at that moment has a copy of every
/// descriptor until it runs its program, and the copy would hold the lock for so long.
#[derive(Debug)]
#[must_use]
pub struct Locked(File);

impl Locked {
    /// The `flock` that this open file has.
    pub fn new(file: File) -> Self {
        Self(file)
    }
}

impl Drop for Locked {
    fn drop(&mut self) {
        if let Err(error) = flock(&self.0, FlockOperation::Unlock) {
            tracing::debug!(%error, "a lock is let go of by closing its file");
        }
    }
}

/// An image's layers stay while this is held.
#[derive(Debug)]
#[must_use]
pub struct UseGuard {
    _held: Locked,
}

impl UseGuard {
    /// Blocks while layers are removed.
    pub(crate) fn shared(root: &Path) -> io::Result<Self> {
        let _turn = locked(root, "turn", FlockOperation::LockShared)?;
        Ok(Self { _held: locked(root, "using", FlockOperation::LockShared)? })
    }

    /// Blocks until nobody is about to use a layer.
    pub(crate) fn alone(root: &Path) -> io::Result<Self> {
        let _turn = locked(root, "turn", FlockOperation::LockExclusive)?;
        Ok(Self { _held: locked(root, "using", FlockOperation::LockExclusive)? })
    }
}

/// Blobs and layers that nothing names yet stay while this is held.
#[derive(Debug)]
pub(crate) struct ImportGuard {
    held: Locked,
}

impl ImportGuard {
    /// Blocks while what nothing names is removed.
    pub(crate) fn shared(root: &Path) -> io::Result<Self> {
        Ok(Self { held: locked(root, "importing", FlockOperation::LockShared)? })
    }

    /// Whoever was alone goes on together with others.
    pub(crate) fn share(self) -> io::Result<Self> {
        flock(&self.held.0, FlockOperation::LockShared)?;
        Ok(self)
    }

    /// `WouldBlock` while somebody adds an image.
    pub(crate) fn alone(root: &Path) -> io::Result<Self> {
        Ok(Self { held: locked(root, "importing", FlockOperation::NonBlockingLockExclusive)? })
    }
}

/// The index's own: held for one change of it.
pub(crate) fn index_lock(root: &Path) -> io::Result<Locked> {
    locked(root, "changing", FlockOperation::LockExclusive)
}

fn locked(root: &Path, name: &str, how: FlockOperation) -> io::Result<Locked> {
    let file =
        OpenOptions::new().write(true).create(true).truncate(false).mode(0o600).open(root.join(name))?;
    loop {
        match flock(&file, how) {
            Err(rustix::io::Errno::INTR) => {}
            other => return other.map(|()| Locked(file)).map_err(io::Error::from),
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
