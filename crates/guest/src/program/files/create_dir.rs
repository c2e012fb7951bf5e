//! Making directories.

use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;

use super::failure::{FileError, FileErrorKind};
use super::locate::Target;
use crate::protocol::{Location, Reply};

const MODE: Mode = Mode::from_raw_mode(0o755);
const DIRECTORY: OFlags = OFlags::PATH.union(OFlags::DIRECTORY);

/// Makes a directory (0755); with `recursive` its parents too, and then a directory that is there
/// already is fine.
pub fn create_dir(location: &Location, recursive: bool) -> Result<Reply, FileError> {
    let target = Target::new(location)?;
    if recursive {
        return create_all(&target);
    }
    let name = match target.name() {
        // A path without a last segment leads to a directory that exists.
        Err(problem) if problem.kind == FileErrorKind::Invalid && target.open(DIRECTORY).is_ok() => {
            return Err(Errno::EXIST.into());
        }
        name => name?,
    };
    rustix::fs::mkdirat(&name.parent, &name.name, MODE)?;
    Ok(Reply::Done)
}

fn create_all(target: &Target) -> Result<Reply, FileError> {
    let ends = target.segment_ends();
    // Mostly nothing or only the last few are missing, so the search for what exists begins at the
    // end.
    let existing = ends.iter().rposition(|&end| target.open_prefix(end, DIRECTORY).is_ok());
    let missing = existing.map_or(0, |index| index + 1);
    for (index, &end) in ends.iter().enumerate().skip(missing) {
        create_one(target, end, index + 1 == ends.len())?;
    }
    Ok(Reply::Done)
}

/// Makes one segment of the path, unless it exists by now.
fn create_one(target: &Target, end: usize, is_last: bool) -> Result<(), FileError> {
    let name = target.name_at(end).map_err(|errno| target.problem(errno))?;
    let Some(name) = name else { return Ok(()) };
    match rustix::fs::mkdirat(&name.parent, &name.name, MODE) {
        Ok(()) => return Ok(()),
        Err(Errno::EXIST) => {}
        Err(errno) => return Err(errno.into()),
    }
    match target.open_prefix(end, DIRECTORY) {
        Ok(_) => Ok(()),
        Err(Errno::NOTDIR | Errno::NOENT) if is_last => {
            Err(FileError::new(FileErrorKind::AlreadyExists, "already exists and is not a directory"))
        }
        Err(errno) => Err(target.problem(errno)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::program::files::fake_io::{at, beneath};
    use std::os::unix::fs::symlink;

    #[test]
    fn one_directory_is_made_once() {
        let dir = tempfile::tempdir().unwrap();
        create_dir(&beneath(dir.path(), "a"), false).unwrap();
        assert!(dir.path().join("a").is_dir());
        assert_eq!(
            create_dir(&beneath(dir.path(), "a"), false).unwrap_err().kind,
            FileErrorKind::AlreadyExists
        );
        assert_eq!(
            create_dir(&beneath(dir.path(), ""), false).unwrap_err().kind,
            FileErrorKind::AlreadyExists
        );
        assert_eq!(create_dir(&beneath(dir.path(), "x/y"), false).unwrap_err().kind, FileErrorKind::NotFound);
        assert_eq!(create_dir(&at("/"), false).unwrap_err().kind, FileErrorKind::AlreadyExists);
    }

    #[test]
    fn parents_are_made_and_what_is_there_is_kept() {
        let dir = tempfile::tempdir().unwrap();
        let deep = vec!["d"; 1000].join("/");
        for location in
            [beneath(dir.path(), &deep), at(dir.path().join("e/f/g")), beneath(dir.path(), ""), at("/")]
        {
            create_dir(&location, true).unwrap();
            create_dir(&location, true).unwrap();
        }
        assert!(dir.path().join(deep).is_dir() && dir.path().join("e/f/g").is_dir());
    }

    #[test]
    fn a_file_in_the_way_is_told_from_a_file_at_the_end() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("file"), "").unwrap();
        symlink("nowhere", dir.path().join("dangling")).unwrap();
        assert_eq!(
            create_dir(&beneath(dir.path(), "file"), true).unwrap_err().kind,
            FileErrorKind::AlreadyExists
        );
        assert_eq!(
            create_dir(&beneath(dir.path(), "file/x"), true).unwrap_err().kind,
            FileErrorKind::NotDirectory
        );
        assert_eq!(
            create_dir(&beneath(dir.path(), "dangling"), true).unwrap_err().kind,
            FileErrorKind::AlreadyExists
        );
        assert_eq!(
            create_dir(&beneath(dir.path(), "dangling/x"), true).unwrap_err().kind,
            FileErrorKind::NotFound
        );
    }

    #[test]
    fn f1_no_directory_is_made_beyond_a_link_that_leads_out() {
        let (dir, outside) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        symlink(outside.path(), dir.path().join("out")).unwrap();
        std::fs::create_dir(dir.path().join("real")).unwrap();
        symlink("real", dir.path().join("in")).unwrap();
        for recursive in [false, true] {
            let problem = create_dir(&beneath(dir.path(), "out/x"), recursive).unwrap_err();
            assert_eq!(problem.kind, FileErrorKind::Permission);
        }
        assert_eq!(std::fs::read_dir(outside.path()).unwrap().count(), 0);
        create_dir(&beneath(dir.path(), "in/x/y"), true).unwrap();
        assert!(dir.path().join("real/x/y").is_dir());
    }
}
