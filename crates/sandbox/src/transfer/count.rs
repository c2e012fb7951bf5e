//! How many files, and how many bytes of them, pass by in a tar stream. Only headers are looked at; a stream that is no tar
//! is whoever unpacks it to refuse.

use std::sync::{Arc, Mutex, PoisonError};

use super::Transferred;

/// Counts; clones count together.
#[derive(Clone, Default)]
pub(super) struct Counter(Arc<Mutex<State>>);

#[derive(Default)]
struct State {
    /// The part of a header that has come.
    header: Vec<u8>,
    /// Bytes of content and of its filling up that still come before the next header.
    content_left: u64,
    seen: Transferred,
}

/// A header, and what contents are filled up to.
const BLOCK_BYTES: usize = 512;

impl Counter {
    /// Looks at the next bytes of the stream.
    pub(super) fn see(&self, mut bytes: &[u8]) {
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        while !bytes.is_empty() {
            bytes = match state.content_left {
                0 => state.see_header(bytes),
                left => {
                    let passed = bytes.len().min(usize::try_from(left).unwrap_or(usize::MAX));
                    state.content_left -= passed as u64;
                    &bytes[passed..]
                }
            };
        }
    }

    /// What has passed by.
    pub(super) fn seen(&self) -> Transferred {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).seen
    }
}

impl State {
    fn see_header<'a>(&mut self, bytes: &'a [u8]) -> &'a [u8] {
        let taken = bytes.len().min(BLOCK_BYTES - self.header.len());
        self.header.extend_from_slice(&bytes[..taken]);
        if self.header.len() == BLOCK_BYTES {
            let size = size(&self.header[124..136]);
            // The types of regular files; directories, links and long names are others.
            if matches!(self.header[156], b'0' | 0 | b'7') && self.header[0] != 0 {
                self.seen.files += 1;
                self.seen.bytes = self.seen.bytes.saturating_add(size);
            }
            self.content_left = size.checked_next_multiple_of(BLOCK_BYTES as u64).unwrap_or(u64::MAX);
            self.header.clear();
        }
        &bytes[taken..]
    }
}

/// A size: octal digits, or, with the first bit set, big-endian binary.
fn size(field: &[u8]) -> u64 {
    match field[0] & 0x80 {
        0 => {
            let digits = field
                .iter()
                .skip_while(|byte| **byte == b' ')
                .take_while(|byte| (b'0'..b'8').contains(*byte));
            digits.fold(0, |sum, digit| sum << 3 | u64::from(digit - b'0'))
        }
        _ => field[4..].iter().fold(0, |sum, byte| sum << 8 | u64::from(*byte)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(kind: u8, size_field: &[u8], content_bytes: usize) -> Vec<u8> {
        let mut block = vec![0; BLOCK_BYTES + content_bytes.next_multiple_of(BLOCK_BYTES)];
        block[0] = b'n';
        block[124..124 + size_field.len()].copy_from_slice(size_field);
        block[156] = kind;
        block[BLOCK_BYTES..BLOCK_BYTES + content_bytes].fill(b'x');
        block
    }

    #[test]
    fn files_and_their_bytes_are_counted_however_the_stream_is_cut() {
        let mut stream = entry(b'5', b"00000000000", 0);
        stream.extend(entry(b'0', b"00000001001", 513));
        stream.extend(entry(b'2', b"00000000000", 0));
        stream.extend(entry(b'L', b"00000000200", 128));
        stream.extend(entry(0, b"00000000000", 0));
        stream.extend(entry(b'0', &[0x80, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2, 0], 512));
        stream.extend([0; 1024]);
        for step in [1, 7, 512, 600, 10_000] {
            let counter = Counter::default();
            stream.chunks(step).for_each(|piece| counter.see(piece));
            assert_eq!(counter.seen(), Transferred { files: 3, bytes: 513 + 512 }, "{step}");
        }
    }
}
