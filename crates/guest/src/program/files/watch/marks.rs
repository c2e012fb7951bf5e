//! The kernel's side of a watch: one inotify instance and its marks.

use rustix::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use rustix::fs::inotify::{self, CreateFlags, WatchFlags};
use rustix::io::Errno;

use super::super::failure::{FileError, FileErrorKind};

/// The events that a directory's mark asks for.
const DIRECTORY: WatchFlags = WatchFlags::CREATE
    .union(WatchFlags::DELETE)
    .union(WatchFlags::MOVE)
    .union(WatchFlags::MODIFY)
    .union(WatchFlags::CLOSE_WRITE)
    .union(WatchFlags::ATTRIB)
    .union(WatchFlags::DELETE_SELF)
    .union(WatchFlags::MOVE_SELF)
    .union(WatchFlags::EXCL_UNLINK)
    .union(WatchFlags::ONLYDIR);
/// The event that the mark of the directory above asks for: a name has gone.
const PARENT: WatchFlags = WatchFlags::DELETE.union(WatchFlags::MOVED_FROM).union(WatchFlags::ONLYDIR);

/// An inotify instance.
pub struct Marks {
    inotify: OwnedFd,
}

impl Marks {
    /// One without marks.
    ///
    /// # Errors
    /// `quota` when the user has no more instances.
    pub fn new() -> Result<Self, FileError> {
        let flags = CreateFlags::CLOEXEC | CreateFlags::NONBLOCK;
        let inotify = inotify::init(flags).map_err(|errno| match errno {
            Errno::MFILE => FileError::new(
                FileErrorKind::Quota,
                "the sandbox's user has no inotify instance left (fs.inotify.max_user_instances); end a program \
                 that watches files, or another watch",
            ),
            errno => errno.into(),
        })?;
        Ok(Self { inotify })
    }

    /// Returns the descriptor that is readable when an event has come.
    pub fn fd(&self) -> BorrowedFd<'_> {
        self.inotify.as_fd()
    }

    /// Marks an open directory. One that is marked keeps its number.
    ///
    /// # Errors
    /// `quota` when the user has no more marks, `permission` when it may not be read.
    pub fn add(&self, directory: BorrowedFd<'_>) -> Result<i32, FileError> {
        inotify::add_watch(&self.inotify, path_of(directory), DIRECTORY).map_err(|errno| match errno {
            Errno::NOSPC => FileError::new(
                FileErrorKind::Quota,
                "the sandbox's user has no inotify watches left (fs.inotify.max_user_watches); watch a smaller place",
            ),
            errno => errno.into(),
        })
    }

    /// Marks the directory above the place, if it can be.
    pub fn add_parent(&self, directory: &OwnedFd) {
        inotify::add_watch(&self.inotify, path_of(directory.as_fd()), PARENT).unwrap_or_default();
    }

    /// Unmarks a directory. One that is gone is unmarked already.
    pub fn remove(&self, watch: i32) {
        inotify::remove_watch(&self.inotify, watch).unwrap_or_default();
    }
}

/// A path to what is open, whatever its names are: a thread may follow its own process's
/// descriptors.
fn path_of(directory: BorrowedFd<'_>) -> String {
    format!("/proc/self/fd/{}", directory.as_raw_fd())
}
