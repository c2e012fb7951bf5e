//! Errors in the words that programs print.

use eyot::{Error, ErrorKind};

/// The reason in the words that programs print.
pub(super) fn reason(error: &Error) -> &'static str {
    match error.kind() {
        ErrorKind::NotFound => "No such file or directory",
        ErrorKind::AlreadyExists => "File exists",
        ErrorKind::IsDirectory => "Is a directory",
        ErrorKind::NotDirectory => "Not a directory",
        ErrorKind::Permission => "Permission denied",
        ErrorKind::Quota => "No space left on device",
        ErrorKind::TooLarge => "File too large",
        _ => "Invalid argument",
    }
}
