//! A step of making a sandbox that failed, as code can look at it: it is the source of the error that the caller gets.

use std::fmt;
use std::io;

use eyot::{Error, ErrorKind};

/// The step that stands for all that is done to have an image.
pub(super) const MAKE_THE_IMAGE: &str = "make the image";

/// What failed.
#[derive(Debug)]
pub(crate) struct SetupFailure {
    /// What it was for: `create sandbox`.
    pub goal: String,
    /// The step, in words: `create the namespaces`.
    pub step: String,
    /// What the step was about, for operators: a path of the host.
    pub subject: String,
    /// The kernel's reason.
    pub error: io::Error,
}

impl SetupFailure {
    /// A step of a create that failed.
    pub(crate) fn new(step: impl Into<String>, subject: impl Into<String>, error: io::Error) -> Self {
        Self { goal: "create sandbox".to_owned(), step: step.into(), subject: subject.into(), error }
    }

    /// Something else than a create that failed as a whole.
    pub(crate) fn of_goal(goal: &str, subject: impl Into<String>, error: io::Error) -> Self {
        Self { goal: goal.to_owned(), step: goal.to_owned(), subject: subject.into(), error }
    }

    /// The failure behind an error, if it is one of a set-up. What an image lacks is made in many steps, which are one
    /// here.
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

    /// The errno; 0 where the kernel gave none.
    pub(crate) fn errno(&self) -> i32 {
        self.error.raw_os_error().unwrap_or_default()
    }

    /// The kernel's reason, behind the step if that is not all there is.
    fn detail(&self) -> String {
        let reason = crate::sentence(&self.error);
        if self.step == self.goal { reason } else { format!("{}: {reason}", self.step) }
    }

    /// The error of whoever wanted the goal.
    pub(crate) fn into_error(self) -> Error {
        Error::new(ErrorKind::Setup, format!("{}: {}", self.goal, self.detail())).with_source(self)
    }

    /// The sentence of an error that it is behind, with the cause in it: `create sandbox: user namespaces are switched
    /// off (create the namespaces: no space left on device)`.
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
