//! Access to the folder that is being filled. The archive may have made links on the way; the
//! kernel resolves them with the folder as the root, so they lead nowhere else.

use std::ffi::OsStr;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::{Path, PathBuf};

use rustix::fs::{Mode, OFlags, ResolveFlags};
use rustix::io::Errno;

use crate::failure::refused;

/// The number of times that a look-up is repeated if the kernel could not be sure about it.
const MAX_ATTEMPTS: usize = 128;
const DIRECTORY: OFlags = OFlags::PATH.union(OFlags::DIRECTORY);

/// The folder, and the directory that was reached last: entries come in the order of their
/// directories.
pub(super) struct UnpackRoot {
    root: OwnedFd,
    last: Option<(PathBuf, OwnedFd)>,
}

impl UnpackRoot {
    pub(super) fn open(path: &Path) -> io::Result<Self> {
        let flags = DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        Ok(Self { root: rustix::fs::open(path, flags, Mode::empty())?, last: None })
    }

    /// Returns the folder itself.
    pub(super) fn itself(&self) -> &OwnedFd {
        &self.root
    }

    /// Returns the directory at `path`; it and its parents are made if they are missing.
    pub(super) fn directory(&mut self, path: &Path) -> io::Result<&OwnedFd> {
        let is_known = self.last.as_ref().is_some_and(|(known, _)| known == path);
        if !is_known {
            let found = match self.find(path, DIRECTORY) {
                Err(Errno::NOENT) => self.make(path)?,
                found => found.map_err(|error| lookup_error(path, error))?,
            };
            self.last = Some((path.to_owned(), found));
        }
        match &self.last {
            Some((_, directory)) => Ok(directory),
            None => Ok(&self.root),
        }
    }

    /// Returns the directory that holds the last name of `path`, and that name.
    pub(super) fn parent<'p>(&mut self, path: &'p Path) -> io::Result<(&OwnedFd, &'p OsStr)> {
        let name = path.file_name().ok_or_else(|| refused("it has an entry without a name"))?;
        Ok((self.directory(path.parent().unwrap_or(Path::new("")))?, name))
    }

    /// Opens a path, with the folder as the root.
    pub(super) fn find(&self, path: &Path, flags: OFlags) -> Result<OwnedFd, Errno> {
        let path = if path.as_os_str().is_empty() { Path::new(".") } else { path };
        let resolve = ResolveFlags::IN_ROOT | ResolveFlags::NO_MAGICLINKS;
        for _ in 0..MAX_ATTEMPTS {
            match rustix::fs::openat2(&self.root, path, flags | OFlags::CLOEXEC, Mode::empty(), resolve) {
                // The kernel could not be sure about `..` because something was renamed; see
                // openat2(2).
                Err(Errno::AGAIN) => std::thread::yield_now(),
                Err(Errno::INTR) => {}
                result => return result,
            }
        }
        Err(Errno::AGAIN)
    }

    fn make(&self, path: &Path) -> io::Result<OwnedFd> {
        let mut at = self.root.try_clone()?;
        let mut reached = PathBuf::new();
        for name in path.iter() {
            reached.push(name);
            at = match self.find(&reached, DIRECTORY) {
                Err(Errno::NOENT) => {
                    match rustix::fs::mkdirat(&at, name, Mode::from_raw_mode(0o755)) {
                        Err(Errno::EXIST) => {
                            let message =
                                format!("entry `{}` goes through a link that leads nowhere", path.display());
                            return Err(refused(message));
                        }
                        made => made?,
                    }
                    rustix::fs::openat(
                        &at,
                        name,
                        DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC,
                        Mode::empty(),
                    )?
                }
                found => found.map_err(|error| lookup_error(path, error))?,
            };
        }
        Ok(at)
    }
}

fn lookup_error(path: &Path, error: Errno) -> io::Error {
    match error {
        Errno::NOTDIR => {
            refused(format!("entry `{}` is below something that is no directory", path.display()))
        }
        Errno::LOOP => refused(format!("entry `{}` goes through a loop of links", path.display())),
        Errno::NAMETOOLONG => refused(format!("entry `{}` has too long a name", path.display())),
        error => error.into(),
    }
}

/// Returns a path to exactly the file that is open, whatever has its name by now.
pub(super) fn handle(open: &OwnedFd) -> String {
    format!("/proc/self/fd/{}", open.as_raw_fd())
}
