//! Output by formats of groups and lines: `--old-line-format` and its kin.

use std::ops::Range;

use super::changes::DiffChange;
use super::text::DiffText;
use crate::memory::programs::run::Ending;

/// The most columns that a number may be padded to.
const MAX_WIDTH: usize = 4096;
/// The most conditions within one another.
const MAX_DEPTH: usize = 32;

/// The formats that were given.
#[derive(Debug, Default)]
pub(super) struct Formats {
    /// Of old, new and unchanged lines.
    lines: [Option<Vec<LinePart>>; 3],
    /// Of old, new, unchanged and changed groups.
    groups: [Option<Vec<GroupPart>>; 4],
}

const OLD: usize = 0;
const NEW: usize = 1;
const UNCHANGED: usize = 2;
const CHANGED: usize = 3;

#[derive(Debug, Clone, PartialEq, Eq)]
enum LinePart {
    DiffText(Vec<u8>),
    /// `%l`, or with the newline `%L`.
    Line {
        with_newline: bool,
    },
    Number(NumberFormat),
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum GroupPart {
    DiffText(Vec<u8>),
    OldLines,
    NewLines,
    UnchangedLines,
    Number(NumberFormat, char),
    Condition { left: DiffValue, right: DiffValue, then: Vec<GroupPart>, otherwise: Vec<GroupPart> },
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum DiffValue {
    Letter(char),
    Number(usize),
}

/// A number as `printf` writes it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct NumberFormat {
    is_left: bool,
    width: usize,
    precision: usize,
    conversion: char,
}

impl NumberFormat {
    fn write(&self, number: usize, out: &mut Vec<u8>) {
        let (width, precision) = (self.width, self.precision);
        let digits = match self.conversion {
            'o' => format!("{number:0precision$o}"),
            'x' => format!("{number:0precision$x}"),
            'X' => format!("{number:0precision$X}"),
            _ => format!("{number:0precision$}"),
        };
        let padded = if self.is_left { format!("{digits:<width$}") } else { format!("{digits:>width$}") };
        out.extend_from_slice(padded.as_bytes());
    }
}

impl Formats {
    /// Takes an option and its value.
    pub(super) fn set(&mut self, option: &str, format: &str) -> Result<(), Ending> {
        let wrong = || Ending::with_status(format!("'{format}': invalid format"), 2);
        let mut parser = Parser { rest: format, depth: 0 };
        match option {
            "line-format" => {
                let parts = parser.line().ok_or_else(wrong)?;
                self.lines = [const { None }; 3].map(|_: Option<()>| Some(parts.clone()));
            }
            "old-line-format" => self.lines[OLD] = Some(parser.line().ok_or_else(wrong)?),
            "new-line-format" => self.lines[NEW] = Some(parser.line().ok_or_else(wrong)?),
            "unchanged-line-format" => self.lines[UNCHANGED] = Some(parser.line().ok_or_else(wrong)?),
            _ => {
                let kind = match option {
                    "old-group-format" => OLD,
                    "new-group-format" => NEW,
                    "unchanged-group-format" => UNCHANGED,
                    _ => CHANGED,
                };
                self.groups[kind] = Some(parser.group("").ok_or_else(wrong)?);
            }
        }
        Ok(())
    }

    fn group(&self, kind: usize) -> Vec<GroupPart> {
        match (&self.groups[kind], &self.groups[CHANGED], kind) {
            (Some(parts), ..) => parts.clone(),
            (_, _, UNCHANGED) => vec![GroupPart::UnchangedLines],
            (_, _, CHANGED) => [self.group(OLD), self.group(NEW)].concat(),
            // What is about changes is about lines that come or go too.
            (_, Some(parts), _) => parts.clone(),
            (_, _, OLD) => vec![GroupPart::OldLines],
            _ => vec![GroupPart::NewLines],
        }
    }

    /// Writes a change, or with `is_equal` lines that are the same in both texts.
    pub(super) fn write(&self, texts: [&DiffText; 2], change: &DiffChange, is_equal: bool) -> Vec<u8> {
        let kind = match (is_equal, change.old.is_empty(), change.new.is_empty()) {
            (true, ..) => UNCHANGED,
            (_, true, _) => NEW,
            (_, _, true) => OLD,
            _ => CHANGED,
        };
        let mut out = Vec::new();
        self.write_parts(&self.group(kind), texts, change, &mut out);
        out
    }

    fn write_parts(
        &self,
        parts: &[GroupPart],
        texts: [&DiffText; 2],
        change: &DiffChange,
        out: &mut Vec<u8>,
    ) {
        for part in parts {
            match part {
                GroupPart::DiffText(text) => out.extend_from_slice(text),
                GroupPart::OldLines => self.write_lines(OLD, texts[0], change.old.clone(), out),
                GroupPart::NewLines => self.write_lines(NEW, texts[1], change.new.clone(), out),
                GroupPart::UnchangedLines => self.write_lines(UNCHANGED, texts[0], change.old.clone(), out),
                GroupPart::Number(format, letter) => format.write(number_of(*letter, change), out),
                GroupPart::Condition { left, right, then, otherwise } => {
                    let value = |value: &DiffValue| match value {
                        DiffValue::Letter(letter) => number_of(*letter, change),
                        DiffValue::Number(number) => *number,
                    };
                    let chosen = if value(left) == value(right) { then } else { otherwise };
                    self.write_parts(chosen, texts, change, out);
                }
            }
        }
    }

    fn write_lines(&self, kind: usize, text: &DiffText, lines: Range<usize>, out: &mut Vec<u8>) {
        let Some(parts) = &self.lines[kind] else {
            for at in lines {
                out.extend_from_slice(text.content(at));
                out.push(b'\n');
            }
            return;
        };
        for at in lines {
            for part in parts {
                match part {
                    LinePart::DiffText(text) => out.extend_from_slice(text),
                    LinePart::Line { with_newline: true } => out.extend_from_slice(text.line(at)),
                    LinePart::Line { with_newline: false } => out.extend_from_slice(text.content(at)),
                    LinePart::Number(format) => format.write(at + 1, out),
                }
            }
        }
    }
}

/// The number that a letter stands for: small ones are about the old lines, large ones about the new.
fn number_of(letter: char, change: &DiffChange) -> usize {
    let lines = if letter.is_ascii_lowercase() { &change.old } else { &change.new };
    match letter.to_ascii_lowercase() {
        'f' => lines.start + 1,
        'l' => lines.end,
        'n' => lines.len(),
        'e' => lines.start,
        _ => lines.end + 1,
    }
}

struct Parser<'a> {
    rest: &'a str,
    depth: usize,
}

impl Parser<'_> {
    fn next(&mut self) -> Option<char> {
        let letter = self.rest.chars().next()?;
        self.rest = &self.rest[letter.len_utf8()..];
        Some(letter)
    }

    fn eat(&mut self, wanted: &str) -> Option<()> {
        self.rest = self.rest.strip_prefix(wanted)?;
        Some(())
    }

    fn line(&mut self) -> Option<Vec<LinePart>> {
        let mut parts = Vec::new();
        while let Some(letter) = self.next() {
            parts.push(match letter {
                '%' if self.eat("l").is_some() => LinePart::Line { with_newline: false },
                '%' if self.eat("L").is_some() => LinePart::Line { with_newline: true },
                '%' => match self.character() {
                    Some(text) => LinePart::DiffText(text),
                    None => {
                        let format = self.number_format()?;
                        self.eat("n")?;
                        LinePart::Number(format)
                    }
                },
                other => LinePart::DiffText(other.to_string().into_bytes()),
            });
        }
        Some(parts)
    }

    /// Reads a format up to one of the ends, which stays.
    fn group(&mut self, ends: &str) -> Option<Vec<GroupPart>> {
        let mut parts = Vec::new();
        loop {
            match self.rest.chars().next() {
                None if ends.is_empty() => return Some(parts),
                None => return None,
                Some(letter) if ends.contains(letter) => return Some(parts),
                Some(_) => {}
            }
            parts.push(match self.next()? {
                '%' if self.eat("<").is_some() => GroupPart::OldLines,
                '%' if self.eat(">").is_some() => GroupPart::NewLines,
                '%' if self.eat("=").is_some() => GroupPart::UnchangedLines,
                '%' if self.eat("(").is_some() => self.condition()?,
                '%' => match self.character() {
                    Some(text) => GroupPart::DiffText(text),
                    None => {
                        let format = self.number_format()?;
                        let letter = self.next().filter(|letter| "eflmnEFLMN".contains(*letter))?;
                        GroupPart::Number(format, letter)
                    }
                },
                other => GroupPart::DiffText(other.to_string().into_bytes()),
            });
        }
    }

    fn condition(&mut self) -> Option<GroupPart> {
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            return None;
        }
        let left = self.value()?;
        self.eat("=")?;
        let right = self.value()?;
        self.eat("?")?;
        let then = self.group(":")?;
        self.eat(":")?;
        let otherwise = self.group(")")?;
        self.eat(")")?;
        self.depth -= 1;
        Some(GroupPart::Condition { left, right, then, otherwise })
    }

    fn value(&mut self) -> Option<DiffValue> {
        if self.rest.starts_with(|letter: char| letter.is_ascii_digit()) {
            return self.digits().map(DiffValue::Number);
        }
        self.next().filter(|letter| "eflmnEFLMN".contains(*letter)).map(DiffValue::Letter)
    }

    /// Reads `%` or a character: `c'x'`, `c'\17'`.
    fn character(&mut self) -> Option<Vec<u8>> {
        if self.eat("%").is_some() {
            return Some(vec![b'%']);
        }
        let inside = self.rest.strip_prefix("c'")?;
        let end = inside.char_indices().skip(1).find(|(_, letter)| *letter == '\'')?.0;
        let text = &inside[..end];
        self.rest = &inside[end + 1..];
        match text.strip_prefix('\\') {
            Some(octal) if !octal.is_empty() => u8::from_str_radix(octal, 8).ok().map(|byte| vec![byte]),
            _ if text.chars().count() == 1 => Some(text.as_bytes().to_vec()),
            _ => None,
        }
    }

    fn digits(&mut self) -> Option<usize> {
        let end = self.rest.find(|letter: char| !letter.is_ascii_digit()).unwrap_or(self.rest.len());
        let (digits, rest) = self.rest.split_at(end);
        self.rest = rest;
        if digits.is_empty() { Some(0) } else { digits.parse().ok() }
    }

    fn number_format(&mut self) -> Option<NumberFormat> {
        let mut format = NumberFormat::default();
        while self.rest.starts_with(['-', '\'']) {
            format.is_left |= self.next() == Some('-');
        }
        format.width = self.digits()?.min(MAX_WIDTH);
        if self.eat(".").is_some() {
            format.precision = self.digits()?.min(MAX_WIDTH);
        }
        format.conversion = self.next().filter(|letter| "doxX".contains(*letter))?;
        Some(format)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(options: &[(&str, &str)], is_equal: bool) -> String {
        let mut formats = Formats::default();
        for (option, format) in options {
            formats.set(option, format).unwrap();
        }
        let texts = [DiffText::new(b"a\nb\n".to_vec().into()), DiffText::new(b"a\nc\nd".to_vec().into())];
        let change = DiffChange { old: 1..2, new: 1..3, is_ignored: false };
        String::from_utf8(formats.write([&texts[0], &texts[1]], &change, is_equal)).unwrap()
    }

    #[test]
    fn lines_and_groups_follow_their_formats() {
        assert_eq!(
            written(&[("old-line-format", "-%L"), ("new-line-format", "%2dn %l;")], false),
            "-b\n 2 c; 3 d;"
        );
        assert_eq!(
            written(&[("changed-group-format", "%df,%dl %.3dN%c'\\12'%%%>")], false),
            "2,2 002\n%c\nd\n"
        );
        assert_eq!(written(&[("changed-group-format", "%(n=1?one:%<)%(N=9?x:y)")], false), "oney");
        assert_eq!(written(&[("unchanged-line-format", "")], true), "");
        assert_eq!(written(&[("old-group-format", "<")], false), "<c\nd\n");
    }

    #[test]
    fn a_wrong_format_is_refused() {
        for (option, format) in
            [("line-format", "%q"), ("old-group-format", "%(n=1?x"), ("line-format", "%c'")]
        {
            assert!(Formats::default().set(option, format).is_err(), "{format}");
        }
    }
}
