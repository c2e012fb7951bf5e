//! `truncate`: files are cut, or made longer without taking memory.

use async_trait::async_trait;

use super::counts;
use super::options::{OptionWord, unknown};
use super::run::{Ending, ProgramRun, ShellProgram, reason};
use crate::memory::content::FileContent;
use crate::memory::node::{FileAccess, FileNode, NodeContent, not_regular};
use crate::memory::walk::Last;
use eyot::WatchEventKind;

/// A change of size.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum SizeChange {
    To(u64),
    By(i64),
    AtMost(u64),
    AtLeast(u64),
    Down(u64),
    Up(u64),
}

#[derive(Debug, Default)]
struct Options {
    change: Option<SizeChange>,
    creates_nothing: bool,
    reference: Option<String>,
    files: Vec<String>,
}

pub(super) struct Truncate;

#[async_trait]
impl ShellProgram for Truncate {
    async fn run(&self, run: &ProgramRun<'_>) -> Result<i32, Ending> {
        let options = parse(run)?;
        let change = match (&options.reference, options.change) {
            (Some(reference), None) => SizeChange::To(size_of(run, reference)?),
            (_, Some(change)) => change,
            (None, None) => return Err(Ending::usage("you must specify either ‘--size’ or ‘--reference’")),
        };
        if options.files.is_empty() {
            return Err(Ending::usage("missing file operand"));
        }
        let mut status = 0;
        for file in &options.files {
            run.breathe().await;
            if let Err(reason) = apply(run, file, change, options.creates_nothing) {
                run.complain(reason).await?;
                status = 1;
            }
        }
        Ok(status)
    }
}

fn parse(run: &ProgramRun<'_>) -> Result<Options, Ending> {
    let mut options = Options::default();
    let mut words = run.words();
    while let Some(word) = words.next()? {
        match word {
            OptionWord::Short('c') => options.creates_nothing = true,
            OptionWord::Short('s') => options.change = Some(size(&words.value()?).map_err(Ending::refused)?),
            OptionWord::Short('r') => options.reference = Some(words.value()?),
            OptionWord::Long(name) => match name.as_str() {
                "no-create" => options.creates_nothing = true,
                "size" => options.change = Some(size(&words.value()?).map_err(Ending::refused)?),
                "reference" => options.reference = Some(words.value()?),
                _ => return Err(unknown(&OptionWord::Long(name))),
            },
            OptionWord::Operand(file) => options.files.push(file),
            OptionWord::Short(_) => return Err(unknown(&word)),
        }
    }
    Ok(options)
}

/// Reads a size: a number with a unit, and before it perhaps the way in which it is meant.
fn size(text: &str) -> Result<SizeChange, String> {
    let wrong = || format!("Invalid number: ‘{text}’");
    let (mark, number) = match text.trim().chars().next() {
        Some(mark @ ('+' | '-' | '<' | '>' | '/' | '%')) => (mark, &text.trim()[1..]),
        _ => ('=', text.trim()),
    };
    if mark != '=' && !number.starts_with(|digit: char| digit.is_ascii_digit()) {
        return Err(wrong());
    }
    let number = match counts::count(number, "EgGkKmMPtTYZ").ok_or_else(wrong)? {
        u64::MAX => return Err(wrong() + ": Value too large for defined data type"),
        number => number,
    };
    let signed = || i64::try_from(number).map_err(|_| wrong());
    Ok(match mark {
        '+' => SizeChange::By(signed()?),
        '-' => SizeChange::By(-signed()?),
        '<' => SizeChange::AtMost(number),
        '>' => SizeChange::AtLeast(number),
        '/' | '%' if number == 0 => return Err("division by zero".to_owned()),
        '/' => SizeChange::Down(number),
        '%' => SizeChange::Up(number),
        _ => SizeChange::To(number),
    })
}

impl SizeChange {
    fn of(self, size: u64) -> u64 {
        match self {
            Self::To(wanted) => wanted,
            Self::By(more) => size.saturating_add_signed(more),
            Self::AtMost(most) => size.min(most),
            Self::AtLeast(least) => size.max(least),
            Self::Down(step) => size - size % step,
            Self::Up(step) => size.div_ceil(step).saturating_mul(step),
        }
    }
}

fn size_of(run: &ProgramRun<'_>, file: &str) -> Result<u64, Ending> {
    let found = run.look(file, Last::Follow);
    found
        .map(|node| node.size())
        .map_err(|error| Ending::refused(format!("cannot stat '{file}': {}", reason(&error))))
}

fn apply(run: &ProgramRun<'_>, file: &str, change: SizeChange, creates_nothing: bool) -> Result<(), String> {
    let said = |error: eyot::Error| format!("cannot open '{file}' for writing: {}", reason(&error));
    let mut inner = run.hold();
    let place = run.find(&inner, file, Last::Follow).map_err(said)?;
    let Some(id) = place.node else {
        if creates_nothing {
            return Ok(());
        }
        let mut content = FileContent::default();
        content.set_len(change.of(0));
        let node = FileNode::new(NodeContent::File(content), 0o644);
        return inner.add(&place, node).map(drop).map_err(said);
    };
    let node = inner.tree.node(id);
    node.check(FileAccess::Write).map_err(said)?;
    let NodeContent::File(content) = &node.content else { return Err(said(not_regular())) };
    let mut content = content.clone();
    if !content.set_len(change.of(content.len())) {
        return Err(format!("failed to truncate '{file}': a file in memory has one hole at most"));
    }
    inner.tree.set_content(id, content).map_err(said)?;
    inner.tell(&WatchEventKind::Modified, &place, false);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_read_as_gnu_reads_them() {
        for (text, before, after) in [
            ("5", 9, 5),
            ("2K", 0, 2048),
            ("1MB", 0, 1_000_000),
            ("1g", 0, 1 << 30),
            ("1P", 0, 1 << 50),
            ("+3", 4, 7),
            ("-9", 4, 0),
            ("<3", 4, 3),
            (">9", 4, 9),
            ("/4", 7, 4),
            ("%4", 7, 8),
        ] {
            assert_eq!(size(text).unwrap().of(before), after, "{text} of {before}");
        }
        for text in ["", "x", "1Q", "2B", "+k", "%0", "99999999999T"] {
            assert!(size(text).is_err(), "{text}");
        }
    }
}
