//! Writing a file whose descriptor the guest passed: a new file beside its place. The host writes the
//! content's beginning on a thread that may wait for a disk. The guest gets the rest as a stream, and
//! everything that the host could not write, so that every refusal is the guest's. Then the guest
//! moves the file to its place.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::time::Duration;

use eyot::{ByteStream, Bytes, Error, ErrorKind, Result};
use futures_util::{FutureExt, StreamExt, stream};
use rustix::fs::OFlags;
use rustix::io::Errno;

use super::connection::Connection;
use super::fault::Fault;
use super::feed::feed;
use super::file_check::{FileGate, FileOrigin, check_file};
use super::passed_files::FilePlace;
use crate::protocol::{Event, Location, MAX_PASSED_BYTES, MAX_PAYLOAD_BYTES, Request, WriteParameters};

/// The longest that the kernel may take to take in a file's beginning. It waits when a disk is slower
/// than its writers.
const PATIENCE: Duration = Duration::from_secs(60);
/// The number of [`WriteParameters::mode`] that appends.
const APPEND: u8 = 1;

/// A file's content, and what is known of it before it is asked for more.
pub(super) enum WrittenContent {
    /// It begins with many bytes, which are there.
    Large(Bytes, ByteStream),
    /// It is small, or not there yet, or is better sent.
    Other(ByteStream),
}

impl WrittenContent {
    /// Looks at what is there, without waiting.
    pub(super) fn look(mut content: ByteStream, how: &WriteParameters) -> Self {
        if how.mode == APPEND {
            return Self::Other(content);
        }
        let first = content.next().now_or_never();
        match first {
            None => Self::Other(content),
            Some(None) => Self::Other(Box::pin(stream::empty())),
            Some(Some(Ok(first))) if is_worth_it(&first, how) => Self::Large(first, content),
            Some(Some(first)) => Self::Other(chained(first, content)),
        }
    }
}

/// The guest says of content that is too large that it is.
fn is_worth_it(first: &Bytes, how: &WriteParameters) -> bool {
    let is_allowed = how.max_bytes.is_none_or(|most| first.len() as u64 <= most);
    first.len() > MAX_PAYLOAD_BYTES && is_allowed
}

/// The content with its first piece before it again.
pub(super) fn chained(first: Result<Bytes>, rest: ByteStream) -> ByteStream {
    Box::pin(stream::iter([first]).chain(rest))
}

/// Writes a file whose first bytes are there, and returns its size. Dropped before its end, it
/// changes nothing.
pub(super) async fn write(
    connection: &Connection,
    (gate, place): (&Arc<dyn FileGate>, FilePlace),
    (location, how): (Location, WriteParameters),
    (mut first, rest): (Bytes, ByteStream),
) -> Result<u64> {
    let request = Request::WritePassed(location, how);
    let opening = async {
        let call = connection.call(&request).await?;
        let event = call.event().await?;
        Ok((call, event))
    };
    let (call, event) = connection.unless_silent(opening).await?;
    if let (Some(Event::Passed(_)), Some(file)) = (event, call.take_descriptor()) {
        let beginning = first.slice(..first.len().min(MAX_PASSED_BYTES as usize));
        let written = write_beginning(connection, (gate, place), file, beginning).await?;
        first = first.split_off(written);
    }
    let content = if first.is_empty() { rest } else { chained(Ok(first), rest) };
    connection.unless_silent(feed(call, content)).await
}

/// Writes as much of the beginning as can be written, and says how much that was. The file is closed
/// then.
async fn write_beginning(
    connection: &Connection,
    (gate, place): (&Arc<dyn FileGate>, FilePlace),
    file: OwnedFd,
    beginning: Bytes,
) -> Result<usize> {
    let held = Arc::new(connection.state().passed_files.add(file, place));
    let Some(file) = held.open() else {
        return Err(connection.error());
    };
    let gate = Arc::clone(gate);
    let writing = tokio::task::spawn_blocking(move || {
        let written = check_and_write(&file, &*gate, &beginning);
        drop(file);
        drop(held);
        written
    });
    match tokio::time::timeout(PATIENCE, writing).await {
        Ok(Ok(Ok(written))) => Ok(written),
        Ok(Ok(Err(what))) => {
            connection.state().end(Fault::broken(&what));
            Err(connection.error())
        }
        Ok(Err(stopped)) => {
            let message = "the thread that wrote the file was stopped";
            Err(Error::new(ErrorKind::Internal, message).with_source(stopped))
        }
        Err(_late) => Err(Error::new(ErrorKind::Unavailable, "its disk does not answer")),
    }
}

/// Checks the file and writes to it. The error is a breach of the protocol.
fn check_and_write(file: &OwnedFd, gate: &dyn FileGate, bytes: &[u8]) -> std::result::Result<usize, String> {
    let file = file.as_fd();
    Ok(match check_file(file, OFlags::WRONLY, gate)? {
        FileOrigin::Sandbox if has_room(file, bytes.len()) => write_at_start(file, bytes),
        FileOrigin::Sandbox | FileOrigin::Elsewhere => 0,
    })
}

/// Tells whether the disk has room for everybody: root would get what is set aside for root.
fn has_room(file: BorrowedFd<'_>, bytes: usize) -> bool {
    rustix::fs::fstatvfs(file)
        .is_ok_and(|disk| disk.f_bavail.saturating_mul(disk.f_frsize) >= 2 * bytes as u64)
}

/// Writes until the file takes no more. The guest is told the rest, and meets the same.
fn write_at_start(file: BorrowedFd<'_>, bytes: &[u8]) -> usize {
    let mut written = 0;
    while written < bytes.len() {
        match rustix::io::pwrite(file, &bytes[written..], written as u64) {
            Ok(0) => break,
            Ok(count) => written += count,
            Err(Errno::INTR) => {}
            Err(error) => {
                tracing::debug!(%error, "write to a passed file");
                break;
            }
        }
    }
    written
}

#[cfg(test)]
mod tests {
    use rustix::fs::{MemfdFlags, SealFlags};

    use super::*;

    #[test]
    fn a_file_that_takes_only_a_part_is_written_so_far() {
        let file = rustix::fs::memfd_create("m", MemfdFlags::ALLOW_SEALING).unwrap();
        rustix::fs::ftruncate(&file, 40_960).unwrap();
        rustix::fs::fcntl_add_seals(&file, SealFlags::GROW).unwrap();
        assert_eq!(write_at_start(file.as_fd(), &[7; 100_000]), 40_960);
        rustix::fs::fcntl_add_seals(&file, SealFlags::WRITE).unwrap();
        assert_eq!(write_at_start(file.as_fd(), &[7; 100_000]), 0);
    }

    #[tokio::test]
    async fn content_that_is_not_there_yet_or_is_too_large_is_sent() {
        let how = WriteParameters { mode: 0, permissions: None, max_bytes: Some(200_000) };
        let of = |size: usize| -> ByteStream { chained(Ok(Bytes::from(vec![7; size])), empty()) };
        let is_large = |content, how: &WriteParameters| {
            matches!(WrittenContent::look(content, how), WrittenContent::Large(..))
        };
        assert!(is_large(of(100_000), &how));
        assert!(!is_large(of(200_001), &how));
        assert!(!is_large(of(100), &how));
        assert!(!is_large(empty(), &how));
        assert!(!is_large(Box::pin(stream::pending()), &how));
        assert!(!is_large(of(100_000), &WriteParameters { mode: APPEND, ..how }));
    }

    fn empty() -> ByteStream {
        Box::pin(stream::empty())
    }
}
