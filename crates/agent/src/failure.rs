//! Failures of what an agent is asked to do.

use std::fmt;

use eyot::ErrorKind;

use crate::budget::BudgetLimit;
use crate::event::EventError;
use crate::model::ModelError;

/// A failure of what an agent was asked to do.
#[derive(Debug)]
#[non_exhaustive]
pub enum AgentError {
    /// The caller aborted it; the reason that the caller gave.
    Aborted(String),
    /// The model said that it can't do it.
    GaveUp {
        /// The model's reason.
        reason: String,
        /// The text that it had said.
        text: String,
    },
    /// The model refused; what it said.
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
    /// The handler of a run that was taken over does not do what it did before.
    Nondeterministic(String),
    /// Everything else: the caller's mistake, or the sandbox's failure.
    Other(eyot::Error),
}

/// The result of what an agent is asked to do.
pub type AgentResult<T> = Result<T, AgentError>;

impl AgentError {
    /// The name of the kind, as events tell it.
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
