//! The target of a watch: a directory, or a file by its name in its directory. No descriptor of it
//! stays open, since an open directory is not gone when it is removed. It is opened anew by its
//! path, and must then be the same one.

use rustix::fd::OwnedFd;
use rustix::fs::{FileType, OFlags};
use rustix::io::Errno;

use super::super::failure::FileError;
use super::super::locate::{Name, Target, file_type};
use super::tree::{FileIdentity, identity};
use crate::protocol::Location;

/// A place that is watched.
pub struct WatchTarget {
    location: Location,
    /// The directory that is watched.
    identity: FileIdentity,
    /// The name in it, when a file is watched.
    file: Option<Vec<u8>>,
}

impl WatchTarget {
    /// The place at a location, links followed, and its directory.
    pub fn find(location: &Location) -> Result<(Self, OwnedFd), FileError> {
        let target = Target::new(location)?;
        let found = rustix::fs::fstat(target.open(OFlags::PATH)?)?;
        let (directory, file) = if file_type(&found) == FileType::Directory {
            (target.open_directory()?, None)
        } else {
            let Name { parent, name } = target.resolved_name()?;
            (parent, Some(name))
        };
        let identity = identity(&rustix::fs::fstat(&directory)?);
        Ok((Self { location: location.clone(), identity, file }, directory))
    }

    /// The directory's identity.
    pub fn identity(&self) -> FileIdentity {
        self.identity
    }

    /// The name in the directory, when a file is watched.
    pub fn file(&self) -> Option<&[u8]> {
        self.file.as_deref()
    }

    /// Returns the position of the target's own name, if it has one.
    pub fn name(&self) -> Option<Name> {
        Target::new(&self.location).and_then(|target| target.resolved_name()).ok()
    }

    /// Tells whether the path still leads to the target. If want of memory or descriptors hides
    /// that, it does.
    pub fn holds(&self) -> bool {
        match self.look() {
            Ok(holds) => holds,
            Err(problem) => problem == Errno::MFILE.into() || problem == Errno::NOMEM.into(),
        }
    }

    fn look(&self) -> Result<bool, FileError> {
        let target = Target::new(&self.location)?;
        let Some(file) = &self.file else {
            return Ok(identity(&rustix::fs::fstat(target.open(OFlags::PATH)?)?) == self.identity);
        };
        let name = target.resolved_name()?;
        let is_there = name.name == *file && name.stat()?.is_some();
        Ok(is_there && identity(&rustix::fs::fstat(&name.parent)?) == self.identity)
    }

    /// Opens the directory, if it still is the one.
    pub fn open(&self) -> Option<OwnedFd> {
        let target = Target::new(&self.location).ok()?;
        let directory = target.open_directory().ok()?;
        let found = rustix::fs::fstat(&directory).ok()?;
        (identity(&found) == self.identity).then_some(directory)
    }
}
