//! The early end of a program's run.

/// The early end of a run.
#[derive(Debug)]
pub(super) enum Ending {
    /// The program says why, behind its name.
    Refused { reason: String, status: Option<i32>, has_hint: bool },
    /// The shell ends it: its output is closed, or its command ends.
    Shell(bashkit::Error),
}

impl Ending {
    /// A refusal of arguments, with the hint at `--help`.
    pub(super) fn usage(reason: impl Into<String>) -> Self {
        Self::Refused { reason: reason.into(), status: None, has_hint: true }
    }

    /// A refusal with the usual status.
    pub(super) fn refused(reason: impl Into<String>) -> Self {
        Self::Refused { reason: reason.into(), status: None, has_hint: false }
    }

    /// A refusal with a status of its own.
    pub(super) fn with_status(reason: impl Into<String>, status: i32) -> Self {
        Self::Refused { reason: reason.into(), status: Some(status), has_hint: false }
    }
}

impl From<bashkit::Error> for Ending {
    fn from(error: bashkit::Error) -> Self {
        Self::Shell(error)
    }
}
