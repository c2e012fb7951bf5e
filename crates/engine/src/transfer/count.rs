//! Counts the files in a tar stream that passes by, and their bytes, and looks for a given name.
//! Only headers and long names are looked at; a stream that is no tar is refused by the side that
//! unpacks it.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use memchr::memmem;

use super::Transferred;

/// Counts; clones count together.
#[derive(Clone, Default)]
pub(super) struct TarCounter(Arc<Mutex<TarScan>>);

#[derive(Default)]
struct TarScan {
    /// The part of a header that has come.
    header: Vec<u8>,
    /// Bytes of content and of its filling up that still come before the next header.
    content_left: u64,
    /// The content is the name of the next entry, as much of it as has come.
    long_name: Option<Vec<u8>>,
    /// The name that must not be met.
    forbidden: Vec<u8>,
    has_met: bool,
    seen: Transferred,
}

/// A header, and what contents are filled up to.
const BLOCK_BYTES: usize = 512;
/// A header begins with the entry's name, if that is not longer.
const NAME_BYTES: usize = 100;

/// The longest name that is looked at; the kernel's own limit is below it.
const MAX_NAME_BYTES: u64 = 16 << 10;

impl TarCounter {
    /// A counter that says when an entry's path has this directory in it.
    pub(super) fn watching_for(name: &str) -> Self {
        let counter = Self::default();
        counter.lock().forbidden = format!("{name}/").into_bytes();
        counter
    }

    /// Looks at the next bytes of the stream; whether that name was not in them, nor before.
    pub(super) fn see(&self, mut bytes: &[u8]) -> bool {
        let mut state = self.lock();
        while !bytes.is_empty() {
            bytes = match state.content_left {
                0 => state.see_header(bytes),
                left => {
                    let passed = bytes.len().min(usize::try_from(left).unwrap_or(usize::MAX));
                    state.content_left -= passed as u64;
                    state.see_content(&bytes[..passed]);
                    &bytes[passed..]
                }
            };
        }
        !state.has_met
    }

    /// Returns whether the name that was watched for has passed by.
    pub(super) fn has_met(&self) -> bool {
        self.lock().has_met
    }

    /// Returns the files and bytes that have passed by.
    pub(super) fn seen(&self) -> Transferred {
        self.lock().seen
    }

    fn lock(&self) -> MutexGuard<'_, TarScan> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl TarScan {
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
            let is_name = self.header[156] == b'L' && size <= MAX_NAME_BYTES;
            self.long_name = is_name.then(Vec::new);
            self.has_met |= self.is_forbidden(&self.header[..NAME_BYTES]);
            self.content_left = size.checked_next_multiple_of(BLOCK_BYTES as u64).unwrap_or(u64::MAX);
            self.header.clear();
        }
        &bytes[taken..]
    }

    fn see_content(&mut self, bytes: &[u8]) {
        let Some(name) = &mut self.long_name else { return };
        name.extend_from_slice(bytes);
        if self.content_left == 0 {
            let name = self.long_name.take().unwrap_or_default();
            self.has_met |= self.is_forbidden(&name);
        }
    }

    fn is_forbidden(&self, name: &[u8]) -> bool {
        !self.forbidden.is_empty() && memmem::find(name, &self.forbidden).is_some()
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
            let counter = TarCounter::default();
            assert!(stream.chunks(step).all(|piece| counter.see(piece)));
            assert_eq!(counter.seen(), Transferred { files: 3, bytes: 513 + 512 }, "{step}");
        }
    }

    #[test]
    fn a_directory_s_name_is_met_in_short_and_in_long_paths() {
        let mut short = entry(b'5', b"00000000000", 0);
        short[..8].copy_from_slice(b"t/.mine/");
        let mut long = entry(b'L', b"00000000310", 200);
        long[BLOCK_BYTES + 150..BLOCK_BYTES + 157].copy_from_slice(b".mine/y");
        let mut content = entry(b'0', b"00000000310", 200);
        content[BLOCK_BYTES..BLOCK_BYTES + 6].copy_from_slice(b".mine/");
        for (stream, met) in [(&short, true), (&long, true), (&content, false)] {
            for step in [1, 100, 10_000] {
                let counter = TarCounter::watching_for(".mine");
                let unmet = stream.chunks(step).fold(true, |_, piece| counter.see(piece));
                assert_eq!((unmet, counter.has_met()), (!met, met), "{step}");
            }
        }
    }
}
