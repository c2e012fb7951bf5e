//! The bytes that wait to be sent to the guest. A sender tries the stream at once, on its own task,
//! so that a call costs no switch to a writer. The writer task sends only the bytes that the stream
//! did not take.
//!
//! Senders of requests and data wait while much is left. Urgent frames (credits, ends, cancels: a
//! few bytes each) do not wait. A guest that lets even those pile up has stopped reading.

use std::io::{self, IoSlice};
use std::pin::Pin;
use std::sync::Mutex;
use std::task::{Context, Poll, Waker, ready};

use bytes::{Buf, BytesMut};
use tokio::io::AsyncWrite;

use super::lock;

/// Requests and data wait while this much is left.
const HIGH_BYTES: usize = 256 * 1024;
/// Even frames that do not wait may not pile up beyond this.
const MAX_BYTES: usize = 24 << 20;
/// From here on, copying bytes into the queue costs more than preparing to write them from where
/// they are.
const DIRECT_BYTES: usize = 4096;
/// A queue that has grown beyond this gives its memory back when it is empty.
const KEPT_BYTES: usize = 512 * 1024;

/// The way to the guest.
pub(super) struct SendQueue(Mutex<State>);

struct State {
    stream: Option<Box<dyn AsyncWrite + Send + Unpin>>,
    queue: BytesMut,
    /// The stream took less than it was given: the writer task waits for it.
    stalled: bool,
    error: Option<io::Error>,
    writer: Option<Waker>,
    waiting: Vec<Waker>,
}

/// The outbox is closed, or the guest reads nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SendError {
    /// The stream is gone.
    Closed,
    /// The guest lets everything pile up.
    NotRead,
}

impl SendQueue {
    /// An empty one.
    pub(super) fn new(stream: impl AsyncWrite + Send + Unpin + 'static) -> Self {
        Self(Mutex::new(State {
            stream: Some(Box::new(stream)),
            queue: BytesMut::new(),
            stalled: false,
            error: None,
            writer: None,
            waiting: Vec::new(),
        }))
    }

    /// Sends these bytes, in this order and without others in between, as soon as there is room for
    /// them.
    pub(super) fn poll_push(&self, context: &Context<'_>, parts: &[&[u8]]) -> Poll<Result<(), SendError>> {
        let mut state = lock(&self.0);
        if !state.is_usable() {
            return Poll::Ready(Err(SendError::Closed));
        }
        if state.queue.len() >= HIGH_BYTES {
            state.wait(context.waker());
            return Poll::Pending;
        }
        state.push(parts);
        // The rest in the queue of a stream that failed never reaches the guest as a whole.
        let is_lost = state.error.is_some() && !state.queue.is_empty();
        Poll::Ready(if is_lost { Err(SendError::Closed) } else { Ok(()) })
    }

    /// Tells whether nothing can be sent any more.
    pub(super) fn is_closed(&self) -> bool {
        !lock(&self.0).is_usable()
    }

    /// Sends a few bytes without waiting.
    pub(super) fn push_now(&self, parts: &[&[u8]]) -> Result<(), SendError> {
        let mut state = lock(&self.0);
        if !state.is_usable() {
            return Err(SendError::Closed);
        }
        if state.queue.len() > MAX_BYTES {
            return Err(SendError::NotRead);
        }
        state.push(parts);
        Ok(())
    }

    /// Writes queued bytes to the stream; this is the work of the writer task. It returns the
    /// stream's error, or `None` when the queue is closed.
    pub(super) async fn write_leftovers(&self) -> Option<io::Error> {
        std::future::poll_fn(|context| self.poll_leftovers(context)).await
    }

    fn poll_leftovers(&self, context: &mut Context<'_>) -> Poll<Option<io::Error>> {
        let (outcome, woken) = {
            let mut state = lock(&self.0);
            state.writer = Some(context.waker().clone());
            if state.stream.is_none() {
                return Poll::Ready(state.error.take());
            }
            if state.stalled {
                state.write(context);
            }
            let outcome = state.error.take();
            if outcome.is_some() {
                state.stream = None;
            }
            (outcome, state.take_waiting())
        };
        woken.into_iter().for_each(Waker::wake);
        match outcome {
            Some(error) => Poll::Ready(Some(error)),
            None => Poll::Pending,
        }
    }

    /// Drops the stream and what was left for it.
    pub(super) fn close(&self) {
        let (stream, woken) = {
            let mut state = lock(&self.0);
            state.queue = BytesMut::new();
            let mut woken = std::mem::take(&mut state.waiting);
            woken.extend(state.writer.take());
            (state.stream.take(), woken)
        };
        drop(stream);
        woken.into_iter().for_each(Waker::wake);
    }
}

impl State {
    fn is_usable(&self) -> bool {
        self.stream.is_some() && self.error.is_none()
    }

    fn push(&mut self, parts: &[&[u8]]) {
        let mut written = self.write_directly(parts);
        for part in parts {
            let skipped = written.min(part.len());
            self.queue.extend_from_slice(&part[skipped..]);
            written -= skipped;
        }
        if self.stalled {
            return;
        }
        // The writer task registers its own waker when it takes over.
        self.write(&mut Context::from_waker(Waker::noop()));
        if (self.stalled || self.error.is_some())
            && let Some(writer) = self.writer.take()
        {
            writer.wake();
        }
    }

    /// Spares large frames the way through an empty queue. Says how many bytes the stream took.
    fn write_directly(&mut self, parts: &[&[u8]]) -> usize {
        let length: usize = parts.iter().map(|part| part.len()).sum();
        let Some(stream) = self.stream.as_mut().filter(|stream| stream.is_write_vectored()) else {
            return 0;
        };
        if length < DIRECT_BYTES || self.stalled || !self.queue.is_empty() {
            return 0;
        }
        let slices: Vec<IoSlice<'_>> = parts.iter().map(|part| IoSlice::new(part)).collect();
        let mut context = Context::from_waker(Waker::noop());
        match Pin::new(stream).poll_write_vectored(&mut context, &slices) {
            Poll::Ready(Ok(written)) => written,
            // The queue's own attempt meets the same, and deals with it.
            Poll::Ready(Err(_)) | Poll::Pending => 0,
        }
    }

    /// Writes as much as the stream takes now; `stalled` says whether something is left.
    fn write(&mut self, context: &mut Context<'_>) {
        match self.poll_write(context) {
            Poll::Pending => self.stalled = true,
            Poll::Ready(outcome) => {
                self.stalled = false;
                self.error = outcome.err();
            }
        }
    }

    fn poll_write(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let Some(stream) = self.stream.as_mut() else {
            return Poll::Ready(Ok(()));
        };
        while !self.queue.is_empty() {
            match ready!(Pin::new(&mut *stream).poll_write(context, &self.queue))? {
                0 => return Poll::Ready(Err(io::ErrorKind::WriteZero.into())),
                written => self.queue.advance(written),
            }
        }
        if self.queue.capacity() > KEPT_BYTES {
            self.queue = BytesMut::new();
        }
        Pin::new(stream).poll_flush(context)
    }

    fn wait(&mut self, waker: &Waker) {
        if !self.waiting.iter().any(|waiting| waiting.will_wake(waker)) {
            self.waiting.push(waker.clone());
        }
    }

    fn take_waiting(&mut self) -> Vec<Waker> {
        if self.queue.len() < HIGH_BYTES || self.stream.is_none() {
            std::mem::take(&mut self.waiting)
        } else {
            Vec::new()
        }
    }
}
