//! One thing that was found out about the host.

use serde::Serialize;

/// How it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Status {
    /// As it should be.
    Ok,
    /// Worth knowing; nothing is amiss.
    Info,
    /// Sandboxes can be made; something about them is weaker, or will be.
    Warn,
    /// Sandboxes can't be made.
    Error,
}

/// What was found out about one subject.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// The subject, such as `user-namespaces`. Several findings may share one.
    pub id: &'static str,
    /// Which of the known causes this is, such as `max-user-namespaces`; `None` when nothing is amiss.
    pub cause: Option<&'static str>,
    /// How it is.
    pub status: Status,
    /// What the host does, or why it does not: one lower-case sentence without a host path.
    pub why: String,
    /// The command that mends it, to be run as it stands.
    pub fix: Option<String>,
}

/// Why something does not work, and what mends it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Reason {
    /// One lower-case sentence without a host path.
    pub why: String,
    /// One command.
    pub fix: Option<String>,
}

impl Reason {
    /// A reason with the command that mends it.
    pub(crate) fn new(why: impl Into<String>, fix: impl Into<String>) -> Self {
        Self { why: why.into(), fix: Some(fix.into()) }
    }
}
