//! Refusals in the words that models know of the editor, told from errors of the sandbox by their source.

use eyot::{Error, ErrorKind};

/// The mark of an error whose sentence is the tool's own.
#[derive(Debug, thiserror::Error)]
#[error("the editor refused the call")]
struct EditorRefusal;

/// Makes an error in the tool's own words.
pub(super) fn refusal(kind: ErrorKind, message: impl Into<String>) -> Error {
    Error::new(kind, message).with_source(EditorRefusal)
}

/// Returns whether an error is in the tool's own words.
pub(super) fn is_refusal(error: &Error) -> bool {
    std::error::Error::source(error).is_some_and(|source| source.is::<EditorRefusal>())
}
