//! Reading a file, piece by piece. Files in `/proc` claim to be empty and are not: only the end of
//! file ends a read.

use std::fs::File;
use std::os::fd::AsFd;
use std::os::unix::fs::FileExt;

use super::failure::FileError;
use super::locate::Target;
use super::pass::{ReadAhead, is_passable};
use super::regular;
use crate::program::call_io::CallIo;
use crate::protocol::{Event, Location, MAX_PAYLOAD_BYTES, Reply};

/// Sends the file's bytes from `offset`, at most `limit` of them.
pub fn read(
    location: &Location,
    offset: u64,
    limit: Option<u64>,
    io: &mut dyn CallIo,
) -> Result<Reply, FileError> {
    let (file, stat) = regular::open(&Target::new(location)?)?;
    send(&file, regular::size(&stat), (offset, limit), io)
}

/// The same, but passes the file's descriptor instead of its bytes where that pays.
pub fn read_passed(
    location: &Location,
    offset: u64,
    limit: Option<u64>,
    io: &mut dyn CallIo,
) -> Result<Reply, FileError> {
    let (file, stat) = regular::open(&Target::new(location)?)?;
    let size = regular::size(&stat);
    let bytes = size.saturating_sub(offset).min(limit.unwrap_or(u64::MAX));
    if is_passable(file.as_fd(), bytes) {
        let mut ahead = ReadAhead::new(offset, bytes);
        ahead.step(file.as_fd());
        if io.pass(file.as_fd(), Event::Passed(size), Some(Reply::Done))? {
            // The client needs longer to wake up than this takes.
            while ahead.step(file.as_fd()) {}
            return Ok(Reply::Done);
        }
    }
    send(&file, size, (offset, limit), io)
}

fn send(
    file: &File,
    size: u64,
    (offset, limit): (u64, Option<u64>),
    io: &mut dyn CallIo,
) -> Result<Reply, FileError> {
    io.event(Event::Opened(Some(size)))?;
    let mut piece = vec![0; MAX_PAYLOAD_BYTES];
    let mut at = offset;
    let mut left = limit.unwrap_or(u64::MAX);
    // Beyond the largest offset the kernel refuses instead of finding nothing.
    while left > 0 && at < i64::MAX as u64 {
        let wanted = piece.len().min(usize::try_from(left).unwrap_or(usize::MAX));
        let count = match file.read_at(&mut piece[..wanted], at) {
            Ok(0) => break,
            Ok(count) => count,
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(error.into()),
        };
        io.send(&piece[..count])?;
        at += count as u64;
        left -= count as u64;
    }
    Ok(Reply::Done)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::program::files::failure::FileErrorKind;
    use crate::program::files::fake_io::{FakeIo, at};
    use std::os::unix::fs::symlink;

    fn content(path: &str, offset: u64, limit: Option<u64>) -> Result<Vec<u8>, FileError> {
        let mut io = FakeIo::default();
        read(&at(path), offset, limit, &mut io)?;
        assert!(io.sent.iter().all(|piece| piece.len() <= MAX_PAYLOAD_BYTES));
        Ok(io.sent.concat())
    }

    #[test]
    fn a_range_of_a_file_is_read() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a");
        let bytes: Vec<u8> = (0..200_000u32).map(|n| n as u8).collect();
        std::fs::write(&path, &bytes).unwrap();
        let path = path.to_str().unwrap();
        assert_eq!(content(path, 0, None).unwrap(), bytes);
        assert_eq!(content(path, 100, Some(70_000)).unwrap(), bytes[100..70_100]);
        assert!(content(path, 200_000, None).unwrap().is_empty());
        assert!(content(path, u64::MAX, None).unwrap().is_empty());
        assert!(content(path, 0, Some(0)).unwrap().is_empty());
    }

    #[test]
    fn a_client_that_takes_no_descriptor_gets_the_content() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a");
        std::fs::write(&path, vec![7; 200_000]).unwrap();
        let mut io = FakeIo::default();
        read_passed(&at(&path), 1000, None, &mut io).unwrap();
        assert_eq!(io.events, [Event::Opened(Some(200_000))]);
        assert_eq!(io.sent.concat().len(), 199_000);
    }

    #[test]
    fn a_file_of_no_disk_is_never_passed() {
        let memory = rustix::fs::memfd_create("m", rustix::fs::MemfdFlags::CLOEXEC).unwrap();
        rustix::fs::ftruncate(&memory, 200_000).unwrap();
        let path = format!("/proc/self/fd/{}", std::os::fd::AsRawFd::as_raw_fd(&memory));
        let status = "/proc/self/status".to_owned();
        for path in [path, status] {
            let mut io = FakeIo { takes_files: true, ..FakeIo::default() };
            read_passed(&at(&path), 0, None, &mut io).unwrap();
            assert!(io.passed.is_empty() && !io.sent.is_empty(), "{path}");
        }
    }

    #[test]
    fn a_file_in_proc_has_content_though_its_size_is_zero() {
        assert!(content("/proc/self/status", 0, None).unwrap().starts_with(b"Name:"));
    }

    #[test]
    fn f2_a_fifo_a_socket_and_a_device_are_refused_promptly() {
        let dir = tempfile::tempdir().unwrap();
        let fifo = dir.path().join("fifo");
        rustix::fs::mkfifoat(rustix::fs::CWD, &fifo, rustix::fs::Mode::RUSR).unwrap();
        let socket = dir.path().join("socket");
        let _listener = std::os::unix::net::UnixListener::bind(&socket).unwrap();
        let link = dir.path().join("link");
        symlink("/dev/zero", &link).unwrap();
        for (path, what) in [(&fifo, "a fifo"), (&socket, "a socket"), (&link, "a device")] {
            let problem = content(path.to_str().unwrap(), 0, None).unwrap_err();
            assert!(problem.kind == FileErrorKind::Invalid && problem.reason.contains(what), "{problem:?}");
        }
        let directory = content(dir.path().to_str().unwrap(), 0, None).unwrap_err();
        assert_eq!(directory.kind, FileErrorKind::IsDirectory);
    }

    #[test]
    fn f5_a_huge_sparse_file_is_read_piece_by_piece_until_nobody_waits() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("sparse");
        std::fs::File::create(&path).unwrap().set_len(100 << 30).unwrap();
        let mut io = FakeIo { stop_after_sends: Some(3), ..FakeIo::default() };
        let problem = read(&at(path.to_str().unwrap()), 0, None, &mut io).unwrap_err();
        assert_eq!((problem.kind, io.sent.len()), (FileErrorKind::Cancelled, 3));
        assert_eq!(io.events, [Event::Opened(Some(100 << 30))]);
    }

    #[test]
    fn f3_a_name_of_300_bytes_is_invalid() {
        let path = format!("/tmp/{}", "n".repeat(300));
        assert_eq!(content(&path, 0, None).unwrap_err().kind, FileErrorKind::Invalid);
    }
}
