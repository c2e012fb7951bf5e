//! The attributes of a path, and whether it exists.

use rustix::fs::{FileType, OFlags, Stat};
use rustix::io::Errno;

use super::failure::FileError;
use super::locate::{Target, file_type};
use super::regular;
use crate::protocol::{FileKind, Location, Reply, StatRecord};

/// Answers `Stat`, for the target of a link, except for `symlink`. A dangling link is `not_found`.
pub fn stat(location: &Location) -> Result<Reply, FileError> {
    let target = Target::new(location)?;
    let itself = rustix::fs::fstat(target.open(OFlags::PATH | OFlags::NOFOLLOW)?)?;
    let symlink = file_type(&itself) == FileType::Symlink;
    let stat = if symlink { rustix::fs::fstat(target.open(OFlags::PATH)?)? } else { itself };
    Ok(Reply::Stat(StatRecord {
        kind: kind(file_type(&stat)),
        symlink,
        size: regular::size(&stat),
        modified_ms: modified_ms(&stat),
        mode: stat.st_mode & 0o7777,
    }))
}

/// Answers `Bool`. Missing, below a file, a dangling link, a loop of links: no.
pub fn exists(location: &Location) -> Result<Reply, FileError> {
    let target = match Target::new(location) {
        Err(problem) if problem == Errno::NOENT.into() => return Ok(Reply::Bool(false)),
        target => target?,
    };
    match target.open_raw(OFlags::PATH) {
        Ok(_) => Ok(Reply::Bool(true)),
        Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP | Errno::NAMETOOLONG) => Ok(Reply::Bool(false)),
        Err(errno) => Err(target.problem(errno)),
    }
}

/// The wire's word for a file type.
pub fn kind(file_type: FileType) -> FileKind {
    match file_type {
        FileType::RegularFile => FileKind::File,
        FileType::Directory => FileKind::Directory,
        FileType::Symlink => FileKind::Symlink,
        _ => FileKind::Other,
    }
}

fn modified_ms(stat: &Stat) -> i64 {
    let milliseconds = i64::try_from(stat.st_mtime_nsec / 1_000_000).unwrap_or(0);
    stat.st_mtime.saturating_mul(1000).saturating_add(milliseconds)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::program::files::failure::FileErrorKind;
    use crate::program::files::fake_io::{at, beneath};
    use std::os::unix::fs::{PermissionsExt, symlink};

    fn record(location: &Location) -> Result<StatRecord, FileError> {
        match stat(location)? {
            Reply::Stat(record) => Ok(record),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_link_is_described_by_its_target() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("a"), "12345").unwrap();
        std::fs::set_permissions(dir.path().join("a"), PermissionsExt::from_mode(0o640)).unwrap();
        symlink("a", dir.path().join("link")).unwrap();
        let link = record(&beneath(dir.path(), "link")).unwrap();
        assert_eq!((link.kind, link.symlink, link.size, link.mode), (FileKind::File, true, 5, 0o640));
        let file = record(&at(dir.path().join("a"))).unwrap();
        assert!(
            !file.symlink && file.modified_ms == link.modified_ms && file.modified_ms > 1_600_000_000_000
        );
        let directory = record(&beneath(dir.path(), "")).unwrap();
        assert_eq!((directory.kind, directory.symlink), (FileKind::Directory, false));
        assert_eq!(record(&at("/dev/null")).unwrap().kind, FileKind::Other);
    }

    #[test]
    fn dangling_looping_and_missing_are_told_apart_by_stat_and_all_absent_for_exists() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("file"), "").unwrap();
        symlink("nowhere", dir.path().join("dangling")).unwrap();
        symlink("loop", dir.path().join("loop")).unwrap();
        let cases = [
            ("dangling", FileErrorKind::NotFound),
            ("missing", FileErrorKind::NotFound),
            ("missing/below", FileErrorKind::NotFound),
            ("loop", FileErrorKind::Invalid),
            ("file/below", FileErrorKind::NotDirectory),
        ];
        for (path, kind) in cases {
            for location in [beneath(dir.path(), path), at(dir.path().join(path))] {
                assert_eq!(record(&location).unwrap_err().kind, kind, "{path}");
                assert_eq!(exists(&location), Ok(Reply::Bool(false)), "{path}");
            }
        }
        assert_eq!(exists(&beneath(dir.path(), "file")), Ok(Reply::Bool(true)));
        assert_eq!(exists(&beneath(&dir.path().join("gone"), "x")), Ok(Reply::Bool(false)));
    }

    #[test]
    fn f1_neither_looks_beyond_the_directory() {
        let dir = tempfile::tempdir().unwrap();
        symlink("/etc/passwd", dir.path().join("out")).unwrap();
        assert_eq!(record(&beneath(dir.path(), "out")).unwrap_err().kind, FileErrorKind::Permission);
        assert_eq!(exists(&beneath(dir.path(), "out")).unwrap_err().kind, FileErrorKind::Permission);
        assert!(record(&at(dir.path().join("out"))).is_ok());
    }
}
