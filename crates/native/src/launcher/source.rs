//! The source of a bind: a path of the host that was resolved and checked before the launcher got
//! it. It is opened without following any link, so that a user who can rename a folder on the way
//! can't lead the bind elsewhere in the meantime.

use std::io;
use std::os::fd::{AsRawFd, OwnedFd};

use rustix::fs::{CWD, Mode, OFlags, ResolveFlags, StatVfsMountFlags};

/// An open source.
#[derive(Debug)]
pub(super) struct BindSource(OwnedFd);

impl BindSource {
    /// Opens a canonical path.
    ///
    /// # Errors
    /// `ELOOP` if a symbolic link is on the way or at the end; else those of openat2(2).
    pub(super) fn open(path: &str) -> io::Result<Self> {
        let flags = OFlags::PATH | OFlags::CLOEXEC;
        Ok(Self(rustix::fs::openat2(CWD, path, flags, Mode::empty(), ResolveFlags::NO_SYMLINKS)?))
    }

    /// Tells whether programs can't be run from it. An overlay does not inherit that from its
    /// layers.
    pub(super) fn is_noexec(&self) -> io::Result<bool> {
        Ok(rustix::fs::fstatvfs(&self.0)?.f_flag.contains(StatVfsMountFlags::NOEXEC))
    }

    /// Returns a path that leads to exactly the open file, in this process and while it is open.
    pub(super) fn path(&self) -> String {
        format!("/proc/self/fd/{}", self.0.as_raw_fd())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_that_became_a_link_is_not_followed() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap();
        let inner = root.join("upper/inner");
        std::fs::create_dir_all(&inner).unwrap();
        let open = BindSource::open(inner.to_str().unwrap()).unwrap();
        std::fs::rename(root.join("upper"), root.join("moved")).unwrap();
        std::os::unix::fs::symlink("moved", root.join("upper")).unwrap();
        let error = BindSource::open(inner.to_str().unwrap()).unwrap_err();
        assert_eq!(error.raw_os_error(), Some(libc::ELOOP));
        assert_eq!(std::fs::canonicalize(open.path()).unwrap(), root.join("moved/inner"));
    }
}
