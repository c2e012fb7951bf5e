//! The content of a file. It may have one hole, which takes no memory: `truncate -s 100G` makes it.

use std::io::{self, Read};
use std::ops::Range;
use std::sync::Arc;

use bytes::Bytes;

/// The bytes of one piece of a file that is read.
const PIECE_BYTES: usize = 64 << 10;
static ZEROS: [u8; PIECE_BYTES] = [0; PIECE_BYTES];

/// The bytes of a file: some, then perhaps a hole, then perhaps more. Clones share them.
#[derive(Debug, Clone, Default)]
pub(super) struct FileContent {
    head: Arc<Vec<u8>>,
    hole: u64,
    tail: Arc<Vec<u8>>,
}

impl From<Vec<u8>> for FileContent {
    fn from(bytes: Vec<u8>) -> Self {
        Self { head: Arc::new(bytes), hole: 0, tail: Arc::default() }
    }
}

impl FileContent {
    /// The size of the file.
    pub(super) fn len(&self) -> u64 {
        self.stored().saturating_add(self.hole)
    }

    /// The bytes that take memory.
    pub(super) fn stored(&self) -> u64 {
        (self.head.len() + self.tail.len()) as u64
    }

    /// The address and the size of each part that takes memory. Clones have the same.
    pub(super) fn parts(&self) -> [(usize, u64); 2] {
        [&self.head, &self.tail].map(|part| (Arc::as_ptr(part).addr(), part.len() as u64))
    }

    /// Tells whether it has the same bytes as another. `None`: more than `readable` bytes would have to be read.
    pub(super) fn is_same(&self, other: &Self, readable: &mut u64) -> Option<bool> {
        if self.len() != other.len() {
            return Some(false);
        }
        if self.hole == other.hole && self.parts() == other.parts() {
            return Some(true);
        }
        *readable = readable.checked_sub(self.len())?;
        let mut at = 0;
        loop {
            let pieces = [self, other].map(|content| content.piece(&(at..u64::MAX)));
            let [Some(one), Some(two)] = pieces else { return Some(pieces.iter().all(Option::is_none)) };
            let both = one.len().min(two.len());
            if one[..both] != two[..both] {
                return Some(false);
            }
            at += both as u64;
        }
    }

    /// The parts that take memory, and the size of the hole between them.
    pub(super) fn stored_parts(&self) -> ([&[u8]; 2], u64) {
        ([self.head.as_slice(), self.tail.as_slice()], self.hole)
    }

    /// Adds bytes at the end.
    pub(super) fn append(&mut self, more: &[u8]) {
        let last = if self.hole == 0 { &mut self.head } else { &mut self.tail };
        Arc::make_mut(last).extend_from_slice(more);
    }

    /// Cuts the file, or makes it longer. Returns `false` if that needs a second hole.
    pub(super) fn set_len(&mut self, len: u64) -> bool {
        let (head, before_tail) = (self.head.len() as u64, self.head.len() as u64 + self.hole);
        if len <= head {
            Arc::make_mut(&mut self.head).truncate(usize::try_from(len).unwrap_or(usize::MAX));
            (self.hole, self.tail) = (0, Arc::default());
        } else if len <= before_tail || self.tail.is_empty() {
            (self.hole, self.tail) = (len - head, Arc::default());
        } else if len <= self.len() {
            Arc::make_mut(&mut self.tail).truncate(usize::try_from(len - before_tail).unwrap_or(usize::MAX));
        } else {
            return false;
        }
        true
    }

    /// The piece at an offset: at most 64 KiB, and nothing behind `end`.
    pub(super) fn piece(&self, range: &Range<u64>) -> Option<Bytes> {
        let end = range.end.min(self.len());
        if range.start >= end {
            return None;
        }
        let most = usize::try_from(end - range.start).unwrap_or(usize::MAX).min(PIECE_BYTES);
        let head = self.head.len() as u64;
        let slice = |bytes: &Arc<Vec<u8>>, at: u64| {
            let at = usize::try_from(at).unwrap_or(usize::MAX);
            let piece = at..(at + most).min(bytes.len());
            Bytes::from_owner(SharedBytes(bytes.clone())).slice(piece)
        };
        Some(if range.start < head {
            slice(&self.head, range.start)
        } else if range.start < head + self.hole {
            let left = usize::try_from(head + self.hole - range.start).unwrap_or(usize::MAX);
            Bytes::from_static(&ZEROS[..most.min(left)])
        } else {
            slice(&self.tail, range.start - head - self.hole)
        })
    }

    /// All of it, or `None` if that is more than `most` bytes.
    pub(super) fn to_vec(&self, most: u64) -> Option<Vec<u8>> {
        if self.len() > most {
            return None;
        }
        if self.hole == 0 {
            return Some(self.head.to_vec());
        }
        // The system gives pages of zeros, which take no memory until they are written.
        let mut all = vec![0; usize::try_from(self.len()).ok()?];
        all[..self.head.len()].copy_from_slice(&self.head);
        let tail = all.len() - self.tail.len();
        all[tail..].copy_from_slice(&self.tail);
        Some(all)
    }

    /// All of it. It is shared where it has no hole.
    pub(super) fn whole(&self) -> Bytes {
        if self.hole == 0 {
            return Bytes::from_owner(SharedBytes(self.head.clone()));
        }
        self.to_vec(u64::MAX).unwrap_or_default().into()
    }

    /// Reads it from the beginning.
    pub(super) fn reader(&self) -> ContentReader {
        ContentReader { content: self.clone(), at: 0 }
    }
}

/// A position in a file that does not change any more.
pub(super) struct ContentReader {
    content: FileContent,
    at: u64,
}

impl Read for ContentReader {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let range = self.at..self.at.saturating_add(buffer.len() as u64);
        let Some(piece) = self.content.piece(&range) else { return Ok(0) };
        buffer[..piece.len()].copy_from_slice(&piece);
        self.at += piece.len() as u64;
        Ok(piece.len())
    }
}

struct SharedBytes(Arc<Vec<u8>>);

impl AsRef<[u8]> for SharedBytes {
    fn as_ref(&self) -> &[u8] {
        &self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_grows_by_a_hole_and_is_cut_anywhere() {
        let mut content = FileContent::from(b"head".to_vec());
        assert!(content.set_len(10));
        content.append(b"tail");
        assert_eq!((content.len(), content.stored()), (14, 8));
        assert_eq!(content.to_vec(14).unwrap(), b"head\0\0\0\0\0\0tail");
        assert!(content.to_vec(13).is_none() && !content.clone().set_len(15));
        for (len, left) in [(12, &b"head\0\0\0\0\0\0ta"[..]), (7, b"head\0\0\0"), (2, b"he"), (0, b"")] {
            assert!(content.set_len(len));
            assert_eq!(content.to_vec(20).unwrap(), left);
        }
    }

    #[test]
    fn two_contents_are_the_same_by_their_bytes_wherever_their_holes_are() {
        let zeros = FileContent::from([vec![1; 10], vec![0; 100_000], vec![2]].concat());
        let mut hole = FileContent::from(vec![1; 10]);
        assert!(hole.set_len(100_010));
        hole.append(&[2]);
        let mut readable = 1 << 20;
        assert_eq!(zeros.is_same(&hole, &mut readable), Some(true));
        assert_eq!(readable, (1 << 20) - 100_011);
        let mut other = hole.clone();
        assert_eq!(other.is_same(&hole, &mut 0), Some(true), "what is shared is not read");
        other.append(&[3]);
        assert_eq!(other.is_same(&hole, &mut 0), Some(false));
        assert_eq!(zeros.is_same(&hole, &mut 99), None);
        assert!(hole.set_len(100_010));
        hole.append(&[9]);
        assert_eq!(zeros.is_same(&hole, &mut readable), Some(false));
    }

    #[test]
    fn a_read_goes_over_the_hole_in_pieces() {
        let mut content = FileContent::from(vec![1; 10]);
        assert!(content.set_len(200_000));
        content.append(&[2; 5]);
        let mut all = Vec::new();
        content.reader().read_to_end(&mut all).unwrap();
        assert_eq!(all, content.to_vec(u64::MAX).unwrap());
        assert_eq!(content.piece(&(200_003..300_000)).unwrap(), &[2, 2][..]);
        assert!(content.piece(&(200_005..300_000)).is_none());
    }
}
