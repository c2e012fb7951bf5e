//! A part of a text file whose ends lie anywhere: a character belongs to the part in which it begins, so parts that
//! follow each other are the whole text.

use crate::clip::{continuation_bytes, incomplete_bytes};

/// The number of bytes after a part's end that are needed to complete its last character.
pub(super) const LOOK_AHEAD_BYTES: u64 = 3;

/// The text of the first `limit` of these bytes, which may be followed by [`LOOK_AHEAD_BYTES`] more, and how many bytes at
/// the beginning belong to a character before it. `None`: it is not UTF-8.
pub(super) fn text(bytes: &[u8], is_file_start: bool, limit: usize) -> Option<(&str, usize)> {
    let mut end = bytes.len().min(limit);
    let short = incomplete_bytes(&bytes[..end]);
    if short > 0 {
        let continued = bytes[end..].iter().take_while(|byte| **byte & 0xC0 == 0x80).count();
        end += continued.min(length(bytes[end - short]) - short);
    }
    let skipped = if is_file_start { 0 } else { continuation_bytes(&bytes[..end]) };
    std::str::from_utf8(&bytes[skipped..end]).ok().map(|text| (text, skipped))
}

/// Returns the number of bytes of a character that begins so.
fn length(first: u8) -> usize {
    match first {
        0xF0.. => 4,
        0xE0.. => 3,
        _ => 2,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_of_any_size_that_follow_each_other_are_the_whole_text() {
        let whole = "aä€👍b👍";
        let bytes = whole.as_bytes();
        for size in 1..=bytes.len() {
            let parts = (0..bytes.len()).step_by(size).map(|offset| {
                let available = &bytes[offset..bytes.len().min(offset + size + 3)];
                text(available, offset == 0, size).expect("UTF-8").0
            });
            assert_eq!(parts.collect::<String>(), whole, "in parts of {size}");
        }
    }

    #[test]
    fn a_character_that_the_file_itself_cuts_is_not_utf_8() {
        assert_eq!(text(b"a\xe2\x82", true, 3), None);
        assert_eq!(text(b"a\xe2\x82", true, 9), None);
        assert_eq!(text(b"\x80a", true, 9), None);
        assert_eq!(text(b"a\xffb", false, 9), None);
        assert_eq!(text(b"", true, 9), Some(("", 0)));
    }
}
