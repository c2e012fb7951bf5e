//! Appending: the bytes of one call stay together. An appended file is locked (`flock`), so that
//! appends wait for each other whichever process or sandbox they come from. Up to a mebibyte is
//! also written by one system call.

use std::time::{Duration, Instant};

use rustix::fd::OwnedFd;
use rustix::fs::{AtFlags, FlockOperation, Mode, OFlags};
use rustix::io::Errno;

use super::failure::{FileError, FileErrorKind};
use super::locate::{Name, Target};
use super::regular::{self, DEFAULT_MODE, check_size, check_writable, without_set_id};

use crate::program::call_io::{CallIo, Stopped};
use crate::protocol::WriteParameters;

/// The number of bytes that are collected before they are written.
const BUFFER_BYTES: usize = 1 << 20;
/// The longest wait for another's lock.
const MAX_WAIT: Duration = Duration::from_secs(30);
/// The number of times that a file may be replaced between its opening and its locking.
const ATTEMPTS: usize = 100;

/// The file that is appended to, locked until it is dropped.
struct LockedFile {
    name: Name,
    file: OwnedFd,
    is_new: bool,
    /// The file's size before, and the bytes added since.
    before: u64,
    added: u64,
}

/// Appends the bytes of the main channel to the file, and answers with the file's size. After a
/// failure the added bytes are taken back, unless another process has appended after them.
pub fn append(target: &Target, how: &WriteParameters, io: &mut dyn CallIo) -> Result<u64, FileError> {
    let name = target.resolved_name()?;
    if let Some(stat) = name.stat()? {
        check_writable(&name, &stat)?;
        check_size(regular::size(&stat), how.max_bytes)?;
    }
    let (mut bytes, mut is_end) = collect(io, how.max_bytes)?;
    let mut locked = LockedFile::open(target, how.permissions, io)?;
    let mut result = locked.add(&bytes, how.max_bytes);
    while result.is_ok() && !is_end {
        result = collect(io, how.max_bytes).and_then(|next| {
            (bytes, is_end) = next;
            locked.add(&bytes, how.max_bytes)
        });
    }
    match result {
        Ok(()) => Ok(regular::size(&rustix::fs::fstat(&locked.file)?)),
        Err(problem) => {
            locked.undo();
            Err(problem)
        }
    }
}

/// The next bytes, about a mebibyte unless they end before; and whether they ended.
fn collect(io: &mut dyn CallIo, most: Option<u64>) -> Result<(Vec<u8>, bool), FileError> {
    let mut bytes = Vec::new();
    while bytes.len() < BUFFER_BYTES {
        let Some(piece) = io.receive()? else {
            return Ok((bytes, true));
        };
        bytes.extend_from_slice(&piece);
        check_size(bytes.len() as u64, most)?;
    }
    Ok((bytes, false))
}

impl LockedFile {
    fn open(target: &Target, permissions: Option<u32>, io: &dyn CallIo) -> Result<Self, FileError> {
        for _ in 0..ATTEMPTS {
            let name = target.resolved_name()?;
            let Some((file, is_new)) = open_or_create(&name, permissions)? else {
                continue;
            };
            regular::check(&rustix::fs::fstat(&file)?)?;
            lock(&file, io)?;
            let stat = rustix::fs::fstat(&file)?;
            // Replaced or removed while the lock was waited for: what would be added now would be
            // lost.
            if stat.st_nlink > 0 {
                return Ok(Self { name, file, is_new, before: regular::size(&stat), added: 0 });
            }
        }
        Err(Errno::AGAIN.into())
    }

    fn add(&mut self, bytes: &[u8], most: Option<u64>) -> Result<(), FileError> {
        check_size(self.before + self.added + bytes.len() as u64, most)?;
        let mut rest = bytes;
        while !rest.is_empty() {
            let count = rustix::io::retry_on_intr(|| rustix::io::write(&self.file, rest))?;
            self.added += count as u64;
            rest = &rest[count..];
        }
        Ok(())
    }

    /// Takes the added bytes back. After an error there is nothing better than to leave bytes that
    /// can't be taken back.
    fn undo(&self) {
        let Ok(stat) = rustix::fs::fstat(&self.file) else {
            return;
        };
        // A program that takes no lock may have written after us; its bytes are worth more than an
        // exact undo.
        if regular::size(&stat) != self.before + self.added {
            return;
        }
        rustix::fs::ftruncate(&self.file, self.before).unwrap_or_default();
        if self.is_new && self.before == 0 {
            rustix::fs::unlinkat(&self.name.parent, &self.name.name, AtFlags::empty()).unwrap_or_default();
        }
    }
}

/// Opens the file, or makes it; `None` when it came or went in between. The flag says that it was
/// made.
fn open_or_create(name: &Name, permissions: Option<u32>) -> Result<Option<(OwnedFd, bool)>, FileError> {
    let flags = OFlags::WRONLY | OFlags::APPEND | OFlags::NONBLOCK | OFlags::NOCTTY;
    match name.open(flags, Mode::empty()) {
        Ok(file) => return Ok(Some((file, false))),
        Err(Errno::NOENT) => {}
        // Swapped for a link since it was looked at.
        Err(Errno::LOOP) => return Ok(None),
        Err(errno) => return Err(errno.into()),
    }
    let mode = Mode::from_raw_mode(permissions.map_or(DEFAULT_MODE, without_set_id));
    match name.open(flags | OFlags::CREATE | OFlags::EXCL, mode) {
        Ok(file) => {
            rustix::fs::fchmod(&file, mode)?;
            Ok(Some((file, true)))
        }
        Err(Errno::EXIST) => Ok(None),
        Err(errno) => Err(errno.into()),
    }
}

/// Locks the file, asking again and again. A wait inside the kernel would be simpler, but it ends
/// only with the lock: a program that holds one for ever (`flock -x file sleep inf`) would keep
/// this thread, one of a limited number, and the caller's answer, whether the caller has given up
/// or not.
fn lock(file: &OwnedFd, io: &dyn CallIo) -> Result<(), FileError> {
    let since = Instant::now();
    let mut pause = Duration::from_micros(100);
    loop {
        match rustix::fs::flock(file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => return Ok(()),
            Err(Errno::WOULDBLOCK | Errno::INTR) => {}
            Err(errno) => return Err(errno.into()),
        }
        if io.stopped() {
            return Err(Stopped.into());
        }
        if since.elapsed() > MAX_WAIT {
            return Err(FileError::new(FileErrorKind::Conflict, "is locked by somebody else"));
        }
        std::thread::sleep(pause);
        pause = (pause * 2).min(Duration::from_millis(10));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::program::files::fake_io::{FakeIo, beneath};
    use std::os::unix::fs::symlink;
    use std::path::Path;

    const APPEND: WriteParameters = WriteParameters { mode: 1, permissions: None, max_bytes: None };

    fn go(dir: &Path, name: &str, how: WriteParameters, io: &mut FakeIo) -> Result<u64, FileError> {
        append(&Target::new(&beneath(dir, name))?, &how, io)
    }

    #[test]
    fn bytes_are_added_and_the_file_is_made_when_missing() {
        let dir = tempfile::tempdir().unwrap();
        assert_eq!(go(dir.path(), "a", APPEND, &mut FakeIo::receiving(["one", "two"])), Ok(6));
        symlink("a", dir.path().join("link")).unwrap();
        assert_eq!(go(dir.path(), "link", APPEND, &mut FakeIo::receiving(["3"])), Ok(7));
        assert_eq!(std::fs::read(dir.path().join("a")).unwrap(), b"onetwo3");
    }

    #[test]
    fn f7_appends_of_ten_writers_never_interleave() {
        let dir = tempfile::tempdir().unwrap();
        std::thread::scope(|scope| {
            for writer in 0..10u8 {
                let dir = dir.path();
                scope.spawn(move || {
                    for _ in 0..5 {
                        // Some of them are larger than what is written at once.
                        let size = if writer < 2 { (3 << 20) + 1 } else { 1000 };
                        let record = vec![b'0' + writer; size];
                        let mut io = FakeIo::receiving(record.chunks(60_000).chain([&b"\n"[..]]));
                        go(dir, "log", APPEND, &mut io).unwrap();
                    }
                });
            }
        });
        let log = std::fs::read(dir.path().join("log")).unwrap();
        let lines: Vec<_> = log.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()).collect();
        assert_eq!(lines.len(), 50);
        for line in lines {
            assert!(line.iter().all(|byte| *byte == line[0]));
            assert!(line.len() == 1000 || line.len() == (3 << 20) + 1);
        }
    }

    #[test]
    fn f5_an_append_that_fails_or_is_cut_short_adds_nothing() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("a"), "12345").unwrap();
        let limited = WriteParameters { max_bytes: Some(2 << 20), ..APPEND };
        let pieces = || vec![vec![b'x'; 1 << 20]; 3];
        for name in ["a", "new"] {
            let problem = go(dir.path(), name, limited, &mut FakeIo::receiving(pieces())).unwrap_err();
            assert_eq!(problem.kind, FileErrorKind::TooLarge);
            let mut io = FakeIo { cut_short: true, ..FakeIo::receiving(pieces()) };
            assert_eq!(go(dir.path(), name, APPEND, &mut io).unwrap_err().kind, FileErrorKind::Cancelled);
        }
        assert_eq!(std::fs::read(dir.path().join("a")).unwrap(), b"12345");
        assert!(!dir.path().join("new").exists());
        assert_eq!(
            go(dir.path(), "/", APPEND, &mut FakeIo::default()).unwrap_err().kind,
            FileErrorKind::Invalid
        );
    }

    #[test]
    fn an_append_waits_for_a_lock_only_as_long_as_somebody_waits_for_it() {
        let dir = tempfile::tempdir().unwrap();
        let held = std::fs::File::create(dir.path().join("a")).unwrap();
        held.lock().unwrap();
        let mut io = FakeIo { is_stopped: true, ..FakeIo::receiving(["x"]) };
        assert_eq!(go(dir.path(), "a", APPEND, &mut io).unwrap_err().kind, FileErrorKind::Cancelled);
        assert_eq!(held.metadata().unwrap().len(), 0);
    }

    #[test]
    fn f1_f2_an_append_goes_to_regular_files_inside_only() {
        let dir = tempfile::tempdir().unwrap();
        symlink("/etc/passwd", dir.path().join("out")).unwrap();
        rustix::fs::mkfifoat(rustix::fs::CWD, dir.path().join("fifo"), Mode::RWXU).unwrap();
        let kind = |name| go(dir.path(), name, APPEND, &mut FakeIo::receiving(["x"])).unwrap_err().kind;
        assert_eq!(kind("out"), FileErrorKind::Permission);
        assert_eq!(kind("fifo"), FileErrorKind::Invalid);
        assert_eq!(kind("missing/x"), FileErrorKind::NotFound);
    }
}
