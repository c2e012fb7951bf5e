//! Why a connection ended, in a form that can be told to every call: an error that can be made
//! again and again.

use std::fmt;
use std::sync::Arc;

use eyot::{Error, ErrorKind};
use futures_util::future::BoxFuture;

/// The sentence of a connection whose stream ended.
const STOPPED: &str = "the sandbox stopped while the call was in flight";

/// Gives the error for a connection's calls, as its owner sees it whenever one fails.
pub type Verdict = Arc<dyn Fn() -> Error + Send + Sync>;

/// Finds out, when a stream has ended, what became of the sandbox. Calls under way wait for it.
pub type Inquiry = Arc<dyn Fn() -> BoxFuture<'static, Verdict> + Send + Sync>;

/// Why no call can succeed any more.
#[derive(Clone)]
pub(super) enum Fault {
    /// The stream ended, and neither side broke the protocol.
    Stopped,
    /// A fault of this kind with this sentence.
    Said { kind: ErrorKind, message: String, hint: Option<&'static str> },
    /// The error that the owner gives at the time.
    Asked(Verdict),
}

impl Fault {
    /// A fault of this kind with this sentence.
    pub(super) fn new(kind: ErrorKind, message: impl Into<String>) -> Self {
        Self::Said { kind, message: message.into(), hint: None }
    }

    /// The stream ended.
    pub(super) fn stopped() -> Self {
        Self::Stopped
    }

    /// Tells whether the stream just ended.
    pub(super) fn is_stop(&self) -> bool {
        matches!(self, Self::Stopped)
    }

    /// The guest did what the protocol does not allow.
    pub(super) fn broken(what: &str) -> Self {
        let message = format!("the sandbox's guest broke the protocol: {what}");
        let hint =
            "something inside the sandbox may have taken over its guest; destroy it and create a new one";
        Self::Said { kind: ErrorKind::Unavailable, message, hint: Some(hint) }
    }

    /// The error to tell a call.
    pub(super) fn error(&self) -> Error {
        match self {
            Self::Stopped => Error::new(ErrorKind::Unavailable, STOPPED),
            Self::Said { kind, message, hint: None } => Error::new(*kind, message.as_str()),
            Self::Said { kind, message, hint: Some(hint) } => {
                Error::new(*kind, message.as_str()).with_hint(*hint)
            }
            Self::Asked(verdict) => verdict(),
        }
    }
}

impl fmt::Debug for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Asked(_) => f.write_str("whatever its owner says"),
            said => write!(f, "{}", said.error()),
        }
    }
}

/// A breach of the protocol, which ends the connection. The text completes "the guest broke the
/// protocol: ".
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Violation(pub(super) String);

impl Violation {
    /// A violation in these words.
    pub(super) fn new(what: impl Into<String>) -> Self {
        Self(what.into())
    }
}
