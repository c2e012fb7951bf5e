//! The part of a command's output that is kept: the first bytes of each stream up to a cap, and how
//! many there were in all.

use bytes::{Bytes, BytesMut};

/// One stream's beginning. It grows with what arrives; the cap costs nothing by itself.
#[derive(Debug)]
pub(super) struct Capture {
    kept: BytesMut,
    total: u64,
    cap: usize,
}

impl Capture {
    pub(super) fn new(cap: u64) -> Self {
        Self { kept: BytesMut::new(), total: 0, cap: usize::try_from(cap).unwrap_or(usize::MAX) }
    }

    /// Counts `chunk`, and keeps as much of it as the cap still lets through.
    pub(super) fn push(&mut self, chunk: &[u8]) {
        self.total = self.total.saturating_add(chunk.len() as u64);
        let room = self.cap - self.kept.len();
        self.kept.extend_from_slice(&chunk[..chunk.len().min(room)]);
    }

    /// Returns the number of bytes there were in all.
    pub(super) fn total(&self) -> u64 {
        self.total
    }

    /// Copies what was kept so far; the capture goes on.
    pub(super) fn snapshot(&self) -> Bytes {
        Bytes::copy_from_slice(&self.kept)
    }

    /// Takes what was kept, at the end.
    pub(super) fn take(&mut self) -> Bytes {
        std::mem::take(&mut self.kept).freeze()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exactly_the_cap_is_kept_and_everything_is_counted() {
        let mut capture = Capture::new(5);
        capture.push(b"abc");
        capture.push(b"defg");
        capture.push(b"h");
        assert_eq!((capture.total(), &capture.take()[..]), (8, &b"abcde"[..]));
    }

    #[test]
    fn a_huge_cap_costs_nothing_until_something_arrives() {
        let mut capture = Capture::new(1 << 53);
        assert_eq!(capture.kept.capacity(), 0);
        capture.push(b"x");
        assert!(capture.kept.capacity() < 1024);
    }
}
