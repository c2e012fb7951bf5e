//! Paths as lines of an answer: a name with a line feed, or with bytes that are no text, is written so that it is one
//! line and a shell reads it back as it is.

use std::fmt::Write as _;

/// A path for a line of its own. Most are shown as they are; others as `$'…'`.
pub(super) fn display_path(path: &[u8]) -> String {
    match std::str::from_utf8(path) {
        Ok(text) if !text.chars().any(char::is_control) => text.to_owned(),
        _ => path.utf8_chunks().fold("$'".to_owned(), escaped) + "'",
    }
}

fn escaped(mut text: String, chunk: std::str::Utf8Chunk<'_>) -> String {
    for character in chunk.valid().chars() {
        match character {
            '\n' => text.push_str("\\n"),
            '\t' => text.push_str("\\t"),
            '\r' => text.push_str("\\r"),
            '\\' | '\'' => text.extend(['\\', character]),
            control if control.is_control() => {
                let mut bytes = [0; 4];
                control.encode_utf8(&mut bytes).bytes().for_each(|byte| push_byte(&mut text, byte));
            }
            other => text.push(other),
        }
    }
    chunk.invalid().iter().for_each(|byte| push_byte(&mut text, *byte));
    text
}

fn push_byte(text: &mut String, byte: u8) {
    write!(text, "\\{byte:03o}").expect("a string takes every text");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_plain_path_is_shown_as_it_is() {
        assert_eq!(display_path("./a b/it's é\\".as_bytes()), "./a b/it's é\\");
    }

    #[test]
    fn a_name_with_a_line_feed_or_bytes_that_are_no_text_is_one_line() {
        assert_eq!(display_path(b"./a\nb"), "$'./a\\nb'");
        assert_eq!(display_path(b"it's\xff\x1b\\"), "$'it\\'s\\377\\033\\\\'");
    }
}
