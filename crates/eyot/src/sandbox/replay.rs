//! A stream that can be written a second time: what the first try pulled is kept, up to a bound, so that a missing
//! parent directory can be made and the write tried again without the caller's help.

use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};

use bytes::Bytes;
use futures_util::{Stream, StreamExt, stream};

use crate::driver::ByteStream;
use crate::error::Result;

/// The most bytes that a first try may pull and still be tried again. A driver that notices a
/// missing directory notices it long before.
const KEPT_BYTES: usize = 1 << 20;

/// A stream of which the beginning is remembered while somebody else reads it.
pub(super) struct Replay(Arc<Mutex<ReplayBuffer>>);

struct ReplayBuffer {
    source: ByteStream,
    /// The pieces that were pulled, until it became too much or the source failed.
    pulled: Option<Vec<Bytes>>,
    kept: usize,
    total: u64,
}

impl Replay {
    pub(super) fn new(source: ByteStream) -> Self {
        Self(Arc::new(Mutex::new(ReplayBuffer { source, pulled: Some(Vec::new()), kept: 0, total: 0 })))
    }

    /// Returns the stream that a driver is given to read.
    pub(super) fn reader(&self) -> ByteStream {
        ReplayReader(self.0.clone()).boxed()
    }

    /// Returns the number of bytes that were pulled.
    pub(super) fn total(&self) -> u64 {
        self.lock().total
    }

    /// The stream from its beginning, or `None` if too much of it is gone. Counting begins again, too.
    pub(super) fn rewind(&self) -> Option<ByteStream> {
        let mut tape = self.lock();
        let pulled = tape.pulled.take()?;
        let rest = std::mem::replace(&mut tape.source, stream::empty().boxed());
        tape.source = stream::iter(pulled.into_iter().map(Ok)).chain(rest).boxed();
        tape.total = 0;
        drop(tape);
        Some(self.reader())
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, ReplayBuffer> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

struct ReplayReader(Arc<Mutex<ReplayBuffer>>);

impl Stream for ReplayReader {
    type Item = Result<Bytes>;

    fn poll_next(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let mut tape = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let polled = tape.source.poll_next_unpin(context);
        match &polled {
            Poll::Ready(Some(Ok(bytes))) => tape.remember(bytes),
            Poll::Ready(Some(Err(_))) => tape.pulled = None,
            _ => {}
        }
        polled
    }
}

impl ReplayBuffer {
    fn remember(&mut self, bytes: &Bytes) {
        self.total += bytes.len() as u64;
        self.kept += bytes.len();
        match &mut self.pulled {
            Some(pulled) if self.kept <= KEPT_BYTES => pulled.push(bytes.clone()),
            _ => self.pulled = None,
        }
    }
}
