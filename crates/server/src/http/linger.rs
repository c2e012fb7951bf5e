//! The close of a connection whose request was answered before its body was read: the server reads
//! on for a while. A close with unread bytes makes the kernel send a reset, and the client would
//! lose the answer to it.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Sleep, sleep};

/// The longest time for which the rest of a body is read and thrown away.
const LINGER: Duration = Duration::from_secs(2);
/// The size of the pieces that are thrown away, in bytes.
const PIECE_BYTES: usize = 16 << 10;

/// A stream that lingers when it is shut down before the request's body has ended.
pub(super) struct LingeringStream<S> {
    stream: S,
    /// Set when the body of the last request was read to its end.
    body_has_ended: Arc<AtomicBool>,
    /// The end of the lingering, once the stream was shut down.
    until: Option<Pin<Box<Sleep>>>,
}

impl<S> LingeringStream<S> {
    /// Wraps a stream. `body_has_ended` tells whether a client may still be sending a body.
    pub fn new(stream: S, body_has_ended: Arc<AtomicBool>) -> Self {
        Self { stream, body_has_ended, until: None }
    }
}

impl<S: AsyncRead + Unpin> LingeringStream<S> {
    /// Reads until the client closes, the connection breaks, or `until` has passed.
    fn poll_linger(&mut self, until: &mut Pin<Box<Sleep>>, context: &mut Context<'_>) -> Poll<()> {
        let mut piece = [0; PIECE_BYTES];
        loop {
            if until.as_mut().poll(context).is_ready() {
                return Poll::Ready(());
            }
            let mut rest = ReadBuf::new(&mut piece);
            let read = ready!(Pin::new(&mut self.stream).poll_read(context, &mut rest));
            if read.is_err() || rest.filled().is_empty() {
                return Poll::Ready(());
            }
        }
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for LingeringStream<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(context, buffer)
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncWrite for LingeringStream<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let mut until = match self.until.take() {
            Some(until) => until,
            None => {
                ready!(Pin::new(&mut self.stream).poll_shutdown(context))?;
                if self.body_has_ended.load(Ordering::Acquire) {
                    return Poll::Ready(Ok(()));
                }
                Box::pin(sleep(LINGER))
            }
        };
        let polled = self.poll_linger(&mut until, context);
        self.until = Some(until);
        polled.map(Ok)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        pieces: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write_vectored(context, pieces)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }
}
