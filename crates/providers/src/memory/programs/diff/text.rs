//! A file as lines, and what of a line counts when it is compared.

use std::borrow::Cow;
use std::collections::HashMap;

use imara_diff::Token;

use crate::memory::programs::read_bytes::ReadBytes;
use crate::memory::programs::run::ProgramRun;

/// The bytes at the beginning of a file that show whether it is text.
const BINARY_PROBE_BYTES: usize = 4096;
/// The lines between two pauses in which others go on.
const LINES_AT_ONCE: usize = 512;

/// The treatment of white space; a later one ignores more.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Whitespace {
    #[default]
    Counts,
    TabsAreSpaces,
    NotAtEnd,
    TabsAreSpacesAndNotAtEnd,
    NotItsAmount,
    Never,
}

/// The rule by which lines are equal.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Sameness {
    /// A last line without a newline is like one with it.
    pub ignores_newline: bool,
    pub whitespace: Whitespace,
    pub ignores_case: bool,
    pub tab_size: usize,
}

/// A file as lines. The last may lack its newline.
#[derive(Debug)]
pub(super) struct DiffText {
    bytes: ReadBytes,
    /// The beginning of each line, and the end of the last.
    starts: Vec<usize>,
}

impl DiffText {
    pub(super) fn new(bytes: ReadBytes) -> Self {
        let mut starts = vec![0];
        starts.extend(memchr::memchr_iter(b'\n', &bytes).map(|at| at + 1));
        if starts.last() != Some(&bytes.len()) {
            starts.push(bytes.len());
        }
        Self { bytes, starts }
    }

    /// The number of lines.
    pub(super) fn len(&self) -> usize {
        self.starts.len() - 1
    }

    /// A line with its newline.
    pub(super) fn line(&self, at: usize) -> &[u8] {
        &self.bytes[self.starts[at]..self.starts[at + 1]]
    }

    /// A line without its newline.
    pub(super) fn content(&self, at: usize) -> &[u8] {
        let line = self.line(at);
        line.strip_suffix(b"\n").unwrap_or(line)
    }

    pub(super) fn is_complete(&self, at: usize) -> bool {
        self.line(at).ends_with(b"\n")
    }

    /// Tells whether the last line lacks its newline.
    pub(super) fn lacks_newline(&self) -> bool {
        self.bytes.last().is_some_and(|last| *last != b'\n')
    }
}

/// Tells whether the beginning of a file is no text.
pub(super) fn is_binary(bytes: &[u8]) -> bool {
    memchr::memchr(0, &bytes[..bytes.len().min(BINARY_PROBE_BYTES)]).is_some()
}

/// Takes the carriage returns at the ends of lines away.
pub(super) fn without_carriage_returns(bytes: &[u8]) -> Vec<u8> {
    let mut left = Vec::with_capacity(bytes.len());
    for line in bytes.split_inclusive(|byte| *byte == b'\n') {
        match line.strip_suffix(b"\r\n") {
            Some(content) => {
                left.extend_from_slice(content);
                left.push(b'\n');
            }
            None => left.extend_from_slice(line),
        }
    }
    left
}

/// Numbers the lines of two texts: the same number for lines that count as equal.
pub(super) async fn tokens(
    run: &ProgramRun<'_>,
    texts: [&DiffText; 2],
    sameness: Sameness,
) -> ([Vec<Token>; 2], u32) {
    let mut numbers: HashMap<Cow<'_, [u8]>, u32> = HashMap::new();
    let mut all = [Vec::with_capacity(texts[0].len()), Vec::with_capacity(texts[1].len())];
    for (text, tokens) in texts.into_iter().zip(&mut all) {
        for at in 0..text.len() {
            if at % LINES_AT_ONCE == 0 {
                run.breathe().await;
            }
            let next = u32::try_from(numbers.len()).unwrap_or(u32::MAX);
            tokens.push(Token(*numbers.entry(sameness.key(text.line(at))).or_insert(next)));
        }
    }
    let count = u32::try_from(numbers.len()).unwrap_or(u32::MAX);
    (all, count)
}

impl Sameness {
    /// Tells whether lines are equal only if all their bytes are.
    pub(super) fn is_exact(self) -> bool {
        self.whitespace == Whitespace::Counts && !self.ignores_case && !self.ignores_newline
    }

    /// The part of a line that counts.
    pub(super) fn key(self, line: &[u8]) -> Cow<'_, [u8]> {
        if self.is_exact() {
            return Cow::Borrowed(line);
        }
        let line = if self.ignores_newline { line.strip_suffix(b"\n").unwrap_or(line) } else { line };
        let mut key = match self.whitespace {
            Whitespace::Counts => line.to_vec(),
            Whitespace::TabsAreSpaces => self.expanded(line),
            Whitespace::NotAtEnd => line.trim_ascii_end().to_vec(),
            Whitespace::TabsAreSpacesAndNotAtEnd => self.expanded(line.trim_ascii_end()),
            Whitespace::NotItsAmount => single_spaced(line.trim_ascii_end()),
            Whitespace::Never => line.iter().copied().filter(|byte| !is_space(*byte)).collect(),
        };
        if self.ignores_case {
            key.make_ascii_lowercase();
        }
        Cow::Owned(key)
    }

    fn expanded(self, line: &[u8]) -> Vec<u8> {
        let mut out = Vec::with_capacity(line.len());
        for byte in line {
            if *byte == b'\t' {
                out.resize(out.len() + self.tab_size - out.len() % self.tab_size, b' ');
            } else {
                out.push(*byte);
            }
        }
        out
    }

    /// Tells whether a line counts as blank for `-B`.
    pub(super) fn is_blank(self, content: &[u8]) -> bool {
        content.is_empty()
            || self.whitespace >= Whitespace::NotAtEnd && content.iter().all(|byte| is_space(*byte))
    }
}

fn is_space(byte: u8) -> bool {
    byte.is_ascii_whitespace() || byte == 0x0b
}

fn single_spaced(line: &[u8]) -> Vec<u8> {
    let mut out: Vec<u8> = Vec::with_capacity(line.len());
    for byte in line {
        if !is_space(*byte) {
            out.push(*byte);
        } else if out.last() != Some(&b' ') {
            out.push(b' ');
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_same(whitespace: Whitespace, left: &str, right: &str) -> bool {
        let sameness = Sameness { whitespace, tab_size: 8, ..Sameness::default() };
        sameness.key(left.as_bytes()) == sameness.key(right.as_bytes())
    }

    #[test]
    fn each_treatment_of_white_space_ignores_what_it_says() {
        for (whitespace, left, right, same) in [
            (Whitespace::Counts, "a b\n", "a  b\n", false),
            (Whitespace::TabsAreSpaces, "a\tb\n", "a       b\n", true),
            (Whitespace::TabsAreSpaces, "a\n", "a \n", false),
            (Whitespace::NotAtEnd, "a \t\n", "a", true),
            (Whitespace::NotAtEnd, "a b\n", "a  b\n", false),
            (Whitespace::NotItsAmount, "a \tb \n", "a b\n", true),
            (Whitespace::NotItsAmount, " a\n", "a\n", false),
            (Whitespace::Never, " a b\n", "ab\n", true),
        ] {
            assert_eq!(is_same(whitespace, left, right), same, "{whitespace:?} {left:?} {right:?}");
        }
    }

    #[test]
    fn a_text_without_a_last_newline_has_an_incomplete_line() {
        let text = DiffText::new(b"a\nb".to_vec().into());
        assert_eq!((text.len(), text.line(1), text.is_complete(0)), (2, &b"b"[..], true));
        assert!(text.lacks_newline() && !text.is_complete(1));
        assert_eq!(DiffText::new(ReadBytes::default()).len(), 0);
    }
}
