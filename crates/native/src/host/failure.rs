//! A failed step of a set-up, in a form that code can look at. It is the source of the error that
//! the caller gets.

use std::fmt;
use std::io;

use eyot::internal::system_reason;
use eyot::{Error, ErrorKind};

/// The step that stands for all the work of providing an image.
pub(super) const MAKE_THE_IMAGE: &str = "make the image";

/// A failed step, with its operation and the kernel's reason.
#[derive(Debug)]
pub(crate) struct SetupFailure {
    /// The operation that failed, such as `create sandbox`.
    pub goal: String,
    /// The step of it, in words, such as `create the namespaces`.
    pub step: String,
    /// The path on the host that the step worked on, for operators.
    pub subject: String,
    /// The kernel's reason.
    pub error: io::Error,
}

impl SetupFailure {
    /// A failed step of a create.
    pub(crate) fn new(step: impl Into<String>, subject: impl Into<String>, error: io::Error) -> Self {
        Self { goal: "create sandbox".to_owned(), step: step.into(), subject: subject.into(), error }
    }

    /// An operation, other than a create, that failed as a whole.
    pub(crate) fn of_goal(goal: &str, subject: impl Into<String>, error: io::Error) -> Self {
        Self { goal: goal.to_owned(), step: goal.to_owned(), subject: subject.into(), error }
    }

    /// Finds the failed step behind an error of a set-up. Providing an image takes many steps,
    /// which count as one here.
    pub(crate) fn of(error: &Error) -> Option<Self> {
        let mut source = std::error::Error::source(error);
        while let Some(cause) = source {
            if let Some(failure) = cause.downcast_ref::<Self>() {
                return Some(failure.copy());
            }
            let reason = cause.downcast_ref::<io::Error>().and_then(io::Error::raw_os_error);
            if let Some(errno) = reason.filter(|_| error.kind() == ErrorKind::Setup) {
                return Some(Self::new(MAKE_THE_IMAGE, "", io::Error::from_raw_os_error(errno)));
            }
            source = cause.source();
        }
        None
    }

    fn copy(&self) -> Self {
        let error = io::Error::from_raw_os_error(self.errno());
        Self { goal: self.goal.clone(), step: self.step.clone(), subject: self.subject.clone(), error }
    }

    /// The error number; 0 if the kernel gave none.
    pub(crate) fn errno(&self) -> i32 {
        self.error.raw_os_error().unwrap_or_default()
    }

    /// Names the step, if it is not the operation itself, and the kernel's reason.
    fn detail(&self) -> String {
        let reason = system_reason(&self.error);
        if self.step == self.goal { reason } else { format!("{}: {reason}", self.step) }
    }

    /// Makes the error that the caller of the operation gets.
    pub(crate) fn into_error(self) -> Error {
        Error::new(ErrorKind::Setup, format!("{}: {}", self.goal, self.detail())).with_source(self)
    }

    /// Writes the cause into the sentence of an error that comes from this failure: `create
    /// sandbox: user namespaces are switched off (create the namespaces: no space left on device)`.
    pub(super) fn explained(&self, error: &Error, why: &str) -> String {
        let text = error.to_string();
        let detail = text.strip_prefix(&self.goal).and_then(|rest| rest.strip_prefix(": "));
        format!("{}: {why} ({})", self.goal, detail.unwrap_or(&text))
    }
}

impl fmt::Display for SetupFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.subject.is_empty() {
            write!(f, "{}: {}", self.step, self.error)
        } else {
            write!(f, "{}: {}: {}", self.step, self.subject, self.error)
        }
    }
}

impl std::error::Error for SetupFailure {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        Some(&self.error)
    }
}
