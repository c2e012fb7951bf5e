//! Long text inside an answer: its head and its tail stay, and between them stands what is left out and how to read it.
//! The answer's shape stays what it is.

use std::collections::VecDeque;
use std::ops::Range;

/// The most bytes of a text that an answer holds, beside the note about what is left out: 64 KiB.
pub const MAX_TEXT_BYTES: usize = 64 << 10;

/// The first and the last bytes of a text that comes piece by piece; what lies between is only counted.
#[derive(Debug, Clone)]
pub struct ClippedText {
    head: Vec<u8>,
    tail: VecDeque<u8>,
    half_bytes: usize,
    total_bytes: u64,
}

impl Default for ClippedText {
    fn default() -> Self {
        Self::new(MAX_TEXT_BYTES)
    }
}

impl ClippedText {
    /// Keeps `max_bytes`: the first half and the last half.
    pub fn new(max_bytes: usize) -> Self {
        Self { head: Vec::new(), tail: VecDeque::new(), half_bytes: max_bytes / 2, total_bytes: 0 }
    }

    /// The next bytes of the text.
    pub fn push(&mut self, bytes: &[u8]) {
        self.total_bytes += bytes.len() as u64;
        let (first, rest) = bytes.split_at(bytes.len().min(self.half_bytes - self.head.len()));
        self.head.extend_from_slice(first);
        let last = &rest[rest.len().saturating_sub(self.half_bytes)..];
        let too_many = (self.tail.len() + last.len()).saturating_sub(self.half_bytes);
        self.tail.drain(..too_many);
        self.tail.extend(last);
    }

    /// Returns the number of bytes there were.
    pub fn total_bytes(&self) -> u64 {
        self.total_bytes
    }

    /// Returns whether something is left out.
    pub fn is_clipped(&self) -> bool {
        self.total_bytes > (self.head.len() + self.tail.len()) as u64
    }

    /// The text; bytes that are not UTF-8 become U+FFFD. Where something is left out, `how` says how to read those bytes,
    /// counted from 0, such as "use `offset` 4096".
    pub fn text(&self, how: impl FnOnce(Range<u64>) -> String) -> String {
        let mut head = self.head.clone();
        let mut tail: Vec<u8> = self.tail.iter().copied().collect();
        if !self.is_clipped() {
            head.append(&mut tail);
            return String::from_utf8_lossy(&head).into_owned();
        }
        head.truncate(head.len() - incomplete_bytes(&head));
        let continued = continuation_bytes(&tail);
        let left_out = head.len() as u64..self.total_bytes - (tail.len() - continued) as u64;
        let (head, tail) = (String::from_utf8_lossy(&head), String::from_utf8_lossy(&tail[continued..]));
        let Range { start, end } = left_out;
        let (bytes, total) = (end - start, self.total_bytes);
        format!("{head}\n[eyot: {bytes} of {total} bytes are left out here; {}]\n{tail}", how(start..end))
    }
}

/// The text, or its head and its tail and how to read the bytes between, counted from 0.
pub fn clip(text: &str, how: impl FnOnce(Range<u64>) -> String) -> String {
    let mut clipped = ClippedText::default();
    clipped.push(text.as_bytes());
    clipped.text(how)
}

/// Returns the number of bytes at the end that begin a character that is not complete; at most 3.
pub(super) fn incomplete_bytes(bytes: &[u8]) -> usize {
    for back in 1..=bytes.len().min(3) {
        let needed = match bytes[bytes.len() - back] {
            0xC2..=0xDF => 2,
            0xE0..=0xEF => 3,
            0xF0..=0xF4 => 4,
            0x80..=0xBF => continue,
            _ => return 0,
        };
        return if needed > back { back } else { 0 };
    }
    0
}

/// Returns the number of bytes at the beginning that end a character that began before; at most 3.
pub(super) fn continuation_bytes(bytes: &[u8]) -> usize {
    bytes.iter().take(3).take_while(|byte| **byte & 0xC0 == 0x80).count()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn clipped(text: &str, piece: usize, max_bytes: usize) -> String {
        let mut clipped = ClippedText::new(max_bytes);
        text.as_bytes().chunks(piece).for_each(|piece| clipped.push(piece));
        clipped.text(|left_out| format!("{left_out:?}"))
    }

    #[test]
    fn a_text_that_fits_stays_as_it_is_however_it_comes() {
        for piece in [1, 3, 100] {
            assert_eq!(clipped("zwölf Bytes", piece, 12), "zwölf Bytes");
        }
    }

    #[test]
    fn of_a_longer_one_head_and_tail_stay_and_the_bytes_between_are_named() {
        for piece in [1, 3, 100] {
            let text = clipped("0123456789", piece, 4);
            assert_eq!(text, "01\n[eyot: 6 of 10 bytes are left out here; 2..8]\n89");
        }
    }

    #[test]
    fn no_character_is_cut() {
        assert_eq!(
            clipped("aää👍ää", 2, 12),
            "aää👍ää".replace("👍", "\n[eyot: 4 of 13 bytes are left out here; 5..9]\n")
        );
    }
}
