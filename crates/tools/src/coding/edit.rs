//! `edit`: an exact text in a file, replaced. The bytes around it stay as they are, whatever they are.

use bytes::Bytes;
use eyot::{Error, ErrorKind, Result};
use memchr::memmem;
use schemars::JsonSchema;
use serde::Deserialize;

use super::MAX_FILE_BYTES;
use crate::change::change_file;
use crate::context::ToolContext;
use crate::definition::ToolDef;
use crate::output::ToolOutput;

const DESCRIPTION: &str = "Edit a file using exact text replacement. The oldText must match a unique region of the \
                           file. Use replaceAll to replace all occurrences.";

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct Args {
    /// Path to the file to edit
    path: String,
    /// Exact text to find (must be unique)
    old_text: String,
    /// Replacement text
    new_text: String,
    /// Replace all occurrences
    replace_all: Option<bool>,
}

pub(super) fn tool() -> Result<ToolDef> {
    ToolDef::typed("edit", DESCRIPTION, async |context: ToolContext, asked: Args| {
        if asked.old_text.is_empty() {
            return Err(Error::new(ErrorKind::Invalid, "oldText must be a non-empty string."));
        }
        let sandbox = context.sandbox(None).await?;
        let mut answer = String::new();
        let edited = change_file(&sandbox, &asked.path, MAX_FILE_BYTES, |file| {
            let edited = asked.apply(&file)?;
            answer = edited.answer;
            Ok(edited.file)
        });
        edited.await?;
        Ok(ToolOutput::text(answer))
    })
}

/// A file as it is to be, and what to say of it.
struct EditedFile {
    file: Bytes,
    answer: String,
}

impl Args {
    fn apply(&self, file: &[u8]) -> Result<EditedFile> {
        let path = &self.path;
        let found = memmem::find_iter(file, &self.old_text).count();
        let answer = match (self.replace_all.unwrap_or_default(), found) {
            (true, 0) => return Err(nothing(format!("Could not find the text in {path}. No changes made."))),
            (true, _) if self.old_text == self.new_text => {
                return Err(nothing(format!("Could not find the text in {path}. No changes made.")));
            }
            (true, found) => format!("Replaced {found} occurrences in {path}"),
            (false, 0) => {
                return Err(nothing(format!(
                    "Could not find the exact text in {path}. Make sure your oldText matches exactly, including \
                     whitespace and indentation."
                )));
            }
            (false, 1) => format!("Successfully edited {path}"),
            (false, found) => {
                let message = format!(
                    "Found {found} occurrences of the text in {path}. Provide more surrounding context to make the \
                     match unique, or use replaceAll."
                );
                return Err(Error::new(ErrorKind::Conflict, message));
            }
        };
        Ok(EditedFile { file: replace(file, &self.old_text, &self.new_text, found, path)?, answer })
    }
}

fn nothing(message: String) -> Error {
    Error::new(ErrorKind::NotFound, message)
}

/// Replaces every one of the `found` occurrences, unless that would be more than anybody should hold in memory.
fn replace(file: &[u8], old: &str, new: &str, found: usize, path: &str) -> Result<Bytes> {
    let size = (file.len() - found * old.len()) as u64 + (found as u64).saturating_mul(new.len() as u64);
    if size > MAX_FILE_BYTES {
        let message = format!("edit `{path}`: it would have {size} bytes; the limit is {MAX_FILE_BYTES}");
        return Err(Error::new(ErrorKind::TooLarge, message));
    }
    let mut edited = Vec::with_capacity(size as usize);
    let mut end = 0;
    for start in memmem::find_iter(file, old) {
        edited.extend_from_slice(&file[end..start]);
        edited.extend_from_slice(new.as_bytes());
        end = start + old.len();
    }
    edited.extend_from_slice(&file[end..]);
    Ok(edited.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn edit(file: &[u8], old: &str, new: &str, all: bool) -> Result<(Vec<u8>, String), String> {
        let (old_text, new_text) = (old.to_owned(), new.to_owned());
        let edit = Args { path: "p".into(), old_text, new_text, replace_all: Some(all) };
        let edited = edit.apply(file).map_err(|error| error.to_string())?;
        Ok((edited.file.to_vec(), edited.answer))
    }

    #[test]
    fn a_unique_text_is_replaced_literally() {
        let edited = edit(b"a $& b", "$&", "$1 \\n $$", false);
        assert_eq!(edited, Ok((b"a $1 \\n $$ b".to_vec(), "Successfully edited p".into())));
    }

    #[test]
    fn a_text_that_is_missing_or_not_unique_changes_nothing_and_says_why() {
        let missing = "Could not find the exact text in p. Make sure your oldText matches exactly, including \
                       whitespace and indentation.";
        assert_eq!(edit(b"abc", "x", "y", false), Err(missing.into()));
        let twice = "Found 2 occurrences of the text in p. Provide more surrounding context to make the match unique, \
                     or use replaceAll.";
        assert_eq!(edit(b"aaaa", "aa", "y", false), Err(twice.into()));
    }

    #[test]
    fn replace_all_counts_what_it_replaced_and_refuses_to_change_nothing() {
        assert_eq!(
            edit(b"aaa", "a", "bb", true),
            Ok((b"bbbbbb".to_vec(), "Replaced 3 occurrences in p".into()))
        );
        let nothing = Err("Could not find the text in p. No changes made.".to_owned());
        assert_eq!(edit(b"aaa", "x", "y", true), nothing);
        assert_eq!(edit(b"aaa", "a", "a", true), nothing);
    }

    #[test]
    fn bytes_that_are_not_utf_8_stay_as_they_are() {
        let (file, _) = edit(b"\xff\xfe a \xe9\n", "a", "é", false).unwrap();
        assert_eq!(file, b"\xff\xfe \xc3\xa9 \xe9\n");
    }

    #[test]
    fn an_edit_that_would_fill_the_memory_is_refused() {
        let error = edit(&vec![b'a'; 1 << 20], "a", &"b".repeat(1 << 20), true).unwrap_err();
        assert!(error.ends_with("it would have 1099511627776 bytes; the limit is 67108864"), "{error}");
    }
}
