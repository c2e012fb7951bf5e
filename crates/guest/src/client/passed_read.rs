//! Reading a file whose descriptor the guest passed: piece by piece, on threads that may wait for a
//! disk. The guest may change the file meanwhile, so its size is a hint and nothing is mapped.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;

use eyot::{ByteRange, ByteStream, Bytes, Error, ErrorKind, Result};
use futures_util::{StreamExt, stream};
use rustix::buffer::spare_capacity;
use rustix::fs::OFlags;
use rustix::io::Errno;

use super::call::Call;
use super::connection::{Connection, PATIENCE};
use super::fault::Fault;
use super::file_check::{FileGate, FileOrigin, check_file};
use super::passed_files::PassedFile;
use crate::protocol::{Event, Location, Request};

/// The most bytes that are read at a time.
const PIECE_BYTES: u64 = 2 << 20;

/// The ways in which a guest answers a read.
pub(super) enum ReadOpening {
    /// It passed the file.
    Passed(ByteStream),
    /// It sends the content.
    Sent(Call),
    /// It passed a file that is not the sandbox's own, or no place for one is free.
    NotTaken,
}

/// Asks for a file's descriptor, and reads its first piece if it comes.
pub(super) async fn open(
    connection: &Connection,
    gate: &Arc<dyn FileGate>,
    location: Location,
    range: ByteRange,
) -> Result<ReadOpening> {
    let Some(place) = connection.state().passed_files.reserve() else {
        return Ok(ReadOpening::NotTaken);
    };
    let request = Request::ReadPassed(location, range.offset, range.limit);
    let opening = async {
        let call = connection.call(&request).await?;
        let event = call.event().await?;
        Ok((call, event))
    };
    let (call, event) = connection.unless_silent(opening).await?;
    let (Some(Event::Passed(size)), Some(file)) = (event, call.take_descriptor()) else {
        return Ok(ReadOpening::Sent(call));
    };
    let mut reader = FileReader {
        file: Arc::new(connection.state().passed_files.add(file, place)),
        at: range.offset,
        end: range.limit.map_or(u64::MAX, |limit| range.offset.saturating_add(limit)),
        size,
        connection: connection.clone(),
        _call: call,
    };
    match reader.read(Some(Arc::clone(gate))).await? {
        ReadStep::Piece(first) => Ok(ReadOpening::Passed(pieces(reader, first))),
        ReadStep::Elsewhere => Ok(ReadOpening::NotTaken),
        ReadStep::Unfit(what) => {
            connection.state().end(Fault::broken(&what));
            Err(connection.error())
        }
    }
}

/// A passed file that is being read.
struct FileReader {
    file: Arc<PassedFile>,
    at: u64,
    end: u64,
    /// The size when the guest opened it.
    size: u64,
    connection: Connection,
    /// The call, whose answer came with the file or is about to come.
    _call: Call,
}

/// The result of a step.
enum ReadStep {
    /// A piece.
    Piece(FilePiece),
    /// The file is not the sandbox's own.
    Elsewhere,
    /// No honest guest passes such a descriptor.
    Unfit(String),
}

/// A part of a file.
struct FilePiece {
    bytes: Vec<u8>,
    is_last: bool,
}

impl FileReader {
    /// Reads the next piece. With a gate, the file is checked before.
    async fn read(&mut self, gate: Option<Arc<dyn FileGate>>) -> Result<ReadStep> {
        let Some(file) = self.file.open() else {
            return Err(self.connection.error());
        };
        let at = self.at;
        // From the caller's memory: that of the thread is new to it, and the kernel would have to
        // make each page of it first.
        let space = Vec::with_capacity(self.wanted());
        // The place is taken for as long as the thread is.
        let place = Arc::clone(&self.file);
        let reading = tokio::task::spawn_blocking(move || {
            let looked = look(&file, gate.as_deref(), at, space);
            drop(file);
            drop(place);
            looked
        });
        let looked = match tokio::time::timeout(PATIENCE, reading).await {
            Ok(Ok(looked)) => looked.map_err(unreadable)?,
            Ok(Err(stopped)) => {
                let message = "the thread that read the file was stopped";
                return Err(Error::new(ErrorKind::Internal, message).with_source(stopped));
            }
            Err(_late) => return Err(Error::new(ErrorKind::Unavailable, "its disk does not answer")),
        };
        if let ReadStep::Piece(piece) = &looked {
            self.at += piece.bytes.len() as u64;
        }
        Ok(looked)
    }

    /// Returns the most bytes of the next piece. One more than the file should have, so that one
    /// piece shows its end too.
    fn wanted(&self) -> usize {
        let expected = self.size.checked_sub(self.at).map_or(PIECE_BYTES, |left| left.saturating_add(1));
        expected.min(PIECE_BYTES).min(self.end - self.at) as usize
    }

    async fn next(&mut self) -> Result<FilePiece> {
        match self.read(None).await? {
            ReadStep::Piece(piece) => Ok(piece),
            // The check is made once.
            ReadStep::Elsewhere | ReadStep::Unfit(_) => Ok(FilePiece { bytes: Vec::new(), is_last: true }),
        }
    }
}

fn unreadable(errno: Errno) -> Error {
    Error::new(ErrorKind::Internal, "its disk failed").with_source(std::io::Error::from(errno))
}

/// Checks the file if there is a gate, and reads a piece into this space.
fn look(
    file: &Arc<OwnedFd>,
    gate: Option<&dyn FileGate>,
    at: u64,
    space: Vec<u8>,
) -> std::result::Result<ReadStep, Errno> {
    match gate.map_or(Ok(FileOrigin::Sandbox), |gate| check_file(file.as_fd(), OFlags::RDONLY, gate)) {
        Ok(FileOrigin::Sandbox) => read_piece(file.as_fd(), at, space).map(ReadStep::Piece),
        Ok(FileOrigin::Elsewhere) => Ok(ReadStep::Elsewhere),
        Err(what) => Ok(ReadStep::Unfit(what)),
    }
}

/// Reads until the space is full or the file ends.
fn read_piece(file: BorrowedFd<'_>, at: u64, mut bytes: Vec<u8>) -> std::result::Result<FilePiece, Errno> {
    while bytes.len() < bytes.capacity() {
        let offset = at + bytes.len() as u64;
        match rustix::io::pread(file, spare_capacity(&mut bytes), offset) {
            Ok(0) => return Ok(FilePiece { bytes, is_last: true }),
            Ok(_) | Err(Errno::INTR) => {}
            Err(errno) => return Err(errno),
        }
    }
    Ok(FilePiece { bytes, is_last: false })
}

/// The pieces from the first on.
fn pieces(reader: FileReader, first: FilePiece) -> ByteStream {
    let rest = (!first.is_last).then_some(reader);
    let rest = stream::try_unfold(rest, |reader| async move {
        let Some(mut reader) = reader.filter(|reader| reader.at < reader.end) else {
            return Ok(None);
        };
        let piece = reader.next().await?;
        let rest = (!piece.is_last).then_some(reader);
        Ok((!piece.bytes.is_empty()).then(|| (Bytes::from(piece.bytes), rest)))
    });
    let first = (!first.bytes.is_empty()).then(|| Ok(Bytes::from(first.bytes)));
    Box::pin(stream::iter(first).chain(rest))
}
