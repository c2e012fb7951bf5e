//! `str_replace` and `insert`: changes of a file that leave all its other bytes as they are.

use bytes::Bytes;
use eyot::{ErrorKind, Result, Sandbox};
use memchr::{memchr_iter, memmem};

use super::refusal::refusal;
use super::{MAX_FILE_BYTES, view};
use crate::change::change_file;

/// So many lines are shown around a change.
const SNIPPET_LINES: usize = 4;
/// So many lines are named in which a text occurs.
const MAX_LINES: usize = 100;

/// A file as it is to be, and what to say of it.
struct EditResult {
    file: Vec<u8>,
    answer: String,
}

/// Replaces a text that occurs exactly once.
pub(super) async fn str_replace(sandbox: &Sandbox, path: &str, old: &str, new: &str) -> Result<String> {
    if old.is_empty() {
        return Err(refusal(
            ErrorKind::Invalid,
            "Parameter `old_str` must not be empty for command: str_replace",
        ));
    }
    change(sandbox, path, |file| replaced(path, file, old, new)).await
}

/// Puts text after a line.
pub(super) async fn insert(sandbox: &Sandbox, path: &str, line: i64, text: &str) -> Result<String> {
    change(sandbox, path, |file| inserted(path, file, line, text)).await
}

async fn change(
    sandbox: &Sandbox,
    path: &str,
    edit: impl FnOnce(&[u8]) -> Result<EditResult> + Send,
) -> Result<String> {
    let mut answer = String::new();
    let changed = change_file(sandbox, path, MAX_FILE_BYTES, |file| {
        let edited = edit(&file)?;
        answer = edited.answer;
        Ok(Bytes::from(edited.file))
    });
    changed.await?;
    Ok(answer)
}

fn replaced(path: &str, file: &[u8], old: &str, new: &str) -> Result<EditResult> {
    let mut found = memmem::find_iter(file, old);
    let start = match (found.next(), found.next()) {
        (Some(start), None) => start,
        (None, _) => {
            let message =
                format!("No replacement was performed, old_str `{old}` did not appear verbatim in {path}.");
            return Err(refusal(ErrorKind::NotFound, message));
        }
        (Some(_), Some(_)) => {
            let message = format!(
                "No replacement was performed. Multiple occurrences of old_str `{old}` in lines [{}]. Please ensure it \
                 is unique",
                lines_of(file, old)
            );
            return Err(refusal(ErrorKind::Conflict, message));
        }
    };
    let edited = [&file[..start], new.as_bytes(), &file[start + old.len()..]].concat();
    let first = line_of(file, start);
    let answer = format!(
        "The file {path} has been edited. {}Review the changes and make sure they are as expected. Edit the file again \
         if necessary.",
        snippet(&edited, &format!("a snippet of {path}"), first, new)
    );
    Ok(EditResult { file: edited, answer })
}

fn inserted(path: &str, file: &[u8], line: i64, text: &str) -> Result<EditResult> {
    // A line feed at the end ends the last line; it does not begin another.
    let text = text.strip_suffix('\n').unwrap_or(text);
    let total = file.split_inclusive(|byte| *byte == b'\n').count();
    let after = usize::try_from(line).ok().filter(|after| *after <= total).ok_or_else(|| {
        let message = format!(
            "Invalid `insert_line` parameter: {line}. It should be within the range of lines of the file: [0, {total}]"
        );
        refusal(ErrorKind::Invalid, message)
    })?;
    let at: usize = file.split_inclusive(|byte| *byte == b'\n').take(after).map(<[u8]>::len).sum();
    let (before, rest) = file.split_at(at);
    let is_open = !before.is_empty() && !before.ends_with(b"\n");
    let edited = if is_open {
        [before, b"\n", text.as_bytes()].concat()
    } else {
        [before, text.as_bytes(), b"\n", rest].concat()
    };
    let answer = format!(
        "The file {path} has been edited. {}Review the changes and make sure they are as expected (correct indentation, \
         no duplicate lines, etc). Edit the file again if necessary.",
        snippet(&edited, "a snippet of the edited file", after, text)
    );
    Ok(EditResult { file: edited, answer })
}

/// The line that a byte belongs to, counted from 0.
fn line_of(file: &[u8], at: usize) -> usize {
    memchr_iter(b'\n', &file[..at]).count()
}

/// The numbers of the lines in which a text begins; of many, the first.
fn lines_of(file: &[u8], text: &str) -> String {
    let (mut line, mut counted) = (1, 0);
    let numbers = memmem::find_iter(file, text).map(|start| {
        line += line_of(&file[counted..], start - counted);
        counted = start;
        line.to_string()
    });
    let mut numbers: Vec<_> = numbers.take(MAX_LINES + 1).collect();
    if numbers.len() > MAX_LINES {
        numbers[MAX_LINES] = "…".to_owned();
    }
    numbers.join(", ")
}

/// The lines around a change that begins in line `first` and is `new`, numbered.
fn snippet(file: &[u8], what: &str, first: usize, new: &str) -> String {
    let text = String::from_utf8_lossy(file);
    let start = first.saturating_sub(SNIPPET_LINES);
    let count = first - start + new.matches('\n').count() + SNIPPET_LINES + 1;
    let shown = view::numbered(text.split('\n').skip(start).take(count), start + 1, None);
    format!("Here's the result of running `cat -n` on {what}:\n{shown}\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn replace(file: &[u8], old: &str, new: &str) -> Result<(Vec<u8>, String), String> {
        let edited = replaced("/f", file, old, new).map_err(|error| error.to_string())?;
        Ok((edited.file, edited.answer))
    }

    fn insert(file: &str, line: i64, text: &str) -> String {
        match inserted("/f", file.as_bytes(), line, text) {
            Ok(edited) => String::from_utf8(edited.file).unwrap(),
            Err(error) => error.to_string(),
        }
    }

    #[test]
    fn a_text_that_occurs_once_is_replaced_and_shown_with_the_lines_around() {
        let (file, answer) = replace(b"1\n2\n3\n4\n5\n6\n7\n8\n9\n10\n", "6", "x\ny").unwrap();
        assert_eq!(file, b"1\n2\n3\n4\n5\nx\ny\n7\n8\n9\n10\n");
        let expected = "The file /f has been edited. Here's the result of running `cat -n` on a snippet of /f:\n     \
                        2\t2\n     3\t3\n     4\t4\n     5\t5\n     6\tx\n     7\ty\n     8\t7\n     9\t8\n    10\t9\n    \
                        11\t10\nReview the changes and make sure they are as expected. Edit the file again if necessary.";
        assert_eq!(answer, expected);
    }

    #[test]
    fn tabs_and_bytes_that_are_no_text_stay() {
        assert_eq!(replace(b"\ta\xff\t", "a", "b").unwrap().0, b"\tb\xff\t");
    }

    #[test]
    fn a_text_that_is_missing_or_not_unique_changes_nothing() {
        let missing = "No replacement was performed, old_str `x` did not appear verbatim in /f.";
        assert_eq!(replace(b"a", "x", "y"), Err(missing.into()));
        let many = "No replacement was performed. Multiple occurrences of old_str `a\nb` in lines [1, 4]. Please ensure it \
                    is unique";
        assert_eq!(replace(b"a\nb\n\na\nb", "a\nb", "y"), Err(many.into()));
        let error = replace(&[b'\n'; 1 << 20], "\n", "y").unwrap_err();
        assert!(error.ends_with("99, 100, …]. Please ensure it is unique"), "{error}");
    }

    #[test]
    fn text_is_inserted_after_a_line_as_whole_lines() {
        assert_eq!(insert("a\nb\n", 0, "x"), "x\na\nb\n");
        assert_eq!(insert("a\nb\n", 1, "x\ny\n"), "a\nx\ny\nb\n");
        assert_eq!(insert("a\nb\n", 2, "x"), "a\nb\nx\n");
        assert_eq!(insert("a\nb", 2, "x"), "a\nb\nx");
        assert_eq!(insert("", 0, "x"), "x\n");
    }

    #[test]
    fn a_line_that_the_file_does_not_have_is_refused() {
        let expected =
            "Invalid `insert_line` parameter: 3. It should be within the range of lines of the file: [0, 2]";
        assert_eq!(insert("a\nb\n", 3, "x"), expected);
        assert!(insert("a", -1, "x").starts_with("Invalid `insert_line` parameter: -1."));
    }
}
