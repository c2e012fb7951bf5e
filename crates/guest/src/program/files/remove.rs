//! Removing, with the semantics of Node's `fs.rm`: a link goes itself, never its target.

use rustix::fs::{AtFlags, FileType};
use rustix::io::Errno;

use super::failure::{FileError, FileErrorKind};
use super::locate::{Target, file_type};
use super::tree;
use crate::program::call_io::CallIo;
use crate::protocol::{Location, Reply};

/// Removes a file, a link, or with `recursive` a directory and everything below it. `force`
/// forgives a missing file, and nothing else. `/` and the directory that the call is held beneath
/// are `invalid`.
pub fn remove(
    location: &Location,
    recursive: bool,
    force: bool,
    io: &mut dyn CallIo,
) -> Result<Reply, FileError> {
    match remove_existing(location, recursive, io) {
        Err(problem) if force && problem.kind == FileErrorKind::NotFound => Ok(Reply::Done),
        result => result.map(|()| Reply::Done),
    }
}

fn remove_existing(location: &Location, recursive: bool, io: &mut dyn CallIo) -> Result<(), FileError> {
    let name = Target::new(location)?.name()?;
    let stat = name.stat()?.ok_or(Errno::NOENT)?;
    if file_type(&stat) != FileType::Directory {
        return Ok(rustix::fs::unlinkat(&name.parent, &name.name, AtFlags::empty())?);
    }
    if !recursive {
        return Err(Errno::ISDIR.into());
    }
    tree::remove(&name, io)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::program::files::fake_io::{FakeIo, at, beneath};
    use std::os::unix::fs::symlink;

    fn go(location: &Location, recursive: bool, force: bool) -> Result<Reply, FileError> {
        remove(location, recursive, force, &mut FakeIo::default())
    }

    #[test]
    fn force_forgives_what_is_missing_and_nothing_else() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::create_dir(dir.path().join("d")).unwrap();
        std::fs::write(dir.path().join("f"), "").unwrap();
        for missing in ["missing", "missing/below"] {
            assert_eq!(
                go(&beneath(dir.path(), missing), true, false).unwrap_err().kind,
                FileErrorKind::NotFound
            );
            assert!(go(&beneath(dir.path(), missing), false, true).is_ok());
        }
        assert_eq!(go(&beneath(dir.path(), "d"), false, true).unwrap_err().kind, FileErrorKind::IsDirectory);
        assert_eq!(
            go(&beneath(dir.path(), "f/x"), false, true).unwrap_err().kind,
            FileErrorKind::NotDirectory
        );
        go(&beneath(dir.path(), "f"), false, false).unwrap();
        go(&at(dir.path().join("d")), true, false).unwrap();
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0);
    }

    #[test]
    fn the_root_and_the_confining_directory_are_not_removed() {
        let dir = tempfile::tempdir().unwrap();
        assert_eq!(go(&at("/"), true, true).unwrap_err().kind, FileErrorKind::Invalid);
        assert_eq!(go(&beneath(dir.path(), ""), true, true).unwrap_err().kind, FileErrorKind::Invalid);
        assert!(dir.path().exists());
    }

    #[test]
    fn f1_links_are_removed_and_their_targets_stay() {
        let (dir, outside) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        std::fs::write(outside.path().join("canary"), "").unwrap();
        std::fs::create_dir(dir.path().join("tree")).unwrap();
        symlink(outside.path(), dir.path().join("tree/out")).unwrap();
        symlink(outside.path(), dir.path().join("out")).unwrap();
        assert_eq!(
            go(&beneath(dir.path(), "out/canary"), true, true).unwrap_err().kind,
            FileErrorKind::Permission
        );
        go(&beneath(dir.path(), "tree"), true, false).unwrap();
        go(&beneath(dir.path(), "out"), true, false).unwrap();
        assert!(outside.path().join("canary").exists());
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0);
    }
}
