//! One finding about the host.

use serde::Serialize;

/// The status of a finding.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Status {
    /// Everything is as it should be.
    Ok,
    /// Worth knowing, but not a problem.
    Info,
    /// Sandboxes can be made, but something about them is weaker, or will be.
    Warn,
    /// Sandboxes can't be made.
    Error,
}

/// A finding about one subject.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// The subject, such as `user-namespaces`. Several findings may share one.
    pub id: &'static str,
    /// The name of the known cause, such as `max-user-namespaces`; `None` when nothing is wrong.
    pub cause: Option<&'static str>,
    /// The status.
    pub status: Status,
    /// The state of the host, or the reason for a failure: one lower-case sentence without a host
    /// path.
    pub why: String,
    /// The command that fixes it, ready to run.
    pub fix: Option<String>,
}

/// The reason why something does not work, and the command that fixes it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Reason {
    /// The reason: one lower-case sentence without a host path.
    pub why: String,
    /// The command.
    pub fix: Option<String>,
}

impl Reason {
    /// Joins a reason and the command that fixes it.
    pub(crate) fn new(why: impl Into<String>, fix: impl Into<String>) -> Self {
        Self { why: why.into(), fix: Some(fix.into()) }
    }
}
