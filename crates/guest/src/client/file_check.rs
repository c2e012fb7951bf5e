//! The check of a descriptor that a guest passed. The guest may pass anything, so nothing is asked
//! of the descriptor that could wait.

use std::io;
use std::os::fd::BorrowedFd;

use rustix::fs::{AtFlags, FileType, OFlags, StatxFlags};

/// The maker's rule for the files whose descriptors a guest may pass.
pub trait FileGate: Send + Sync {
    /// Tells whether a regular file is on the sandbox's own disk, overlay or workspace. It may take
    /// a moment: it is asked on a thread that may wait.
    ///
    /// # Errors
    /// If it can't be found out; the file is then not used.
    fn admits(&self, file: BorrowedFd<'_>) -> io::Result<bool>;
}

/// The origin of a passed file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum FileOrigin {
    /// It is the sandbox's own.
    Sandbox,
    /// It is somewhere else, or that is not known.
    Elsewhere,
}

/// Status flags that change nothing about reading and writing at an offset.
const HARMLESS: OFlags = OFlags::NONBLOCK
    .union(OFlags::CLOEXEC)
    .union(OFlags::NOFOLLOW)
    .union(OFlags::NOATIME)
    .union(OFlags::LARGEFILE);

/// Checks a passed descriptor: a regular file, open in this way and no other, and whose it is.
///
/// # Errors
/// The breach of the protocol, if no honest guest passes this.
pub(super) fn check_file(
    file: BorrowedFd<'_>,
    access: OFlags,
    gate: &dyn FileGate,
) -> Result<FileOrigin, String> {
    let flags = rustix::fs::fcntl_getfl(file).map_err(unknown)?;
    if flags.difference(HARMLESS) != access {
        return Err(format!("a descriptor with the flags {:#o}", flags.bits()));
    }
    // The type never changes, so no file system is asked for it.
    let how = AtFlags::EMPTY_PATH | AtFlags::STATX_DONT_SYNC;
    let found = rustix::fs::statx(file, "", how, StatxFlags::TYPE).map_err(unknown)?;
    if FileType::from_raw_mode(found.stx_mode.into()) != FileType::RegularFile {
        return Err("a descriptor of something that is not a regular file".to_owned());
    }
    Ok(match gate.admits(file) {
        Ok(true) => FileOrigin::Sandbox,
        Ok(false) => FileOrigin::Elsewhere,
        Err(error) => {
            tracing::debug!(%error, "find out where a passed file is");
            FileOrigin::Elsewhere
        }
    })
}

fn unknown(error: rustix::io::Errno) -> String {
    format!("a descriptor that can't be examined: {error}")
}

#[cfg(test)]
mod tests {
    use std::fs::{File, OpenOptions};
    use std::os::fd::AsFd;
    use std::os::unix::fs::OpenOptionsExt;

    use rustix::fs::{CWD, Mode};

    use super::*;

    struct Any;

    impl FileGate for Any {
        fn admits(&self, _: BorrowedFd<'_>) -> io::Result<bool> {
            Ok(true)
        }
    }

    struct Unknown;

    impl FileGate for Unknown {
        fn admits(&self, _: BorrowedFd<'_>) -> io::Result<bool> {
            Err(io::ErrorKind::NotFound.into())
        }
    }

    fn check(file: impl AsFd) -> Result<FileOrigin, String> {
        check_file(file.as_fd(), OFlags::RDONLY, &Any)
    }

    #[test]
    fn n6_only_a_regular_file_that_is_open_for_just_this_is_taken() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("f");
        std::fs::write(&path, "content").unwrap();
        let file = File::open(&path).unwrap();
        assert_eq!(check(&file), Ok(FileOrigin::Sandbox));
        assert_eq!(check_file(file.as_fd(), OFlags::RDONLY, &Unknown), Ok(FileOrigin::Elsewhere));
        assert!(check_file(file.as_fd(), OFlags::WRONLY, &Any).is_err());
        let writing = OpenOptions::new().write(true).open(&path).unwrap();
        assert_eq!(check_file(writing.as_fd(), OFlags::WRONLY, &Any), Ok(FileOrigin::Sandbox));
        assert!(check(&writing).is_err());
        for flags in [OFlags::PATH, OFlags::SYNC, OFlags::APPEND] {
            let file = rustix::fs::open(&path, OFlags::RDONLY | flags, Mode::empty()).unwrap();
            assert!(check(&file).unwrap_err().contains("flags"), "{flags:?}");
        }
        let both = OpenOptions::new().read(true).write(true).open(&path).unwrap();
        assert!(check(&both).is_err());
    }

    #[test]
    fn n6_nothing_but_a_regular_file_is_taken() {
        let folder = tempfile::tempdir().unwrap();
        let fifo = folder.path().join("fifo");
        rustix::fs::mkfifoat(CWD, &fifo, Mode::RUSR | Mode::WUSR).unwrap();
        let fifo = OpenOptions::new().read(true).custom_flags(0o4000).open(&fifo).unwrap();
        let (pipe, _writer) = std::io::pipe().unwrap();
        let directory = File::open(folder.path()).unwrap();
        let device = File::open("/dev/zero").unwrap();
        assert!(check(&pipe).unwrap_err().contains("not a regular file"));
        assert!(check(&fifo).unwrap_err().contains("not a regular file"));
        assert!(check(&device).unwrap_err().contains("not a regular file"));
        assert!(check(&directory).is_err());
        let (socket, _other) = std::os::unix::net::UnixStream::pair().unwrap();
        assert!(check(&socket).is_err());
    }
}
