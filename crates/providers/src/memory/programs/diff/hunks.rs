//! The formats with lines around: `-u` and `-c`.

use std::ops::Range;

use regex::bytes::Regex;

use super::changes::DiffChange;
use super::lines::LineWriter;
use super::text::DiffText;

/// The most bytes of a line that tells which function a hunk is in.
const FUNCTION_BYTES: usize = 40;

/// The lines that a hunk is written from.
pub(super) struct HunkWriter<'a> {
    pub texts: [&'a DiffText; 2],
    pub context: usize,
    pub lines: LineWriter,
    pub function: Option<&'a Regex>,
}

/// The ranges of a hunk with its context.
struct DiffSpan {
    old: Range<usize>,
    new: Range<usize>,
}

impl HunkWriter<'_> {
    fn span(&self, changes: &[DiffChange]) -> Option<DiffSpan> {
        let (first, last) = (changes.first()?, changes.last()?);
        let before = self.context.min(first.old.start).min(first.new.start);
        let after = |end: usize, text: &DiffText| end.saturating_add(self.context).min(text.len());
        Some(DiffSpan {
            old: first.old.start - before..after(last.old.end, self.texts[0]),
            new: first.new.start - before..after(last.new.end, self.texts[1]),
        })
    }

    /// Finds the line that names the function of a hunk: the last before it that fits the pattern.
    fn function_before(&self, start: usize) -> Vec<u8> {
        let Some(pattern) = self.function else { return Vec::new() };
        let found = (0..start).rev().map(|at| self.texts[0].content(at)).find(|line| pattern.is_match(line));
        let Some(line) = found else { return Vec::new() };
        let line = line.trim_ascii_start();
        [b" ", line[..line.len().min(FUNCTION_BYTES)].trim_ascii_end()].concat()
    }

    /// Writes a hunk of `-u`.
    pub(super) fn unified(&self, changes: &[DiffChange]) -> Vec<u8> {
        let Some(span) = self.span(changes) else { return Vec::new() };
        let head = format!("@@ -{} +{} @@", unified_range(&span.old), unified_range(&span.new));
        let mut out = head.into_bytes();
        out.extend(self.function_before(span.old.start));
        out.push(b'\n');
        let mut at = span.old.start;
        for change in changes {
            self.write_common(at..change.old.start, &mut out);
            self.lines.write_all("-", self.texts[0], change.old.clone(), &mut out);
            self.lines.write_all("+", self.texts[1], change.new.clone(), &mut out);
            at = change.old.end;
        }
        self.write_common(at..span.old.end, &mut out);
        out
    }

    /// Writes lines that both have: their mark is the gap, or one space.
    fn write_common(&self, lines: Range<usize>, out: &mut Vec<u8>) {
        let mark = if self.lines.gap.is_empty() { " " } else { "" };
        for at in lines {
            let is_bare = self.lines.blank_stays_empty && self.texts[0].content(at).is_empty();
            self.lines.write(if is_bare { "" } else { mark }, self.texts[0], at, out);
        }
    }

    /// Writes a hunk of `-c`.
    pub(super) fn context(&self, changes: &[DiffChange]) -> Vec<u8> {
        let Some(span) = self.span(changes) else { return Vec::new() };
        let mut out = b"***************".to_vec();
        out.extend(self.function_before(span.old.start));
        out.extend_from_slice(format!("\n*** {} ****\n", context_range(&span.old)).as_bytes());
        self.write_side(0, &span.old, changes, &mut out);
        out.extend_from_slice(format!("--- {} ----\n", context_range(&span.new)).as_bytes());
        self.write_side(1, &span.new, changes, &mut out);
        out
    }

    /// Writes the lines of one side, if any of them changed.
    fn write_side(&self, side: usize, span: &Range<usize>, changes: &[DiffChange], out: &mut Vec<u8>) {
        let lines_of = |change: &DiffChange| [change.old.clone(), change.new.clone()][side].clone();
        let is_shown = |change: &DiffChange| !lines_of(change).is_empty() && !change.is_ignored;
        if !changes.iter().any(is_shown) {
            return;
        }
        let (text, alone) = (self.texts[side], ["-", "+"][side]);
        let mut at = span.start;
        for change in changes {
            let lines = lines_of(change);
            self.lines.write_all(" ", text, at..lines.start, out);
            let is_replaced = !change.old.is_empty() && !change.new.is_empty();
            self.lines.write_all(if is_replaced { "!" } else { alone }, text, lines.clone(), out);
            at = lines.end;
        }
        self.lines.write_all(" ", text, at..span.end, out);
    }
}

fn unified_range(lines: &Range<usize>) -> String {
    match lines.len() {
        0 => format!("{},0", lines.start),
        1 => lines.end.to_string(),
        len => format!("{},{len}", lines.start + 1),
    }
}

fn context_range(lines: &Range<usize>) -> String {
    if lines.len() < 2 { lines.end.to_string() } else { format!("{},{}", lines.start + 1, lines.end) }
}
