//! The standard input of a command: bytes that wait until it reads them.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use bytes::Bytes;
use eyot::{Error, ErrorKind, ExecutionInput, MAX_STDIN_BYTES, Result};
use tokio::sync::Notify;

/// The bytes that wait. There is one writer and one reader.
#[derive(Debug, Default)]
pub(super) struct JobInput {
    state: Mutex<InputState>,
    readable: Notify,
    writable: Notify,
}

#[derive(Debug, Default)]
struct InputState {
    pieces: VecDeque<Bytes>,
    bytes: usize,
    has_ended: bool,
    /// The command reads no more.
    is_closed: bool,
}

impl JobInput {
    fn lock(&self) -> MutexGuard<'_, InputState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds bytes if there is room for all of them.
    ///
    /// # Errors
    /// `conflict`: the command takes no more input, or has not read what it got.
    pub(super) fn offer(&self, bytes: Bytes) -> Result<()> {
        let mut state = self.lock();
        if state.has_ended || state.is_closed {
            return Err(Error::new(ErrorKind::Conflict, "the process takes no more input"));
        }
        if state.bytes + bytes.len() > MAX_STDIN_BYTES {
            return Err(Error::new(ErrorKind::Conflict, "the process has not read the input that it got"));
        }
        state.add(bytes);
        drop(state);
        self.readable.notify_one();
        Ok(())
    }

    /// Adds all the bytes that there will be.
    pub(super) fn give_all(&self, bytes: Bytes) {
        let mut state = self.lock();
        state.add(bytes);
        state.has_ended = true;
        drop(state);
        self.readable.notify_one();
    }

    /// Adds bytes once there is room. Returns `false` if the command reads no more.
    async fn push(&self, bytes: Bytes) -> bool {
        loop {
            {
                let mut state = self.lock();
                if state.is_closed {
                    return false;
                }
                if state.bytes < MAX_STDIN_BYTES {
                    state.add(bytes);
                    self.readable.notify_one();
                    return true;
                }
            }
            self.writable.notified().await;
        }
    }

    /// Says that nothing follows.
    pub(super) fn end(&self) {
        self.lock().has_ended = true;
        self.readable.notify_one();
    }

    /// Says that the command reads no more.
    pub(super) fn close(&self) {
        let mut state = self.lock();
        state.is_closed = true;
        state.pieces.clear();
        drop(state);
        self.writable.notify_one();
        self.readable.notify_one();
    }

    /// Takes the next bytes. `None`: the end.
    pub(super) async fn next(&self) -> Option<Bytes> {
        loop {
            {
                let mut state = self.lock();
                if let Some(bytes) = state.pieces.pop_front() {
                    state.bytes -= bytes.len();
                    self.writable.notify_one();
                    return Some(bytes);
                }
                if state.has_ended || state.is_closed {
                    return None;
                }
            }
            self.readable.notified().await;
        }
    }
}

impl InputState {
    fn add(&mut self, bytes: Bytes) {
        self.bytes += bytes.len();
        self.pieces.push_back(bytes);
    }
}

/// The writer of an input. The input ends when this is dropped.
pub(super) struct JobInputWriter(pub Arc<JobInput>);

#[async_trait]
impl ExecutionInput for JobInputWriter {
    async fn write(&mut self, bytes: Bytes) -> Result<()> {
        if self.0.push(bytes).await {
            Ok(())
        } else {
            Err(Error::new(ErrorKind::Conflict, "the command reads no more input"))
        }
    }
}

impl Drop for JobInputWriter {
    fn drop(&mut self) {
        self.0.end();
    }
}
