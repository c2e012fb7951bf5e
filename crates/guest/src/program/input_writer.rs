//! A pipe, terminal or socket that a client writes to, with what it does not take yet.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;

use super::input_queue::InputQueue;
use super::poll::{Poll, PollToken};

/// The writing end and its queue.
#[derive(Debug)]
pub struct InputWriter {
    fd: OwnedFd,
    poll: Arc<Poll>,
    token: PollToken,
    watched: bool,
    queue: InputQueue,
}

impl InputWriter {
    /// For a descriptor that never waits and that `poll` does not watch yet.
    pub fn new(fd: OwnedFd, poll: Arc<Poll>, token: PollToken) -> Self {
        Self { fd, poll, token, watched: false, queue: InputQueue::new() }
    }

    /// The descriptor.
    pub fn fd(&self) -> &OwnedFd {
        &self.fd
    }

    /// Takes what the client sent. `false`: more than was granted.
    pub fn accept(&mut self, bytes: &[u8]) -> bool {
        self.queue.accept(bytes)
    }

    /// The client sends no more; `last` goes behind everything it sent.
    pub fn end(&mut self, last: &[u8]) {
        self.queue.end(last);
    }

    /// Writes as much as fits, and watches for room if bytes are left. Returns how many bytes to
    /// grant, if any.
    pub fn write(&mut self) -> Option<u32> {
        self.queue.write_to(self.fd.as_fd());
        self.watch(self.queue.has_pending());
        self.queue.take_grant()
    }

    /// See [`InputQueue::grant_anew`].
    pub fn grant_anew(&mut self) -> bool {
        self.queue.grant_anew()
    }

    /// Tells whether more may come.
    pub fn takes_more(&self) -> bool {
        self.queue.takes_more()
    }

    /// Tells whether everything was written and no more bytes come.
    pub fn is_finished(&self) -> bool {
        self.queue.is_finished()
    }

    /// Tells whether the reader is gone.
    pub fn is_broken(&self) -> bool {
        self.queue.is_broken()
    }

    /// Waits for a connect to settle.
    pub fn watch_for_connect(&mut self) -> io::Result<()> {
        self.poll.add_writer(self.fd.as_fd(), self.token)?;
        self.watched = true;
        Ok(())
    }

    /// Goes on where another one stopped.
    pub fn take_queue_of(&mut self, other: &mut Self) {
        self.queue = std::mem::replace(&mut other.queue, InputQueue::new());
    }

    fn watch(&mut self, wanted: bool) {
        if self.watched == wanted {
            return;
        }
        let fd = self.fd.as_fd();
        let changed = if wanted { self.poll.add_writer(fd, self.token) } else { self.poll.remove(fd) };
        debug_assert!(changed.is_ok(), "watching one's own descriptor: {changed:?}");
        self.watched = wanted;
    }
}

impl Drop for InputWriter {
    fn drop(&mut self) {
        // A child that is just being made may hold a copy of the descriptor, and epoll would go on
        // with that.
        self.watch(false);
    }
}
