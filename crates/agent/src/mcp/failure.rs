//! Failures of a server that is reached by HTTP. Their texts contain no secrets.

use eyot::ErrorKind;

use super::options::McpTransport;
use crate::event_reader::MAX_EVENT_BYTES;
use crate::http::reason;

/// The most bytes of a server's message: 16 MiB.
pub(super) const MAX_MESSAGE_BYTES: usize = MAX_EVENT_BYTES;

/// The failure of a server that cannot be reached, refuses, or does not speak MCP. Secrets are hidden in all texts.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(super) enum HttpFailure {
    /// Nothing answers at the address.
    #[error("it cannot be reached: {0}")]
    Unreachable(String),
    /// The connection ended in the middle.
    #[error("the connection broke: {0}")]
    Broken(String),
    /// The server refuses, with a status and perhaps the beginning of its text.
    #[error("it answers with HTTP {status}{}", after_colon(.said))]
    Refused { status: u16, said: Option<String> },
    /// The server redirects to another one.
    #[error("it redirects to `{0}`")]
    Redirect(String),
    /// The answer has the wrong type.
    #[error("it answers with {0}, which is not MCP")]
    ForeignContent(String),
    /// The answer is not a message.
    #[error("it sent something that is not a message of MCP")]
    Garbage,
    /// The answer is too long.
    #[error("it sent a message of more than {} MiB", MAX_MESSAGE_BYTES >> 20)]
    TooLarge,
    /// The server asks too much of this side.
    #[error("it sends requests faster than they are answered")]
    TooManyRequests,
    /// The stream of events names another server as the address for messages.
    #[error("its `endpoint` event names another server, `{0}`")]
    ForeignEndpoint(String),
    /// The stream of events has ended.
    #[error("it ended the connection")]
    Ended,
    /// The client has closed the connection.
    #[error("the connection is closed")]
    Stopped,
}

fn after_colon(said: &Option<String>) -> String {
    said.as_ref().map(|said| format!(": {said}")).unwrap_or_default()
}

impl HttpFailure {
    /// Returns the failure of a request that got no answer.
    pub(super) fn of_request(error: &reqwest::Error) -> Self {
        if error.is_connect() { Self::Unreachable(reason(error)) } else { Self::of_body(error) }
    }

    /// Returns the failure of an answer that broke off.
    pub(super) fn of_body(error: &reqwest::Error) -> Self {
        if error.is_timeout() {
            Self::Broken("no answer in time".to_owned())
        } else {
            Self::Broken(reason(error))
        }
    }

    /// Returns the failure of a stream of events. The parser may have wrapped one of our own failures.
    pub(super) fn of_events(error: &sse_stream::Error) -> Self {
        match error {
            sse_stream::Error::Body(error) => error
                .downcast_ref::<Self>()
                .cloned()
                .unwrap_or_else(|| Self::Broken("unknown reason".to_owned())),
            _ => Self::Garbage,
        }
    }

    /// Returns the kind of the error for a caller who connects.
    pub(super) fn kind(&self) -> ErrorKind {
        match self {
            Self::Refused { status: 401 | 403 | 407, .. } => ErrorKind::Permission,
            Self::Refused { status: 404 | 410, .. } => ErrorKind::NotFound,
            Self::Refused { status: 400..=499, .. } if !self.may_pass() => ErrorKind::Invalid,
            Self::Redirect(_) | Self::ForeignContent(_) | Self::Garbage | Self::ForeignEndpoint(_) => {
                ErrorKind::Invalid
            }
            Self::TooLarge => ErrorKind::TooLarge,
            Self::Stopped => ErrorKind::Cancelled,
            _ => ErrorKind::Unavailable,
        }
    }

    /// Returns whether the same request may succeed later.
    fn may_pass(&self) -> bool {
        match self {
            Self::Refused { status, .. } => matches!(status, 408 | 425 | 429 | 500..),
            Self::Unreachable(_) | Self::Broken(_) | Self::Ended => true,
            _ => false,
        }
    }

    /// Returns whether the server may speak the other transport.
    pub(super) fn may_be_other_transport(&self) -> bool {
        match self {
            Self::Refused { status: 401 | 403 | 407 | 408 | 425 | 429, .. } => false,
            Self::Refused { status, .. } => (400..500).contains(status),
            Self::ForeignContent(_) | Self::Garbage | Self::Ended => true,
            _ => false,
        }
    }

    /// Returns a hint for a caller who connects.
    pub(super) fn hint(&self, transport: McpTransport, sends_credentials: bool) -> Option<String> {
        let hint = match self {
            Self::Refused { status: 401 | 403, .. } if sends_credentials => {
                "the server does not accept the given credentials; are they still valid, and for this server?"
            }
            Self::Refused { status: 401 | 403, .. } => {
                "the server wants credentials; set the header `authorization`, such as `Bearer KEY`"
            }
            Self::Refused { status: 429, .. } => "try again later",
            Self::Refused { status: 500.., .. } => "the server's own log has the reason",
            Self::Redirect(_) => "use that address as `url` if it is the right server",
            Self::Unreachable(_) => "is the server running, and is `url` right?",
            _ if self.may_be_other_transport() && transport == McpTransport::Sse => {
                "is `url` right? if the server speaks streamable HTTP, use `transport: http`"
            }
            _ if self.may_be_other_transport() => {
                "is `url` right? most servers have their endpoint at `/mcp`"
            }
            _ => return None,
        };
        Some(hint.to_owned())
    }
}
