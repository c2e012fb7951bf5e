//! The formats in which each change stands alone: the normal one, `-e` and `-n`.

use std::ops::Range;

use super::changes::DiffChange;
use super::lines::LineWriter;
use super::text::DiffText;

/// Writes a range of lines, counted from one: the line before it if it is empty.
fn range(lines: &Range<usize>) -> String {
    if lines.len() < 2 { lines.end.to_string() } else { format!("{},{}", lines.start + 1, lines.end) }
}

fn letter(change: &DiffChange) -> char {
    match (change.old.is_empty(), change.new.is_empty()) {
        (true, _) => 'a',
        (_, true) => 'd',
        _ => 'c',
    }
}

/// Writes a change in the normal format.
pub(super) fn normal(texts: [&DiffText; 2], change: &DiffChange, writer: &LineWriter) -> Vec<u8> {
    let head = format!("{}{}{}\n", range(&change.old), letter(change), range(&change.new));
    let mut out = head.into_bytes();
    writer.write_all("<", texts[0], change.old.clone(), &mut out);
    if letter(change) == 'c' {
        out.extend_from_slice(b"---\n");
    }
    writer.write_all(">", texts[1], change.new.clone(), &mut out);
    out
}

/// Writes a change as commands of `ed`. The last change comes first.
pub(super) fn ed(new: &DiffText, change: &DiffChange) -> Vec<u8> {
    let mut out = format!("{}{}\n", range(&change.old), letter(change)).into_bytes();
    if change.new.is_empty() {
        return out;
    }
    let mut is_inserting = true;
    for at in change.new.clone() {
        if !is_inserting {
            out.extend_from_slice(b"a\n");
            is_inserting = true;
        }
        // A lone dot would end the text.
        if new.content(at) == b"." {
            out.extend_from_slice(b"..\n.\ns/.//\n");
            is_inserting = false;
        } else {
            out.extend_from_slice(new.content(at));
            out.push(b'\n');
        }
    }
    if is_inserting {
        out.extend_from_slice(b".\n");
    }
    out
}

/// Writes a change as RCS keeps it.
pub(super) fn rcs(new: &DiffText, change: &DiffChange) -> Vec<u8> {
    let mut out = Vec::new();
    if !change.old.is_empty() {
        out.extend_from_slice(format!("d{} {}\n", change.old.start + 1, change.old.len()).as_bytes());
    }
    if !change.new.is_empty() {
        out.extend_from_slice(format!("a{} {}\n", change.old.end, change.new.len()).as_bytes());
        change.new.clone().for_each(|at| out.extend_from_slice(new.line(at)));
    }
    out
}
