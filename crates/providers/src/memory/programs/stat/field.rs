//! The fields of a format of `stat`: `%-10s`, `%04a`, `%.3Y`.

use std::iter::{Peekable, Skip};
use std::str::{CharIndices, Chars};

use crate::memory::programs::times::Moment;

/// The widest field. A wider one would only take memory.
const MAX_WIDTH: usize = 4096;

/// A field, as it stands in the format.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct StatField<'a> {
    pub text: &'a str,
    pub letter: Option<char>,
    /// `H` or `L`: the high or the low half of a number.
    pub part: Option<char>,
    is_left: bool,
    has_zeros: bool,
    has_prefix: bool,
    sign: &'static str,
    width: usize,
    precision: Option<usize>,
}

/// Cuts a format into text, and the fields between.
pub(super) fn pieces(format: &str) -> Vec<Result<&str, StatField<'_>>> {
    let mut all = Vec::new();
    let mut rest = format;
    while let Some(at) = rest.find('%') {
        all.push(Ok(&rest[..at]));
        let field = StatField::read(&rest[at..]);
        rest = &rest[at + field.text.len()..];
        all.push(Err(field));
    }
    all.push(Ok(rest));
    all
}

fn read_number(letters: &mut Peekable<Skip<CharIndices<'_>>>) -> Option<usize> {
    let mut number = None;
    while let Some(digit) = letters.peek().and_then(|(_, digit)| digit.to_digit(10)) {
        number = Some((number.unwrap_or(0) * 10 + digit as usize).min(MAX_WIDTH));
        letters.next();
    }
    number
}

impl<'a> StatField<'a> {
    fn read(text: &'a str) -> Self {
        let mut field = StatField::default();
        let mut letters = text.char_indices().skip(1).peekable();
        while let Some((_, flag)) = letters.next_if(|(_, flag)| "-+ #0'I".contains(*flag)) {
            match flag {
                '-' => field.is_left = true,
                '0' => field.has_zeros = true,
                '#' => field.has_prefix = true,
                '+' => field.sign = "+",
                ' ' if field.sign.is_empty() => field.sign = " ",
                _ => {}
            }
        }
        field.width = read_number(&mut letters).unwrap_or(0);
        if letters.next_if(|(_, dot)| *dot == '.').is_some() {
            field.precision = Some(read_number(&mut letters).unwrap_or(9));
        }
        let mut last = letters.next();
        if let (Some((_, part @ ('H' | 'L'))), Some((_, 'd' | 'r'))) = (last, letters.peek()) {
            field.part = Some(part);
            last = letters.next();
        }
        field.letter = last.map(|(_, letter)| letter);
        field.text = match last {
            Some((at, letter)) => &text[..at + letter.len_utf8()],
            None => text,
        };
        field
    }

    /// Tells whether there is nothing between the `%` and the letter.
    pub(super) fn is_bare(&self) -> bool {
        self.text.len() == 1 + self.letter.map_or(0, char::len_utf8)
    }

    pub(super) fn put_text(&self, text: &[u8], out: &mut Vec<u8>) {
        let text = &text[..self.precision.unwrap_or(usize::MAX).min(text.len())];
        let length = String::from_utf8_lossy(text).chars().count();
        self.put_padded(text, length, out);
    }

    fn put_padded(&self, text: &[u8], length: usize, out: &mut Vec<u8>) {
        let missing = std::iter::repeat_n(b' ', self.width.saturating_sub(length));
        if self.is_left {
            out.extend_from_slice(text);
            out.extend(missing);
        } else {
            out.extend(missing);
            out.extend_from_slice(text);
        }
    }

    pub(super) fn put_number(&self, number: u64, base: u32, out: &mut Vec<u8>) {
        let (digits, prefix) = match base {
            8 => (format!("{number:o}"), if self.has_prefix { "0" } else { "" }),
            16 => (format!("{number:x}"), if self.has_prefix && number != 0 { "0x" } else { "" }),
            _ => (number.to_string(), self.sign),
        };
        let digits = format!("{digits:0>least$}", least = self.precision.unwrap_or(0));
        self.put_signed(prefix, &digits, out);
    }

    /// Writes seconds, and as many digits of their parts as the precision says.
    pub(super) fn put_time(&self, time: Moment, out: &mut Vec<u8>) {
        let sign = if time.seconds < 0 { "-" } else { self.sign };
        let text = match self.precision {
            None | Some(0) => time.seconds.unsigned_abs().to_string(),
            Some(digits) => {
                let all = i128::from(time.seconds) * 1_000_000_000 + i128::from(time.nanos);
                let (seconds, nanos) =
                    (all.unsigned_abs() / 1_000_000_000, all.unsigned_abs() % 1_000_000_000);
                let parts = format!("{nanos:09}");
                let parts = &parts[..digits.min(9)];
                format!("{seconds}.{parts:0<digits$}")
            }
        };
        self.put_signed(sign, &text, out);
    }

    fn put_signed(&self, sign: &str, digits: &str, out: &mut Vec<u8>) {
        let has_zeros = self.has_zeros && !self.is_left;
        let width = if has_zeros { self.width } else { 0 };
        let zeros = "0".repeat(width.saturating_sub(sign.len() + digits.len()));
        let text = format!("{sign}{zeros}{digits}");
        self.put_padded(text.as_bytes(), text.len(), out);
    }
}

/// Reads up to two more digits of a code.
fn code(letters: &mut Peekable<Chars<'_>>, first: u32, radix: u32) -> char {
    let mut code = first;
    for _ in 0..2 {
        let Some(digit) = letters.peek().and_then(|letter| letter.to_digit(radix)) else { break };
        code = code * radix + digit;
        letters.next();
    }
    char::from_u32(code & 0x7f).unwrap_or_default()
}

/// Reads the escapes of `--printf`. Returns the letters too that are none.
pub(super) fn unescaped(format: &str) -> (String, Vec<char>) {
    let mut out = String::with_capacity(format.len());
    let mut odd = Vec::new();
    let mut letters = format.chars().peekable();
    while let Some(letter) = letters.next() {
        if letter != '\\' {
            out.push(letter);
            continue;
        }
        let escaped = match letters.next() {
            None => '\\',
            Some('a') => '\x07',
            Some('b') => '\x08',
            Some('e') => '\x1b',
            Some('f') => '\x0c',
            Some('n') => '\n',
            Some('r') => '\r',
            Some('t') => '\t',
            Some('v') => '\x0b',
            Some('x') => code(&mut letters, 0, 16),
            Some(digit @ '0'..='7') => code(&mut letters, digit.to_digit(8).unwrap_or_default(), 8),
            Some(same @ ('\\' | '"')) => same,
            Some(other) => {
                odd.push(other);
                other
            }
        };
        out.push(escaped);
    }
    (out, odd)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn field(text: &str) -> StatField<'_> {
        pieces(text).into_iter().find_map(Result::err).unwrap()
    }

    #[test]
    fn numbers_are_padded_as_printf_pads_them() {
        for (format, shown) in [
            ("%s", "42"),
            ("%5s", "   42"),
            ("%-5s|", "42   "),
            ("%05s", "00042"),
            ("%+s", "+42"),
            ("%.3s", "042"),
        ] {
            let mut out = Vec::new();
            field(format).put_number(42, 10, &mut out);
            assert_eq!(String::from_utf8(out).unwrap(), shown, "{format}");
        }
        for (format, shown) in [("%a", "644"), ("%04a", "0644"), ("%#a", "0644")] {
            let mut out = Vec::new();
            field(format).put_number(0o644, 8, &mut out);
            assert_eq!(String::from_utf8(out).unwrap(), shown, "{format}");
        }
    }

    #[test]
    fn seconds_have_the_digits_that_are_asked_for() {
        for (format, shown) in
            [("%Y", "-2"), ("%.3Y", "-1.500"), ("%.Y", "-1.500000000"), ("%10.1Y", "      -1.5")]
        {
            let mut out = Vec::new();
            field(format).put_time(Moment { seconds: -2, nanos: 500_000_000 }, &mut out);
            assert_eq!(String::from_utf8(out).unwrap(), shown, "{format}");
        }
    }

    #[test]
    fn escapes_that_are_none_stay_and_are_told() {
        assert_eq!(unescaped("a\\n\\x41\\101\\q\\"), ("a\nAAq\\".to_owned(), vec!['q']));
    }
}
