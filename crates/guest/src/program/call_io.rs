//! The interface between a file call and its connection: bytes out, bytes in, and whether the
//! caller still waits. The file code knows neither frames nor threads, and a test drives it with a
//! few vectors.

use std::os::fd::BorrowedFd;
use std::time::Instant;

use crate::protocol::{Event, Reply};

/// The call is over for its caller: cancelled, or its connection is gone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stopped;

/// The two streams of a call, as the code that serves it sees them. Every method may block its
/// thread.
pub trait CallIo {
    /// Sends bytes on the main channel, and waits for credit. It splits them into frames: up to
    /// [`MAX_PAYLOAD_BYTES`](crate::protocol::MAX_PAYLOAD_BYTES) travel as exactly one frame.
    fn send(&mut self, bytes: &[u8]) -> Result<(), Stopped>;

    /// Receives the next piece of the main channel, and grants credit. Returns `None` at the end.
    fn receive(&mut self) -> Result<Option<Vec<u8>>, Stopped>;

    /// Tells the client that something happened.
    fn event(&mut self, event: Event) -> Result<(), Stopped>;

    /// Passes a descriptor to the client, with an event, and ends the call with an answer if one is
    /// given. Returns `false` if the connection can't take a descriptor now: then nothing was sent.
    fn pass(&mut self, file: BorrowedFd<'_>, event: Event, answer: Option<Reply>) -> Result<bool, Stopped>;

    /// Waits until a descriptor has something to read, at most until a moment; `false` when that
    /// came first.
    fn wait(&mut self, fd: BorrowedFd<'_>, until: Option<Instant>) -> Result<bool, Stopped>;

    /// Tells whether the call is over for its caller. Long loops check it now and then.
    fn stopped(&self) -> bool;
}
