//! Functions for the fuzzer alone: the parts of the guest that read bytes from outside, without a
//! sandbox around them.

use std::collections::VecDeque;
use std::os::fd::BorrowedFd;
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::time::Instant;

use super::call_io::{CallIo, Stopped};
use super::connection::Connection;
use super::failure::{failure, internal};
use super::files::{self, Pattern, Refusal};
use super::outbox::Outbox;
use super::poll::{Poll, PollToken};
use crate::protocol::{Decoder, Event, Failure, GuestConfig, Kind, Location, Reply, Request};

/// The requests in a client's stream, which arrives in pieces of `size` bytes, and why the
/// connection is then refused if it is. Nothing is served.
///
/// # Panics
/// Without descriptors for a socket.
pub fn requests(
    stream: &[u8],
    size: usize,
    config: &GuestConfig,
) -> (Vec<(u32, Request)>, Result<(), Failure>) {
    let (ours, _theirs) = UnixStream::pair().expect("a pair of sockets");
    let poll = Arc::new(Poll::new().expect("an epoll"));
    let outbox = Outbox::new(ours.into(), poll, PollToken::Connection(1)).expect("a socket that is watched");
    let mut connection = Connection::new(1, Arc::new(outbox), true);
    let mut requests = Vec::new();
    let mut decoder = Decoder::new();
    for piece in stream.chunks(size.max(1)) {
        decoder.push(piece);
        if let Err(refusal) = serve_frames(&mut decoder, &mut connection, config, &mut requests) {
            return (requests, Err(refusal));
        }
    }
    (requests, Ok(()))
}

fn serve_frames(
    decoder: &mut Decoder,
    connection: &mut Connection,
    config: &GuestConfig,
    requests: &mut Vec<(u32, Request)>,
) -> Result<(), Failure> {
    while let Some(frame) = decoder.next_frame().map_err(|error| failure("invalid", error.to_string()))? {
        let call = frame.header.call;
        match frame.header.kind {
            _ if !connection.has_greeted() => connection.greet(&frame, config, None)?,
            Kind::Request => {
                let request = connection.assemble(frame)?;
                requests.extend(request.map(|request| (call, request)));
            }
            _ => drop(connection.open_call(call)?),
        }
    }
    Ok(())
}

/// Unpacks a tar stream, which arrives in pieces of `size` bytes, below a directory; the number of
/// entries made.
///
/// # Errors
/// Whatever the guest would answer.
pub fn tar_in(
    directory: Location,
    stream: &[u8],
    size: usize,
    max_bytes: u64,
    max_entries: u64,
) -> Result<u64, Failure> {
    let mut io = Pieces(stream.chunks(size.max(1)).map(<[u8]>::to_vec).collect());
    match files::serve(Request::TarIn(directory, max_bytes, max_entries), &mut io)? {
        Reply::Size(entries) => Ok(entries),
        other => Err(internal("unpack", &std::io::Error::other(format!("{other:?}")))),
    }
}

/// A glob pattern.
pub struct Glob(Pattern);

impl Glob {
    /// Compiles it.
    ///
    /// # Errors
    /// Whatever the guest would answer.
    pub fn new(text: &str, hidden: bool) -> Result<Self, Failure> {
        Pattern::new(text, hidden).map(Self).map_err(|refused| Refusal::from(refused).into_failure())
    }

    /// Tells whether the file at the end of these names matches, as a walk finds out: it does not
    /// enter a directory below which it knows that nothing can match.
    pub fn is_match(&self, directories: &[&[u8]], name: &[u8]) -> bool {
        let mut progress = self.0.start();
        for directory in directories {
            progress = self.0.enter(&progress, directory);
            if progress.is_dead() {
                return false;
            }
        }
        self.0.matches(&progress, name)
    }
}

/// A call whose content is all there.
struct Pieces(VecDeque<Vec<u8>>);

impl CallIo for Pieces {
    fn send(&mut self, _bytes: &[u8]) -> Result<(), Stopped> {
        Ok(())
    }

    fn receive(&mut self) -> Result<Option<Vec<u8>>, Stopped> {
        Ok(self.0.pop_front())
    }

    fn event(&mut self, _event: Event) -> Result<(), Stopped> {
        Ok(())
    }

    fn pass(&mut self, _: BorrowedFd<'_>, _: Event, _: Option<Reply>) -> Result<bool, Stopped> {
        Ok(false)
    }

    fn wait(&mut self, _fd: BorrowedFd<'_>, _until: Option<Instant>) -> Result<bool, Stopped> {
        Err(Stopped)
    }

    fn stopped(&self) -> bool {
        false
    }
}
