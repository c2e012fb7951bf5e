//! Words of scripts, and the interpreter's errors about scripts.

/// The exit code and the words of what the interpreter refuses.
pub(super) fn failure(error: &bashkit::Error) -> (i32, String) {
    match error {
        bashkit::Error::Parse { message, line, .. } => {
            (2, format!("-c: line {line}: syntax error: {message}"))
        }
        other => (1, other.to_string()),
    }
}

/// A word as the shell reads it back.
pub(super) fn quoted(word: &str) -> String {
    format!("'{}'", word.replace('\'', r"'\''"))
}
