//! Failures: a kind for code, and one sentence for the reader.

use crate::protocol::Failure;

/// A failure of this kind, with its sentence.
pub fn failure(kind: &str, message: impl Into<String>) -> Failure {
    Failure { kind: kind.to_owned(), message: message.into() }
}

/// The failure of a call that no client waits for any more.
pub fn cancelled() -> Failure {
    failure("cancelled", "the call was cancelled")
}

/// The guest could not do its part.
pub fn internal(what: &str, error: &std::io::Error) -> Failure {
    let kind = match error.raw_os_error() {
        Some(libc::EMFILE | libc::ENFILE | libc::ENOMEM | libc::EAGAIN | libc::ENOSPC) => "quota",
        _ => "internal",
    };
    failure(kind, format!("{what}: {error}"))
}
