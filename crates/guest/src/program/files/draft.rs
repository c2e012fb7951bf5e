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

    /// Does the same where nothing must outlive a crash of the host. ext4 sends a file to the disk at
    /// once when it is renamed over another one (`auto_da_alloc`), which takes longer than all the
    /// rest. A file that changes places with another one is not sent.
    pub fn replace_in_volatile(mut self) -> Result<u64, FileError> {
        if !self.change_places() {
            return self.replace();
        }
        self.is_placed = true;
        Ok(regular::size(&rustix::fs::fstat(&self.file)?))
    }

    /// Changes places with the file at the name and removes that file. Returns `false` if it did not:
    /// nothing is changed then.
    fn change_places(&self) -> bool {
        let (parent, name, temporary) = (&self.place.parent, &self.place.name, &self.temporary);
        // In this order, the last that a watch of the directory learns is that the name is there.
        let exchange =
            || rustix::fs::renameat_with(parent, name, parent, temporary, RenameFlags::EXCHANGE).is_ok();
        if !exchange() {
            return false;
        }
        let is_removed = rustix::fs::unlinkat(parent, temporary, AtFlags::empty()).is_ok();
        // A directory has come to the place meanwhile: back to where it was, and a rename says so.
        is_removed || !exchange()
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

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::program::files::failure::FileErrorKind;
    use crate::program::files::fake_io::at;
    use crate::program::files::locate::Target;
    use crate::program::files::write::write_all;

    fn write_over(place: &Path) -> Result<u64, FileError> {
        let name = Target::new(&at(place))?.name()?;
        let draft = Draft::new(&name)?;
        write_all(draft.file(), b"new one")?;
        draft.replace_in_volatile()
    }

    fn names(folder: &Path) -> Vec<String> {
        let entries = std::fs::read_dir(folder).unwrap();
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
    }

    #[test]
    fn a_file_changes_places_with_the_old_one_which_is_gone_then() {
        let folder = tempfile::tempdir().unwrap();
        let place = folder.path().join("f");
        std::fs::write(&place, "old").unwrap();
        assert_eq!(write_over(&place).unwrap(), 7);
        assert_eq!(std::fs::read(&place).unwrap(), b"new one");
        assert_eq!(names(folder.path()), ["f"]);
        std::fs::remove_file(&place).unwrap();
        assert_eq!(write_over(&place).unwrap(), 7);
        assert_eq!(names(folder.path()), ["f"]);
    }

    #[test]
    fn a_directory_that_came_to_the_place_stays_there() {
        let folder = tempfile::tempdir().unwrap();
        let place = folder.path().join("f");
        std::fs::create_dir(&place).unwrap();
        std::fs::write(place.join("inside"), "").unwrap();
        assert_eq!(write_over(&place).unwrap_err().kind, FileErrorKind::IsDirectory);
        assert_eq!(names(folder.path()), ["f"]);
        assert!(place.join("inside").exists());
    }
}
