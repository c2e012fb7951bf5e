//! Bytes on their way from a client into a pipe, a terminal or a socket that may not take them at
//! once. It never holds more than was granted.

use std::io;
use std::os::fd::BorrowedFd;

use super::sys;
use crate::protocol::WINDOW;

/// Credit is granted in steps of this many bytes.
const GRANT_BYTES: u32 = WINDOW / 4;

/// Bytes that wait to be written.
#[derive(Debug)]
pub struct InputQueue {
    pending: Vec<u8>,
    written: usize,
    allowance: u32,
    consumed: u32,
    ended: bool,
    broken: bool,
}

impl InputQueue {
    /// An empty one, with the first window granted.
    pub fn new() -> Self {
        Self { pending: Vec::new(), written: 0, allowance: WINDOW, consumed: 0, ended: false, broken: false }
    }

    /// Takes what the client sent. `false`: more than was granted.
    pub fn accept(&mut self, bytes: &[u8]) -> bool {
        let Some(allowance) =
            u32::try_from(bytes.len()).ok().and_then(|sent| self.allowance.checked_sub(sent))
        else {
            return false;
        };
        self.allowance = allowance;
        if self.broken || self.ended {
            self.consumed += bytes.len() as u32;
        } else {
            self.pending.extend_from_slice(bytes);
        }
        true
    }

    /// The client sends no more; `last` goes behind everything it sent.
    pub fn end(&mut self, last: &[u8]) {
        if !self.ended && !self.broken {
            self.pending.extend_from_slice(last);
        }
        self.ended = true;
    }

    /// Writes as much as the descriptor takes now. Without a reader, the rest is dropped.
    pub fn write_to(&mut self, fd: BorrowedFd<'_>) {
        while self.has_pending() {
            match sys::write(fd, &self.pending[self.written..]) {
                Ok(count) => self.note_written(count),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return,
                Err(_) => {
                    self.broken = true;
                    self.note_written(self.pending.len() - self.written);
                }
            }
        }
    }

    fn note_written(&mut self, count: usize) {
        self.written += count;
        self.consumed = self.consumed.saturating_add(count as u32);
        if !self.has_pending() {
            self.pending.clear();
            self.written = 0;
        }
    }

    /// Returns how many bytes to grant now, if it is worth a frame.
    pub fn take_grant(&mut self) -> Option<u32> {
        if self.ended || self.consumed < GRANT_BYTES {
            return None;
        }
        let grant = std::mem::take(&mut self.consumed);
        self.allowance = self.allowance.saturating_add(grant);
        Some(grant)
    }

    /// Grants the first window to another client. `false`: the bytes of the one before fill a window
    /// still.
    pub fn grant_anew(&mut self) -> bool {
        let has_room = self.pending.len() - self.written < WINDOW as usize;
        if has_room {
            (self.allowance, self.consumed) = (WINDOW, 0);
        }
        has_room
    }

    /// Tells whether more may come.
    pub fn takes_more(&self) -> bool {
        !self.ended
    }

    /// Tells whether bytes wait to be written.
    pub fn has_pending(&self) -> bool {
        self.written < self.pending.len()
    }

    /// Tells whether everything was written and no more bytes come.
    pub fn is_finished(&self) -> bool {
        self.ended && !self.has_pending()
    }

    /// Tells whether the reader is gone.
    pub fn is_broken(&self) -> bool {
        self.broken
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::fd::AsFd;

    #[test]
    fn more_than_was_granted_is_refused() {
        let mut queue = InputQueue::new();
        assert!(queue.accept(&vec![0; WINDOW as usize]));
        assert!(!queue.accept(&[0]));
    }

    #[test]
    fn what_nobody_reads_is_swallowed_and_still_granted() {
        let (reader, writer) = sys::pipe().unwrap();
        drop(reader);
        sys::set_nonblocking(writer.as_fd()).unwrap();
        let mut queue = InputQueue::new();
        for _ in 0..8 {
            assert!(queue.accept(&vec![0; GRANT_BYTES as usize]));
            queue.write_to(writer.as_fd());
            assert_eq!(queue.take_grant(), Some(GRANT_BYTES));
        }
        assert!(queue.is_broken() && !queue.has_pending());
    }

    #[test]
    fn a_full_pipe_holds_the_rest_back() {
        let (reader, writer) = sys::pipe().unwrap();
        sys::set_nonblocking(writer.as_fd()).unwrap();
        let mut queue = InputQueue::new();
        assert!(queue.accept(&vec![7; WINDOW as usize]));
        queue.end(b"!");
        let mut received = Vec::new();
        while !queue.is_finished() {
            queue.write_to(writer.as_fd());
            let mut buffer = vec![0; 1 << 20];
            let count = sys::read(reader.as_fd(), &mut buffer).unwrap();
            received.extend_from_slice(&buffer[..count]);
        }
        assert!(received.len() == WINDOW as usize + 1 && received.last() == Some(&b'!'));
    }
}
