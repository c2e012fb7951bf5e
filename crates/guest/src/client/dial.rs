//! A connection to a port inside, as bytes both ways.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use eyot::{Error, ErrorKind};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use super::call::Call;

/// A connection that a call has opened. Shutting it down sends the end of what is written, and what
/// the port sends can still be read; dropping it cuts the connection.
pub(super) struct PortStream {
    call: Call,
    /// Bytes that arrived and did not fit the reader's buffer.
    rest: Vec<u8>,
    taken: usize,
    read_to_end: bool,
    finished: bool,
}

impl PortStream {
    /// The connection of a call that has been opened.
    pub(super) fn new(call: Call) -> Self {
        Self { call, rest: Vec::new(), taken: 0, read_to_end: false, finished: false }
    }

    /// Makes `rest` hold something, or learns that nothing more comes.
    fn poll_rest(&mut self, context: &Context<'_>) -> Poll<io::Result<()>> {
        match self.call.poll_piece(context) {
            Poll::Ready(Some(piece)) => {
                (self.rest, self.taken) = (piece.bytes, 0);
                Poll::Ready(Ok(()))
            }
            Poll::Ready(None) => {
                self.read_to_end = true;
                // The port may have ended its direction alone; the call then goes on for the other
                // one.
                match self.call.poll_reply(context) {
                    Poll::Ready(end) => Poll::Ready(end.map(drop).map_err(io_error)),
                    Poll::Pending => Poll::Ready(Ok(())),
                }
            }
            Poll::Pending => Poll::Pending,
        }
    }
}

impl AsyncRead for PortStream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if self.taken == self.rest.len() && !self.read_to_end {
            ready!(self.poll_rest(context))?;
        }
        let end = self.rest.len().min(self.taken + buffer.remaining());
        buffer.put_slice(&self.rest[self.taken..end]);
        self.taken = end;
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for PortStream {
    fn poll_write(self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        if bytes.is_empty() {
            return Poll::Ready(Ok(0));
        }
        if self.finished {
            return Poll::Ready(Err(io::ErrorKind::BrokenPipe.into()));
        }
        match ready!(self.call.sender().poll_send(context, bytes)) {
            Some(sent) => Poll::Ready(Ok(sent)),
            None => Poll::Ready(Err(io::ErrorKind::BrokenPipe.into())),
        }
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        if !std::mem::replace(&mut self.finished, true) {
            self.call.sender().send_end();
        }
        Poll::Ready(Ok(()))
    }
}

fn io_error(error: Error) -> io::Error {
    let kind = match error.kind() {
        ErrorKind::Timeout => io::ErrorKind::TimedOut,
        ErrorKind::Permission => io::ErrorKind::PermissionDenied,
        _ => io::ErrorKind::ConnectionReset,
    };
    io::Error::new(kind, error)
}
