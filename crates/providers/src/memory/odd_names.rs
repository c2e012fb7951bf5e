//! An encoding for names that the interpreter refuses in paths: names with a tab, a line break, an invisible character, or
//! bytes that are not UTF-8. Programs such as `find` see these names encoded, with a private-use character for each refused
//! character or byte. The files accept the encoded name, and output is decoded.

use std::borrow::Cow;

/// The ranges of characters that the interpreter refuses. No name has a zero byte.
const REFUSED: [(u32, u32); 10] = [
    (1, 0x1f),
    (0x7f, 0x9f),
    (0x180e, 0x180e),
    (0x200b, 0x200d),
    (0x202a, 0x202e),
    (0x2060, 0x2060),
    (0x2066, 0x206f),
    (0xfeff, 0xfeff),
    (0xfff9, 0xfffb),
    (0xe0000, 0xe007f),
];
/// The first private-use character for refused characters. `FIRST_BYTE` is the first one for bytes.
const FIRST: u32 = 0x10_f000;
const FIRST_BYTE: u32 = 0x10_f200;
/// The first bytes of all these private-use characters in UTF-8.
const BEGIN: [u8; 2] = [0xf4, 0x8f];
/// The number of bytes of such a character.
const LETTER_BYTES: usize = 4;

/// Encodes a name for the interpreter.
pub(super) fn encoded(name: &[u8]) -> String {
    let mut out = String::with_capacity(name.len());
    for chunk in name.utf8_chunks() {
        out.extend(chunk.valid().chars().map(|letter| stand_in(letter).unwrap_or(letter)));
        out.extend(chunk.invalid().iter().filter_map(|byte| char::from_u32(FIRST_BYTE + u32::from(*byte))));
    }
    out
}

/// Decodes a name.
pub(super) fn decoded(form: &[u8]) -> Cow<'_, [u8]> {
    if memchr::memmem::find(form, &BEGIN).is_none() {
        return Cow::Borrowed(form);
    }
    let mut out = Vec::with_capacity(form.len());
    let mut rest = form;
    while let Some(at) = memchr::memmem::find(rest, &BEGIN) {
        let (before, from) = rest.split_at(at);
        out.extend_from_slice(before);
        match from.get(..LETTER_BYTES).and_then(meaning) {
            Some(bytes) => {
                out.extend_from_slice(&bytes);
                rest = &from[LETTER_BYTES..];
            }
            None => {
                out.push(from[0]);
                rest = &from[1..];
            }
        }
    }
    out.extend_from_slice(rest);
    Cow::Owned(out)
}

/// Returns the private-use character for a refused character.
fn stand_in(letter: char) -> Option<char> {
    let letter = u32::from(letter);
    let mut first = FIRST;
    for (from, to) in REFUSED {
        if (from..=to).contains(&letter) {
            return char::from_u32(first + letter - from);
        }
        first += to - from + 1;
    }
    None
}

/// Returns the bytes that a private-use character stands for.
fn meaning(letter: &[u8]) -> Option<Vec<u8>> {
    let letter = u32::from(std::str::from_utf8(letter).ok()?.chars().next()?);
    if let Some(byte) = letter.checked_sub(FIRST_BYTE) {
        return Some(vec![u8::try_from(byte).ok().filter(|byte| !byte.is_ascii())?]);
    }
    let mut index = letter.checked_sub(FIRST)?;
    for (from, to) in REFUSED {
        if index <= to - from {
            return Some(char::from_u32(from + index)?.to_string().into_bytes());
        }
        index -= to - from + 1;
    }
    None
}

/// A decoder for the names in streamed output.
#[derive(Debug, Default)]
pub(super) struct NameDecoder {
    /// The beginning of an incomplete character.
    pending: Vec<u8>,
}

impl NameDecoder {
    pub(super) fn take(&mut self, bytes: &[u8]) -> Vec<u8> {
        let mut all = std::mem::take(&mut self.pending);
        all.extend_from_slice(bytes);
        let tail = all.len().saturating_sub(LETTER_BYTES - 1);
        if let Some(at) = memchr::memchr(BEGIN[0], &all[tail..]) {
            self.pending = all.split_off(tail + at);
        }
        match decoded(&all) {
            Cow::Borrowed(_) => all,
            Cow::Owned(bytes) => bytes,
        }
    }

    /// Returns the bytes that are left at the end.
    pub(super) fn finish(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.pending)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_name_comes_back() {
        let all: String = (1..=0xe0080).filter_map(char::from_u32).collect();
        for name in [all.as_bytes(), b"a\tb\nc", b"\xff\xfe a", "é 😀".as_bytes()] {
            let form = encoded(name);
            assert!(!form.chars().any(char::is_control));
            assert_eq!(decoded(form.as_bytes()), name);
        }
        assert_eq!(encoded("plain é".as_bytes()), "plain é");
        let private: String = (0x10_f000..=0x10_ffff).filter_map(char::from_u32).collect();
        assert!(!decoded(private.as_bytes()).contains(&0));
        assert_eq!(decoded("\u{10fffd}".as_bytes()), "\u{10fffd}".as_bytes());
    }

    #[test]
    fn a_form_may_come_in_parts() {
        let form = format!("x{}y\u{10ffff}", encoded(b"\n"));
        for at in 0..form.len() {
            let mut decoder = NameDecoder::default();
            let (one, other) = form.as_bytes().split_at(at);
            let out = [decoder.take(one), decoder.take(other), decoder.finish()].concat();
            assert_eq!(out, "x\ny\u{10ffff}".as_bytes());
        }
    }
}
