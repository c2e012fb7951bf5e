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

/// An image's layers stay while this is held.
#[derive(Debug)]
#[must_use]
pub struct UseGuard {
    _held: File,
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
    held: File,
}

impl ImportGuard {
    /// Blocks while what nothing names is removed.
    pub(crate) fn shared(root: &Path) -> io::Result<Self> {
        Ok(Self { held: locked(root, "importing", FlockOperation::LockShared)? })
    }

    /// Whoever was alone goes on together with others.
    pub(crate) fn share(self) -> io::Result<Self> {
        flock(&self.held, FlockOperation::LockShared)?;
        Ok(self)
    }

    /// `WouldBlock` while somebody adds an image.
    pub(crate) fn alone(root: &Path) -> io::Result<Self> {
        Ok(Self { held: locked(root, "importing", FlockOperation::NonBlockingLockExclusive)? })
    }
}

/// The index's own: held for one change of it.
pub(crate) fn index_lock(root: &Path) -> io::Result<File> {
    locked(root, "changing", FlockOperation::LockExclusive)
}

fn locked(root: &Path, name: &str, how: FlockOperation) -> io::Result<File> {
    let file =
        OpenOptions::new().write(true).create(true).truncate(false).mode(0o600).open(root.join(name))?;
    loop {
        match flock(&file, how) {
            Err(rustix::io::Errno::INTR) => {}
            other => return other.map(|()| file).map_err(io::Error::from),
        }
    }
}
