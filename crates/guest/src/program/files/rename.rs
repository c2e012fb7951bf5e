//! Moving a file or a directory, with the semantics of rename(2): a link is moved itself.

use rustix::io::Errno;

use super::failure::{FileError, FileErrorKind};
use super::locate::Target;
use crate::protocol::{Location, Reply};

/// Moves `from` to `to`, replacing a file or an empty directory there. Another file system is a
/// `conflict`.
pub fn rename(from: &Location, to: &Location) -> Result<Reply, FileError> {
    let from = Target::new(from)?.name()?;
    let to = Target::new(to)?.name()?;
    rustix::fs::renameat(&from.parent, &from.name, &to.parent, &to.name).map_err(|errno| match errno {
        Errno::XDEV => FileError::new(FileErrorKind::Conflict, "the target is on another file system"),
        Errno::NOTEMPTY | Errno::EXIST => {
            FileError::new(FileErrorKind::AlreadyExists, "the target is a directory that is not empty")
        }
        Errno::INVAL => FileError::invalid("a directory can't be moved into itself"),
        Errno::ISDIR => FileError::new(FileErrorKind::IsDirectory, "the target is a directory"),
        Errno::NOTDIR => FileError::new(FileErrorKind::NotDirectory, "the target is not a directory"),
        other => other.into(),
    })?;
    Ok(Reply::Done)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::program::files::fake_io::beneath;
    use std::os::unix::fs::symlink;

    #[test]
    fn what_is_in_the_way_is_replaced_or_the_reason_is_told() {
        let dir = tempfile::tempdir().unwrap();
        let path = |name: &str| dir.path().join(name);
        let go = |from: &str, to: &str| rename(&beneath(dir.path(), from), &beneath(dir.path(), to));
        std::fs::write(path("a"), "a").unwrap();
        std::fs::write(path("b"), "b").unwrap();
        std::fs::create_dir_all(path("full/x")).unwrap();
        std::fs::create_dir(path("empty")).unwrap();
        go("a", "b").unwrap();
        assert_eq!(std::fs::read(path("b")).unwrap(), b"a");
        assert_eq!(go("a", "b").unwrap_err().kind, FileErrorKind::NotFound);
        assert_eq!(go("b", "full").unwrap_err().kind, FileErrorKind::IsDirectory);
        assert_eq!(go("empty", "full").unwrap_err().kind, FileErrorKind::AlreadyExists);
        assert_eq!(go("empty", "b").unwrap_err().kind, FileErrorKind::NotDirectory);
        assert_eq!(go("full", "full/x/y").unwrap_err().kind, FileErrorKind::Invalid);
        assert_eq!(go("", "c").unwrap_err().kind, FileErrorKind::Invalid);
        go("full", "empty").unwrap();
        assert!(path("empty/x").is_dir());
    }

    #[test]
    fn f1_a_link_is_moved_itself_and_never_leads_out() {
        let (dir, outside) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        std::fs::write(outside.path().join("canary"), "").unwrap();
        symlink(outside.path(), dir.path().join("out")).unwrap();
        let out = rename(&beneath(dir.path(), "out/canary"), &beneath(dir.path(), "mine"));
        assert_eq!(out.unwrap_err().kind, FileErrorKind::Permission);
        rename(&beneath(dir.path(), "out"), &beneath(dir.path(), "moved")).unwrap();
        assert!(dir.path().join("moved").is_symlink() && outside.path().join("canary").exists());
    }
}
