//! Writing a file as a whole. The content is complete before the name leads to it, so a reader sees
//! the old or the new one. A write that fails or is cancelled changes nothing.

use rustix::fd::{AsFd, OwnedFd};
use rustix::fs::{Mode, SeekFrom, Stat};
use rustix::io::Errno;

use super::append;
use super::draft::Draft;
use super::failure::{FileError, FileErrorKind};
use super::locate::{Name, Target};
use super::pass::{is_on_disk, is_on_overlay};
use super::regular::{self, DEFAULT_MODE, check_size, check_writable, without_set_id};
use crate::program::call_io::CallIo;
use crate::protocol::{Event, Location, MAX_PASSED_BYTES, Reply, WriteParameters};

/// Writes what arrives on the main channel, and answers with the file's size. Replacing needs a
/// directory that takes a new file; links are followed to the end, but for a new file.
pub fn write(location: &Location, how: &WriteParameters, io: &mut dyn CallIo) -> Result<Reply, FileError> {
    write_from(location, how, ContentWay::Sent, io)
}

/// The same, but passes the descriptor of the file that is to be, for the client to write the
/// content's beginning itself. What arrives goes behind that.
pub fn write_passed(
    location: &Location,
    how: &WriteParameters,
    io: &mut dyn CallIo,
) -> Result<Reply, FileError> {
    write_from(location, how, ContentWay::Passed, io)
}

/// The way of the content into the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ContentWay {
    /// All of it arrives on the main channel.
    Sent,
    /// The client asked for the file's descriptor.
    Passed,
}

impl ContentWay {
    /// Offers the file to the client, if it asked for that.
    fn offer(self, file: &OwnedFd, io: &mut dyn CallIo) -> Result<(), FileError> {
        if self == Self::Sent {
            return Ok(());
        }
        if is_on_disk(file.as_fd()) && io.pass(file.as_fd(), Event::Passed(0), None)? {
            return Ok(());
        }
        Ok(io.event(Event::Opened(None))?)
    }

    /// Moves the draft to its place, over the old file. An old file of an image's layer is copied to
    /// the sandbox's own before it can change places, so it must not be large.
    fn place(self, draft: Draft<'_>, old: Option<&Stat>) -> Result<u64, FileError> {
        let is_small = old.is_some_and(|old| regular::size(old) <= MAX_PASSED_BYTES);
        if self == Self::Passed && is_small && is_on_overlay(draft.file().as_fd()) {
            draft.replace_in_volatile()
        } else {
            draft.replace()
        }
    }
}

fn write_from(
    location: &Location,
    how: &WriteParameters,
    way: ContentWay,
    io: &mut dyn CallIo,
) -> Result<Reply, FileError> {
    let target = Target::new(location)?;
    let size = match (how.mode, way) {
        (0, _) => replace(&target.resolved_name()?, how, way, io)?,
        (1, ContentWay::Sent) => append::append(&target, how, io)?,
        (1, ContentWay::Passed) => {
            return Err(FileError::invalid("a file that is appended to is not passed"));
        }
        (2, _) => create_new(&target.name()?, how, way, io)?,
        (other, _) => {
            return Err(FileError::invalid(format!("there is no way of writing number {other}")));
        }
    };
    Ok(Reply::Size(size))
}

fn replace(
    name: &Name,
    how: &WriteParameters,
    way: ContentWay,
    io: &mut dyn CallIo,
) -> Result<u64, FileError> {
    let old = name.stat()?;
    if let Some(old) = &old {
        check_writable(name, old)?;
    }
    let draft = Draft::new(name).map_err(|errno| match errno {
        Errno::ACCESS | Errno::PERM | Errno::NOENT if old.is_some() => FileError::new(
            FileErrorKind::Permission,
            "its directory takes no new file, so it can't be replaced as a whole",
        ),
        other => other.into(),
    })?;
    way.offer(draft.file(), io)?;
    pour(io, draft.file(), how.max_bytes)?;
    dress(draft.file(), how.permissions, old.as_ref())?;
    way.place(draft, old.as_ref())
}

fn create_new(
    name: &Name,
    how: &WriteParameters,
    way: ContentWay,
    io: &mut dyn CallIo,
) -> Result<u64, FileError> {
    if name.stat()?.is_some() {
        return Err(Errno::EXIST.into());
    }
    let draft = Draft::new(name)?;
    way.offer(draft.file(), io)?;
    pour(io, draft.file(), how.max_bytes)?;
    dress(draft.file(), how.permissions, None)?;
    draft.place_new()
}

/// Writes all that arrives behind what is there; more than `most` bytes are `too_large`.
fn pour(io: &mut dyn CallIo, file: &OwnedFd, most: Option<u64>) -> Result<(), FileError> {
    let mut total = None;
    while let Some(piece) = io.receive()? {
        let before = match total {
            Some(total) => total,
            None => rustix::fs::seek(file, SeekFrom::End(0))?,
        };
        let after = before + piece.len() as u64;
        check_size(after, most)?;
        write_all(file, &piece)?;
        total = Some(after);
    }
    check_size(regular::size(&rustix::fs::fstat(file)?), most)
}

/// Writes all of it.
pub fn write_all(file: impl AsFd, mut bytes: &[u8]) -> Result<(), Errno> {
    while !bytes.is_empty() {
        let count = rustix::io::retry_on_intr(|| rustix::io::write(&file, bytes))?;
        bytes = &bytes[count..];
    }
    Ok(())
}

/// Gives the new file the bits it was asked to have, or the old one's, or the usual ones; and the
/// old one's owner where the user may do that (root writes another's file), which is a courtesy and
/// no promise.
fn dress(file: &OwnedFd, permissions: Option<u32>, old: Option<&Stat>) -> Result<(), FileError> {
    let mine = rustix::fs::fstat(file)?;
    if let Some(old) = old.filter(|old| (old.st_uid, old.st_gid) != (mine.st_uid, mine.st_gid)) {
        let (owner, group) = (rustix::fs::Uid::from_raw(old.st_uid), rustix::fs::Gid::from_raw(old.st_gid));
        rustix::fs::fchown(file, Some(owner), Some(group)).unwrap_or_default();
    }
    // The set-id bits were given to the old content.
    let kept = old.map(|old| old.st_mode & 0o777);
    let mode = permissions.map(without_set_id).or(kept).unwrap_or(DEFAULT_MODE);
    Ok(rustix::fs::fchmod(file, Mode::from_raw_mode(mode))?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::program::files::fake_io::{FakeIo, at, beneath};
    use std::os::unix::fs::{PermissionsExt, symlink};
    use std::path::Path;

    const REPLACE: WriteParameters = WriteParameters { mode: 0, permissions: None, max_bytes: None };
    const NEW: WriteParameters = WriteParameters { mode: 2, ..REPLACE };

    fn go(location: &Location, how: WriteParameters, content: &[u8]) -> Result<Reply, FileError> {
        write(location, &how, &mut FakeIo::receiving(content.chunks(3)))
    }

    fn names(dir: &Path) -> Vec<String> {
        let mut names: Vec<_> =
            std::fs::read_dir(dir).unwrap().map(|e| e.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }

    fn mode(path: &Path) -> u32 {
        path.metadata().unwrap().permissions().mode() & 0o7777
    }

    #[test]
    fn a_file_is_made_and_replaced_and_keeps_its_permissions() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a");
        assert_eq!(go(&beneath(dir.path(), "a"), REPLACE, b"first"), Ok(Reply::Size(5)));
        assert_eq!(mode(&path), 0o644);
        std::fs::set_permissions(&path, PermissionsExt::from_mode(0o751)).unwrap();
        assert_eq!(go(&at(&path), REPLACE, b"2"), Ok(Reply::Size(1)));
        assert_eq!((std::fs::read(&path).unwrap(), mode(&path)), (b"2".to_vec(), 0o751));
        go(&at(&path), WriteParameters { permissions: Some(0o6711), ..REPLACE }, b"").unwrap();
        assert_eq!(mode(&path), 0o711);
        go(&at(&path), WriteParameters { permissions: Some(0o600), ..REPLACE }, b"").unwrap();
        assert_eq!(mode(&path), 0o600);
        assert_eq!(names(dir.path()), ["a"]);
    }

    #[test]
    fn f5_a_write_past_the_limit_changes_nothing() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("a"), "old").unwrap();
        for how in [REPLACE, NEW] {
            let name = if how.mode == 2 { "b" } else { "a" };
            let how = WriteParameters { max_bytes: Some(4), ..how };
            let problem = go(&beneath(dir.path(), name), how, b"12345").unwrap_err();
            assert!(
                problem.kind == FileErrorKind::TooLarge && problem.reason.contains("4 bytes"),
                "{problem:?}"
            );
        }
        assert_eq!(names(dir.path()), ["a"]);
        assert_eq!(std::fs::read(dir.path().join("a")).unwrap(), b"old");
    }

    #[test]
    fn a_write_that_is_cut_short_changes_nothing() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("a"), "old").unwrap();
        for (name, how) in [("a", REPLACE), ("b", REPLACE), ("c", NEW)] {
            let mut io = FakeIo { cut_short: true, ..FakeIo::receiving([b"half"]) };
            assert_eq!(
                write(&beneath(dir.path(), name), &how, &mut io).unwrap_err().kind,
                FileErrorKind::Cancelled
            );
        }
        assert_eq!(names(dir.path()), ["a"]);
    }

    #[test]
    fn what_is_in_the_way_is_named_by_its_kind() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::create_dir(dir.path().join("d")).unwrap();
        std::fs::write(dir.path().join("f"), "").unwrap();
        rustix::fs::mkfifoat(rustix::fs::CWD, dir.path().join("fifo"), Mode::RWXU).unwrap();
        symlink("nowhere", dir.path().join("dangling")).unwrap();
        let kind = |name: &str, how| go(&beneath(dir.path(), name), how, b"x").unwrap_err().kind;
        assert_eq!(kind("d", REPLACE), FileErrorKind::IsDirectory);
        assert_eq!(kind("missing/x", REPLACE), FileErrorKind::NotFound);
        assert_eq!(kind("f/x", REPLACE), FileErrorKind::NotDirectory);
        assert_eq!(kind("fifo", REPLACE), FileErrorKind::Invalid);
        assert_eq!(kind("f", NEW), FileErrorKind::AlreadyExists);
        assert_eq!(kind("d", NEW), FileErrorKind::AlreadyExists);
        assert_eq!(kind("dangling", NEW), FileErrorKind::AlreadyExists);
        assert_eq!(go(&at("/dev/null"), REPLACE, b"x").unwrap_err().kind, FileErrorKind::Invalid);
    }

    #[test]
    fn f1_a_link_inside_is_written_through_and_one_that_leads_out_is_refused() {
        let (dir, outside) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let canary = outside.path().join("canary");
        std::fs::write(&canary, "old").unwrap();
        symlink(&canary, dir.path().join("out")).unwrap();
        symlink(outside.path(), dir.path().join("outdir")).unwrap();
        for name in ["out", "outdir/canary", "outdir/new"] {
            assert_eq!(
                go(&beneath(dir.path(), name), REPLACE, b"new").unwrap_err().kind,
                FileErrorKind::Permission
            );
        }
        assert_eq!(names(outside.path()), ["canary"]);
        assert_eq!(std::fs::read(&canary).unwrap(), b"old");
        std::fs::create_dir(dir.path().join("sub")).unwrap();
        symlink("sub/fresh", dir.path().join("dangling")).unwrap();
        go(&beneath(dir.path(), "dangling"), REPLACE, b"new").unwrap();
        assert!(dir.path().join("dangling").is_symlink());
        assert_eq!(std::fs::read(dir.path().join("sub/fresh")).unwrap(), b"new");
    }

    #[test]
    #[ignore = "by hand: with TMPDIR on a tmpfs of its own, which it fills"]
    fn f5_a_full_disk_is_quota_and_nothing_is_half_written() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("a"), "old").unwrap();
        for how in [REPLACE, WriteParameters { mode: 1, ..REPLACE }, NEW] {
            let name = if how.mode == 2 { "b" } else { "a" };
            let mut io = FakeIo::receiving(vec![vec![b'x'; 1 << 20]; 64]);
            let problem = write(&beneath(dir.path(), name), &how, &mut io).unwrap_err();
            assert_eq!(problem.kind, FileErrorKind::Quota);
        }
        assert_eq!(names(dir.path()), ["a"]);
        assert_eq!(std::fs::read(dir.path().join("a")).unwrap(), b"old");
    }

    #[test]
    fn f7_of_two_writers_one_wins_whole() {
        let dir = tempfile::tempdir().unwrap();
        let contents = [vec![b'a'; 100_000], vec![b'b'; 100_000]];
        std::thread::scope(|scope| {
            for content in &contents {
                scope.spawn(|| {
                    for _ in 0..20 {
                        let mut io = FakeIo::receiving(content.chunks(1000));
                        write(&beneath(dir.path(), "f"), &REPLACE, &mut io).unwrap();
                    }
                });
            }
        });
        assert!(contents.contains(&std::fs::read(dir.path().join("f")).unwrap()));
        assert_eq!(names(dir.path()), ["f"]);
    }

    #[test]
    fn of_ten_who_create_the_same_file_one_succeeds() {
        let dir = tempfile::tempdir().unwrap();
        let attempt = || go(&beneath(dir.path(), "f"), NEW, b"x").is_ok();
        let winners = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..10).map(|_| scope.spawn(attempt)).collect();
            threads.into_iter().map(|t| t.join().unwrap()).filter(|won| *won).count()
        });
        assert_eq!(winners, 1);
        assert_eq!(names(dir.path()), ["f"]);
    }
}
