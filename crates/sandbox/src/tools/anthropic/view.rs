//! `view`: a file with line numbers, or a directory two levels deep.

use super::MAX_FILE_BYTES;
use crate::error::{Error, ErrorKind, Result};
use crate::files::{DirEntry, FileType};
use crate::sandbox::Sandbox;
use crate::tools::clip::{MAX_TEXT_BYTES, clip};
use crate::tools::names;

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
                Err(Error::new(ErrorKind::Invalid, message))
            }
            None => directory(sandbox, path).await,
        };
    }
    let file = sandbox.read_at_most(path, MAX_FILE_BYTES).await?;
    let text = std::str::from_utf8(&file).map_err(|_| {
        let message = format!("The file {path} is not UTF-8 text; it has {} bytes.", file.len());
        Error::new(ErrorKind::Invalid, message)
            .with_hint("look at it with bash, for example with file or xxd")
    })?;
    let lines: Vec<&str> = text.split('\n').collect();
    let (first, last) = selected(range, lines.len())?;
    let shown = numbered(&lines[first - 1..last], first);
    Ok(format!("Here's the result of running `cat -n` on {path}:\n{}\n", cut(&shown, max_characters)))
}

/// Lines with their numbers, as `cat -n` has them.
pub(super) fn numbered(lines: &[&str], first: usize) -> String {
    let numbered = lines.iter().enumerate().map(|(index, line)| format!("{:6}\t{line}", first + index));
    numbered.collect::<Vec<_>>().join("\n")
}

/// The first and the last line that are asked for, counted from 1.
fn selected(range: Option<&[i64]>, lines: usize) -> Result<(usize, usize)> {
    let Some(range) = range else {
        return Ok((1, lines));
    };
    let invalid = |message: String| Err(Error::new(ErrorKind::Invalid, message));
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

/// As much of a text as may be shown, and how to see the rest.
fn cut(text: &str, max_characters: Option<usize>) -> String {
    let end = match max_characters {
        Some(most) => text.char_indices().nth(most).map(|(end, _)| end),
        None => (text.len() > MAX_TEXT_BYTES).then(|| text.floor_char_boundary(MAX_TEXT_BYTES)),
    };
    match end {
        Some(end) => {
            let (shown, rest) = text.split_at(end);
            let left = rest.chars().count();
            format!("{shown}\n[eyot: {left} characters more are left out; use `view_range` to see them]")
        }
        None => text.to_owned(),
    }
}

/// What a directory holds, and what its directories do, without hidden names. Links are not followed.
async fn directory(sandbox: &Sandbox, path: &str) -> Result<String> {
    let shown = path.trim_end_matches('/');
    let mut lines = vec![names::shown(if shown.is_empty() { b"/" } else { shown.as_bytes() })];
    for entry in visible(sandbox.list(path).await?) {
        let below = format!("{shown}/{}", entry.name);
        lines.push(line(shown, &entry));
        if entry.file_type != Some(FileType::Directory) || entry.name_bytes.is_some() {
            continue;
        }
        match sandbox.list(&below).await {
            Ok(entries) => lines.extend(visible(entries).map(|inner| line(&below, &inner))),
            // Closed, or gone meanwhile: what is around it is there all the same.
            Err(error) if [ErrorKind::Permission, ErrorKind::NotFound].contains(&error.kind()) => {}
            Err(error) => return Err(error),
        }
    }
    let how = |_| "view the directories below it one by one".to_owned();
    let listed = clip(&lines.join("\n"), how);
    Ok(format!(
        "Here's the files and directories up to 2 levels deep in {path}, excluding hidden items:\n{listed}\n"
    ))
}

fn visible(entries: Vec<DirEntry>) -> impl Iterator<Item = DirEntry> {
    entries.into_iter().filter(|entry| !entry.name.starts_with('.'))
}

fn line(parent: &str, entry: &DirEntry) -> String {
    let name = entry.name_bytes.as_deref().unwrap_or(entry.name.as_bytes());
    names::shown(&[parent.as_bytes(), b"/", name].concat())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn error(range: &[i64], lines: usize) -> String {
        selected(Some(range), lines).unwrap_err().to_string()
    }

    #[test]
    fn lines_are_numbered_as_cat_does() {
        assert_eq!(numbered(&["a", "", "\tb"], 9), "     9\ta\n    10\t\n    11\t\tb");
    }

    #[test]
    fn a_range_goes_to_the_end_with_minus_one() {
        assert_eq!(selected(Some(&[2, -1]), 5).unwrap(), (2, 5));
        assert_eq!(selected(Some(&[2, 2]), 5).unwrap(), (2, 2));
        assert_eq!(selected(None, 5).unwrap(), (1, 5));
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
        assert_eq!(cut("äöü", Some(3)), "äöü");
        let expected = "ä\n[eyot: 2 characters more are left out; use `view_range` to see them]";
        assert_eq!(cut("äöü", Some(1)), expected);
    }
}
