//! Failures of an agent's work.

use std::fmt;

use eyot::ErrorKind;

use crate::budget::BudgetLimit;
use crate::event::EventError;
use crate::model::ModelError;

/// A failure of an agent's work.
#[derive(Debug)]
#[non_exhaustive]
pub enum AgentError {
    /// The caller aborted the call, for this reason.
    Aborted(String),
    /// The model said that it can't complete the task.
    GaveUp {
        /// The model's reason.
        reason: String,
        /// The model's last text.
        text: String,
    },
    /// The model refused, with this text.
    Refused(String),
    /// The model failed.
    Model {
        /// The call, such as `prompt`.
        asked: String,
        /// The failure.
        source: ModelError,
    },
    /// A budget is used up.
    Budget(BudgetLimit),
    /// The handler of a resumed run made different calls than before.
    Nondeterministic(String),
    /// Another failure: a mistake of the caller, or a failure of the sandbox.
    Other(eyot::Error),
}

/// The result of an agent's work.
pub type AgentResult<T> = Result<T, AgentError>;

impl AgentError {
    /// Returns the name of the kind, as in events.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Aborted(_) => "AbortError",
            Self::GaveUp { .. } => "ResultUnavailableError",
            Self::Refused(_) => "RefusalError",
            Self::Model { .. } => "ModelError",
            Self::Budget(_) => "BudgetError",
            Self::Nondeterministic(_) => "nondeterministic",
            Self::Other(_) => "Error",
        }
    }

    pub(crate) fn to_event(&self) -> EventError {
        EventError { name: self.name().to_owned(), message: self.to_string() }
    }

    pub(crate) fn invalid(message: impl Into<String>) -> Self {
        Self::Other(eyot::Error::new(ErrorKind::Invalid, message.into()))
    }

    pub(crate) fn conflict(message: impl Into<String>) -> Self {
        Self::Other(eyot::Error::new(ErrorKind::Conflict, message.into()))
    }
}

impl fmt::Display for AgentError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Aborted(reason) if reason.is_empty() => f.write_str("The operation was aborted."),
            Self::Aborted(reason) => f.write_str(reason),
            Self::GaveUp { reason, .. } => write!(f, "The agent gave up: {reason}"),
            Self::Refused(text) if text.is_empty() => f.write_str("the model refused"),
            Self::Refused(text) => write!(f, "the model refused: {text}"),
            Self::Model { asked, source } => write!(f, "{asked} failed: {source}"),
            Self::Budget(limit) => limit.fmt(f),
            Self::Nondeterministic(message) => f.write_str(message),
            Self::Other(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for AgentError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Model { source, .. } => Some(source),
            Self::Other(error) => Some(error),
            Self::Aborted(_)
            | Self::GaveUp { .. }
            | Self::Refused(_)
            | Self::Budget(_)
            | Self::Nondeterministic(_) => None,
        }
    }
}

impl From<eyot::Error> for AgentError {
    fn from(error: eyot::Error) -> Self {
        Self::Other(error)
    }
}
