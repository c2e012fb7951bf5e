//! The end of a command's pipe or terminal that the guest reads, and how much of it the client
//! takes.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;

use super::poll::{Poll, PollToken};
use super::sys;
use crate::protocol::WINDOW;

/// The result of a read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReadOutcome {
    /// So many bytes.
    Bytes(usize),
    /// Nothing now.
    Nothing,
    /// The last writer is gone.
    End,
}

/// One output stream of a command.
#[derive(Debug)]
pub struct OutputStream {
    fd: OwnedFd,
    poll: Arc<Poll>,
    token: PollToken,
    watched: bool,
    /// The client's channel.
    pub channel: u8,
    /// The number of bytes that the client still takes.
    pub credit: u64,
    /// The bytes that were in the pipe at the command's end, and that the client does not take yet.
    pub held: Vec<u8>,
}

impl OutputStream {
    /// For a pipe or terminal that never waits, watched from now on.
    pub fn new(fd: OwnedFd, poll: Arc<Poll>, token: PollToken, channel: u8) -> io::Result<Self> {
        poll.add_reader(fd.as_fd(), token)?;
        let credit = u64::from(WINDOW);
        Ok(Self { fd, poll, token, watched: true, channel, credit, held: Vec::new() })
    }

    /// Begins or stops to watch for more.
    pub fn watch(&mut self, wanted: bool) {
        if self.watched == wanted {
            return;
        }
        let changed = if wanted {
            self.poll.add_reader(self.fd.as_fd(), self.token)
        } else {
            self.poll.remove(self.fd.as_fd())
        };
        debug_assert!(changed.is_ok(), "watching one's own pipe: {changed:?}");
        self.watched = wanted;
    }

    /// Reads once. A terminal whose other side is closed says EIO.
    pub fn take(&self, buffer: &mut [u8]) -> ReadOutcome {
        match sys::read(self.fd.as_fd(), buffer) {
            Ok(0) => ReadOutcome::End,
            Ok(count) => ReadOutcome::Bytes(count),
            Err(error) if matches!(error.raw_os_error(), Some(libc::EAGAIN | libc::EINTR)) => {
                ReadOutcome::Nothing
            }
            Err(_) => ReadOutcome::End,
        }
    }

    /// Tells whether something can be read right now.
    pub fn has_bytes(&self) -> bool {
        sys::bytes_waiting(self.fd.as_fd()) > 0
    }

    /// Tells whether the last writer is gone. Bytes may be left.
    pub fn has_ended(&self) -> bool {
        sys::has_hung_up(self.fd.as_fd())
    }

    /// Moves the bytes that can be read right now, and no more, into the held bytes, and stops
    /// watching.
    pub fn hold_what_waits(&mut self) {
        self.watch(false);
        let mut end = self.held.len();
        self.held.resize(end + sys::bytes_waiting(self.fd.as_fd()), 0);
        while end < self.held.len() {
            match sys::read(self.fd.as_fd(), &mut self.held[end..]) {
                Ok(count) if count > 0 => end += count,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                _ => break,
            }
        }
        self.held.truncate(end);
    }
}

impl Drop for OutputStream {
    fn drop(&mut self) {
        // A child that is just being made may hold a copy of the descriptor, and epoll would go on
        // with that.
        self.watch(false);
    }
}
