//! A file that is written beside its place and moved there when it is whole. Dropped before that,
//! it is gone.

use std::hash::{BuildHasher, Hasher, RandomState};

use rustix::fd::OwnedFd;
use rustix::fs::{AtFlags, Mode, OFlags, RenameFlags};
use rustix::io::Errno;

use super::failure::FileError;
use super::locate::Name;
use super::regular;

const ATTEMPTS: usize = 16;

/// A temporary file, `.eyot-<random>`, in the directory of the file that it will be.
pub struct Draft<'n> {
    place: &'n Name,
    temporary: String,
    file: OwnedFd,
    is_placed: bool,
}

impl<'n> Draft<'n> {
    /// Begins the file that will stand at `place`.
    pub fn new(place: &'n Name) -> Result<Self, Errno> {
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        for _ in 0..ATTEMPTS {
            let temporary = format!(".eyot-{:016x}", RandomState::new().build_hasher().finish());
            match rustix::fs::openat(&place.parent, &temporary, flags, Mode::RUSR | Mode::WUSR) {
                Ok(file) => {
                    return Ok(Self { place, temporary, file, is_placed: false });
                }
                Err(Errno::EXIST) => {}
                Err(errno) => return Err(errno),
            }
        }
        Err(Errno::EXIST)
    }

    /// Returns the file to write to.
    pub fn file(&self) -> &OwnedFd {
        &self.file
    }

    /// Moves the draft to its name, over an existing file, and returns its size.
    pub fn replace(mut self) -> Result<u64, FileError> {
        let size = regular::size(&rustix::fs::fstat(&self.file)?);
        let (parent, name) = (&self.place.parent, &self.place.name);
        rustix::fs::renameat(parent, &self.temporary, parent, name)?;
        self.is_placed = true;
        Ok(size)
    }

    /// Moves it to its place if nothing is there; else `already_exists`.
    pub fn place_new(mut self) -> Result<u64, FileError> {
        let size = regular::size(&rustix::fs::fstat(&self.file)?);
        let (parent, name) = (&self.place.parent, &self.place.name);
        match rustix::fs::renameat_with(parent, &self.temporary, parent, name, RenameFlags::NOREPLACE) {
            Ok(()) => self.is_placed = true,
            // Some file systems lack it. A link never replaces; the temporary name then goes with
            // the draft.
            Err(Errno::INVAL | Errno::NOSYS) => {
                rustix::fs::linkat(parent, &self.temporary, parent, name, AtFlags::empty())?;
            }
            Err(errno) => return Err(errno.into()),
        }
        Ok(size)
    }
}

impl Drop for Draft<'_> {
    fn drop(&mut self) {
        if !self.is_placed {
            // No caller is left to learn of an error, and a name that is gone already is fine.
            rustix::fs::unlinkat(&self.place.parent, &self.temporary, AtFlags::empty()).unwrap_or_default();
        }
    }
}
