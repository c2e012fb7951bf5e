//! The form of this crate's errors: verb and object first, then the reason, and a hint that says
//! what to do.

use std::io;

use eyot::internal::system_reason;
use eyot::{Error, ErrorKind};

/// Builds the refusal of an image or an archive. The text is the end of a sentence.
pub(crate) fn refused(reason: impl Into<String>) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, reason.into())
}

/// Wraps errors of `what`, a verb and an object such as "import image `x`".
pub(crate) fn failed(what: impl Into<String>) -> impl Fn(io::Error) -> Error {
    let what = what.into();
    move |error| {
        use io::ErrorKind as Io;
        let (kind, hint) = match error.kind() {
            Io::InvalidData | Io::UnexpectedEof | Io::InvalidInput => (ErrorKind::Invalid, None),
            Io::NotFound => (ErrorKind::NotFound, None),
            Io::FileTooLarge => (ErrorKind::TooLarge, None),
            Io::StorageFull | Io::QuotaExceeded => (
                ErrorKind::Quota,
                Some("free space where the state folder lies; `eyot image prune` removes what nobody needs"),
            ),
            Io::PermissionDenied | Io::ReadOnlyFilesystem => (ErrorKind::Permission, None),
            Io::WouldBlock => (
                ErrorKind::Conflict,
                Some("another process imports or pulls an image; try again when it is done"),
            ),
            _ => (ErrorKind::Unavailable, None),
        };
        let reason = match error.kind() {
            Io::WouldBlock => "the store is in use".to_owned(),
            _ => system_reason(&error),
        };
        let told = Error::new(kind, format!("{what}: {reason}")).with_source(error);
        match hint {
            Some(hint) => told.with_hint(hint),
            None => told,
        }
    }
}

/// The hint for a blob whose content does not match its digest.
pub(crate) const CORRUPT: &str =
    "the copy is damaged or was tampered with; nothing of it was kept: get it anew";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_disk_is_a_quota_that_says_what_to_do() {
        let error = failed("import image `x`")(io::Error::from_raw_os_error(28));
        assert_eq!(error.kind(), ErrorKind::Quota);
        assert_eq!(error.to_string(), "import image `x`: no space left on device");
        assert!(error.hint().is_some_and(|hint| hint.contains("eyot image prune")));
    }
}
