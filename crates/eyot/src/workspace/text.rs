//! Bytes as text, as JavaScript's `TextDecoder` reads them: a byte order mark is dropped, what is not UTF-8 becomes
//! U+FFFD, and a character that arrives in two pieces is one character.

/// A whole file as text.
pub(super) fn decode(bytes: &[u8]) -> String {
    lossy(bytes.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(bytes))
}

/// A part of a file as text.
pub(super) fn lossy(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Returns the number of bytes at the end of `bytes` that may be the beginning of a character that
/// is still to come; at most 3.
pub(super) fn unfinished(bytes: &[u8]) -> usize {
    let tail = &bytes[bytes.len().saturating_sub(3)..];
    for (index, byte) in tail.iter().enumerate() {
        let length = match byte {
            0xC2..=0xDF => 2,
            0xE0..=0xEF => 3,
            0xF0..=0xF4 => 4,
            _ => continue,
        };
        let rest = &tail[index..];
        if rest.len() < length && std::str::from_utf8(rest).is_err_and(|error| error.error_len().is_none()) {
            return rest.len();
        }
    }
    0
}

/// Text from pieces.
#[derive(Debug, Default)]
pub(super) struct TextDecoder {
    held: Vec<u8>,
}

impl TextDecoder {
    /// The text that is complete with this piece.
    pub(super) fn decode(&mut self, piece: &[u8]) -> String {
        self.held.extend_from_slice(piece);
        let complete = self.held.len() - unfinished(&self.held);
        let text = String::from_utf8_lossy(&self.held[..complete]).into_owned();
        self.held.drain(..complete);
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_character_that_arrives_in_pieces_is_one_character() {
        let mut decoder = TextDecoder::default();
        let pieces: Vec<String> = "a😀b".as_bytes().chunks(2).map(|piece| decoder.decode(piece)).collect();
        assert_eq!(pieces, ["a", "", "😀b"]);
    }

    #[test]
    fn what_is_not_utf_8_is_replaced_and_not_held_back() {
        let mut decoder = TextDecoder::default();
        assert_eq!(decoder.decode(b"\xff\xe2("), "\u{fffd}\u{fffd}(");
        assert_eq!(decoder.decode(b"\xc3\xc3"), "\u{fffd}");
    }

    #[test]
    fn a_byte_order_mark_is_dropped() {
        assert_eq!(decode(b"\xEF\xBB\xBFhi\xff"), "hi\u{fffd}");
    }
}
