//! Why a connection ended, in a form that can be told to every call: an error that can be made again and
//! again.

use eyot::{Error, ErrorKind};

/// The sentence of a connection whose stream ended.
const STOPPED: &str = "the sandbox stopped while the call was in flight";

/// Why no call can succeed any more.
#[derive(Debug, Clone)]
pub(super) struct Fault {
    kind: ErrorKind,
    message: String,
    hint: Option<&'static str>,
    /// The stream ended, and nobody broke the protocol.
    is_stop: bool,
}

impl Fault {
    /// A fault of this kind with this sentence.
    pub(super) fn new(kind: ErrorKind, message: impl Into<String>) -> Self {
        Self { kind, message: message.into(), hint: None, is_stop: false }
    }

    /// The stream ended.
    pub(super) fn stopped() -> Self {
        Self { is_stop: true, ..Self::new(ErrorKind::Unavailable, STOPPED) }
    }

    /// Whether the stream just ended.
    pub(super) fn is_stop(&self) -> bool {
        self.is_stop
    }

    /// The guest did what the protocol does not allow.
    pub(super) fn broken(what: &str) -> Self {
        let message = format!("the sandbox's guest broke the protocol: {what}");
        let hint =
            "something inside the sandbox may have taken over its guest; destroy it and create a new one";
        Self { kind: ErrorKind::Unavailable, message, hint: Some(hint), is_stop: false }
    }

    /// The error to tell a call.
    pub(super) fn error(&self) -> Error {
        let error = Error::new(self.kind, self.message.as_str());
        match self.hint {
            Some(hint) => error.with_hint(hint),
            None => error,
        }
    }
}

/// Something that the protocol does not allow; it ends the connection. The text completes "the guest broke
/// the protocol: ".
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Violation(pub(super) String);

impl Violation {
    /// A violation in these words.
    pub(super) fn new(what: impl Into<String>) -> Self {
        Self(what.into())
    }
}
