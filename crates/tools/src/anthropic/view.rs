//! `view`: a file with line numbers, or a directory two levels deep.

use eyot::{DirEntry, ErrorKind, FileType, Result, Sandbox};
use memchr::memchr_iter;

use super::MAX_FILE_BYTES;
use super::refusal::refusal;
use crate::change::read_at_most;
use crate::clip::{ClippedText, MAX_TEXT_BYTES};
use crate::names;

/// Shows what there is at a path.
pub(super) async fn view(
    sandbox: &Sandbox,
    path: &str,
    range: Option<&[i64]>,
    max_characters: Option<usize>,
) -> Result<String> {
    if sandbox.stat(path).await?.is_directory {
        return match range {
            Some(_) => {
                let message = "The `view_range` parameter is not allowed when `path` points to a directory.";
                Err(refusal(ErrorKind::Invalid, message))
            }
            None => directory(sandbox, path).await,
        };
    }
    let file = read_at_most(sandbox, path, MAX_FILE_BYTES).await?;
    let text = std::str::from_utf8(&file).map_err(|_| {
        let message = format!("The file {path} is not UTF-8 text; it has {} bytes.", file.len());
        refusal(ErrorKind::Invalid, message).with_hint("look at it with bash, for example with file or xxd")
    })?;
    let (first, last) = line_range(range, memchr_iter(b'\n', text.as_bytes()).count() + 1)?;
    let lines = text.split('\n').skip(first - 1).take(last + 1 - first);
    Ok(format!(
        "Here's the result of running `cat -n` on {path}:\n{}\n",
        numbered(lines, first, max_characters)
    ))
}

/// Lines with their numbers, as `cat -n` has them; as much as may be shown, and how to see the rest.
pub(super) fn numbered<'a>(
    lines: impl Iterator<Item = &'a str>,
    first: usize,
    max_characters: Option<usize>,
) -> String {
    let mut shown = String::new();
    let mut characters = 0;
    for (index, line) in lines.enumerate() {
        let separator = if index == 0 { "" } else { "\n" };
        let line = format!("{separator}{:6}\t{line}", first + index);
        let fits = fitting(&line, shown.len(), max_characters.map(|most| most - characters));
        shown.push_str(&line[..fits]);
        if fits < line.len() {
            shown.push_str(&omission_note(first + index, index == 0));
            break;
        }
        characters += if max_characters.is_some() { line.chars().count() } else { 0 };
    }
    shown
}

/// Returns the note that stands in place of the rest. A line that is too long by itself is no
/// shorter in another range.
fn omission_note(line: usize, alone: bool) -> String {
    if alone {
        format!(
            "\n[eyot: the rest of line {line} is left out; a range begins with a whole line, so look at it with bash, \
             for example with cut -c]"
        )
    } else {
        format!("\n[eyot: the rest is left out, from line {line} on; use `view_range` to see it]")
    }
}

/// Returns the number of bytes of a line that may be shown, after so many bytes and with so many
/// characters left.
fn fitting(line: &str, shown_bytes: usize, characters_left: Option<usize>) -> usize {
    match characters_left {
        Some(left) => line.char_indices().nth(left).map_or(line.len(), |(end, _)| end),
        None => line.floor_char_boundary(MAX_TEXT_BYTES.saturating_sub(shown_bytes)),
    }
}

/// The first and the last line that are asked for, counted from 1.
fn line_range(range: Option<&[i64]>, lines: usize) -> Result<(usize, usize)> {
    let Some(range) = range else {
        return Ok((1, lines));
    };
    let invalid = |message: String| Err(refusal(ErrorKind::Invalid, message));
    let [first, last] = *range else {
        return invalid("Invalid `view_range`. It should be a list of two integers.".to_owned());
    };
    let total = i64::try_from(lines).unwrap_or(i64::MAX);
    let asked = format!("Invalid `view_range`: [{first}, {last}].");
    if first < 1 || first > total {
        return invalid(format!(
            "{asked} Its first element `{first}` should be within the range of lines of the file: [1, {total}]"
        ));
    }
    if last > total {
        return invalid(format!(
            "{asked} Its second element `{last}` should be smaller than the number of lines in the file: `{total}`"
        ));
    }
    if last != -1 && last < first {
        return invalid(format!(
            "{asked} Its second element `{last}` should be larger or equal than its first `{first}`"
        ));
    }
    let index = |number: i64| usize::try_from(number).unwrap_or(lines);
    Ok((index(first), if last == -1 { lines } else { index(last) }))
}

/// Lists a directory and the directories in it, without hidden names. Links are not followed.
async fn directory(sandbox: &Sandbox, path: &str) -> Result<String> {
    let shown = path.trim_end_matches('/');
    let mut listed = ClippedText::default();
    listed.push(names::display_path(if shown.is_empty() { b"/" } else { shown.as_bytes() }).as_bytes());
    for entry in visible(sandbox.list(path).await?) {
        let below = format!("{shown}/{}", entry.name);
        listed.push(line(shown, &entry).as_bytes());
        if entry.file_type != Some(FileType::Directory) || entry.name_bytes.is_some() {
            continue;
        }
        match sandbox.list(&below).await {
            Ok(entries) => {
                visible(entries).for_each(|inner| listed.push(line(&below, &inner).as_bytes()));
            }
            // Closed, or gone meanwhile: what is around it is there all the same.
            Err(error) if [ErrorKind::Permission, ErrorKind::NotFound].contains(&error.kind()) => {}
            Err(error) => return Err(error),
        }
    }
    let listed = listed.text(|_| "view the directories below it one by one".to_owned());
    Ok(format!(
        "Here's the files and directories up to 2 levels deep in {path}, excluding hidden items:\n{listed}\n"
    ))
}

fn visible(entries: Vec<DirEntry>) -> impl Iterator<Item = DirEntry> {
    entries.into_iter().filter(|entry| !entry.name.starts_with('.'))
}

fn line(parent: &str, entry: &DirEntry) -> String {
    let name = entry.name_bytes.as_deref().unwrap_or(entry.name.as_bytes());
    format!("\n{}", names::display_path(&[parent.as_bytes(), b"/", name].concat()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn error(range: &[i64], lines: usize) -> String {
        line_range(Some(range), lines).unwrap_err().to_string()
    }

    #[test]
    fn lines_are_numbered_as_cat_does() {
        let shown = numbered(["a", "", "\tb"].into_iter(), 9, None);
        assert_eq!(shown, "     9\ta\n    10\t\n    11\t\tb");
    }

    #[test]
    fn a_range_goes_to_the_end_with_minus_one() {
        assert_eq!(line_range(Some(&[2, -1]), 5).unwrap(), (2, 5));
        assert_eq!(line_range(Some(&[2, 2]), 5).unwrap(), (2, 2));
        assert_eq!(line_range(None, 5).unwrap(), (1, 5));
    }

    #[test]
    fn a_range_that_is_none_is_refused_with_the_reason() {
        assert_eq!(error(&[1], 5), "Invalid `view_range`. It should be a list of two integers.");
        assert!(error(&[0, 2], 5).ends_with("should be within the range of lines of the file: [1, 5]"));
        assert!(error(&[6, 7], 5).ends_with("should be within the range of lines of the file: [1, 5]"));
        assert!(error(&[1, 6], 5).ends_with("should be smaller than the number of lines in the file: `5`"));
        assert!(error(&[3, 2], 5).ends_with("should be larger or equal than its first `3`"));
        assert!(error(&[3, -2], 5).ends_with("should be larger or equal than its first `3`"));
    }

    #[test]
    fn what_is_too_long_is_cut_and_said_to_be() {
        let shown = |most| numbered(["äöü", "b"].into_iter(), 1, Some(most));
        assert_eq!(shown(19), "     1\täöü\n     2\tb");
        let note = "\n[eyot: the rest of line 1 is left out; a range begins with a whole line, so look at it with bash, \
                    for example with cut -c]";
        assert_eq!(shown(8), format!("     1\tä{note}"));
        let note = "\n[eyot: the rest is left out, from line 2 on; use `view_range` to see it]";
        assert_eq!(shown(18), format!("     1\täöü\n     2\t{note}"));
        let long = numbered(std::iter::repeat("x"), 1, None);
        assert!(long.len() < MAX_TEXT_BYTES + 200 && long.ends_with("use `view_range` to see it]"));
    }
}
