//! `truncate`: files are cut, or made longer without taking memory.

use std::path::Path;

use eyot::{ErrorKind, WatchEventKind};

use super::content::FileContent;
use super::files::MemoryFiles;
use super::names::bytes_of;
use super::node::{FileAccess, FileNode, NodeContent};
use super::walk::{Last, find};

/// A change of size.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Change {
    To(u64),
    By(i64),
    AtMost(u64),
    AtLeast(u64),
    Down(u64),
    Up(u64),
}

#[derive(Debug, Default)]
struct Options {
    change: Option<Change>,
    creates_nothing: bool,
    reference: Option<String>,
    files: Vec<String>,
}

/// Does what the arguments say.
///
/// # Errors
/// The text for standard error, without the program's name.
pub(super) fn run(files: &MemoryFiles, cwd: &Path, args: &[String]) -> Result<(), String> {
    let options = parse(args)?;
    let change = match (&options.reference, options.change) {
        (Some(reference), None) => Change::To(size_of(files, cwd, reference)?),
        (_, Some(change)) => change,
        (None, None) => return Err("you must specify either ‘--size’ or ‘--reference’".to_owned()),
    };
    if options.files.is_empty() {
        return Err("missing file operand".to_owned());
    }
    options.files.iter().try_for_each(|file| apply(files, cwd, file, change, options.creates_nothing))
}

fn parse(args: &[String]) -> Result<Options, String> {
    let mut options = Options::default();
    let mut args = args.iter();
    while let Some(arg) = args.next() {
        let mut value = |attached: Option<&str>| match attached {
            Some(text) if !text.is_empty() => Ok(text.to_owned()),
            _ => args.next().cloned().ok_or_else(|| format!("option '{arg}' requires an argument")),
        };
        match arg.as_str() {
            "-c" | "--no-create" => options.creates_nothing = true,
            "--" => options.files.extend(args.by_ref().cloned()),
            text if text.starts_with("-s") => options.change = Some(size(&value(text.strip_prefix("-s"))?)?),
            text if text.starts_with("-r") => options.reference = Some(value(text.strip_prefix("-r"))?),
            text if text.starts_with("--size=") => {
                options.change = Some(size(&value(text.strip_prefix("--size="))?)?);
            }
            "--size" => options.change = Some(size(&value(None)?)?),
            text if text.starts_with("--reference=") => {
                options.reference = Some(value(text.strip_prefix("--reference="))?);
            }
            text if text.len() > 1 && text.starts_with('-') => {
                return Err(format!("unrecognized option '{text}'"));
            }
            file => options.files.push(file.to_owned()),
        }
    }
    Ok(options)
}

/// Reads a size: a number with a unit, and before it perhaps the way in which it is meant.
fn size(text: &str) -> Result<Change, String> {
    let wrong = || format!("Invalid number: ‘{text}’");
    let (mark, number) = match text.trim().chars().next() {
        Some(mark @ ('+' | '-' | '<' | '>' | '/' | '%')) => (mark, &text.trim()[1..]),
        _ => ('=', text.trim()),
    };
    let digits = number.trim_end_matches(|letter: char| !letter.is_ascii_digit());
    let unit = match &number[digits.len()..] {
        "" | "B" => 1_u64,
        "K" | "k" | "KiB" => 1 << 10,
        "KB" | "kB" => 1_000,
        "M" | "MiB" => 1 << 20,
        "MB" => 1_000_000,
        "G" | "GiB" => 1 << 30,
        "GB" => 1_000_000_000,
        "T" | "TiB" => 1 << 40,
        "TB" => 1_000_000_000_000,
        _ => return Err(wrong()),
    };
    let number = digits.parse::<u64>().ok().and_then(|number| number.checked_mul(unit)).ok_or_else(wrong)?;
    let signed = || i64::try_from(number).map_err(|_| wrong());
    Ok(match mark {
        '+' => Change::By(signed()?),
        '-' => Change::By(-signed()?),
        '<' => Change::AtMost(number),
        '>' => Change::AtLeast(number),
        '/' | '%' if number == 0 => return Err("division by zero".to_owned()),
        '/' => Change::Down(number),
        '%' => Change::Up(number),
        _ => Change::To(number),
    })
}

impl Change {
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

fn size_of(files: &MemoryFiles, cwd: &Path, file: &str) -> Result<u64, String> {
    let inner = files.lock();
    let path = bytes_of(cwd.join(file).as_os_str()).into_owned();
    let found = find(&inner.tree, inner.root, &path, Last::Follow, None).ok().and_then(|place| place.node);
    found
        .map(|id| inner.tree.node(id).size())
        .ok_or_else(|| format!("cannot stat '{file}': No such file or directory"))
}

fn apply(
    files: &MemoryFiles,
    cwd: &Path,
    file: &str,
    change: Change,
    creates_nothing: bool,
) -> Result<(), String> {
    let said = |error: eyot::Error| {
        let reason = match error.kind() {
            ErrorKind::NotFound => "No such file or directory",
            ErrorKind::NotDirectory => "Not a directory",
            ErrorKind::IsDirectory => "Is a directory",
            ErrorKind::Permission => "Permission denied",
            ErrorKind::Quota => "No space left on device",
            _ => "Invalid argument",
        };
        format!("cannot open '{file}' for writing: {reason}")
    };
    let mut inner = files.lock();
    let path = bytes_of(cwd.join(file).as_os_str()).into_owned();
    let place = find(&inner.tree, inner.root, &path, Last::Follow, None).map_err(said)?;
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
    let NodeContent::File(content) = &node.content else { return Err(said(super::node::not_regular())) };
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
            ("+3", 4, 7),
            ("-9", 4, 0),
            ("<3", 4, 3),
            (">9", 4, 9),
            ("/4", 7, 4),
            ("%4", 7, 8),
        ] {
            assert_eq!(size(text).unwrap().of(before), after, "{text} of {before}");
        }
        for text in ["", "x", "1Q", "%0", "99999999999T"] {
            assert!(size(text).is_err(), "{text}");
        }
    }
}
