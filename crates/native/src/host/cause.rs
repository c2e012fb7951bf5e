//! The table of known causes. Each has the facts that show it and the failures that it explains.

use rustix::io::Errno;

use super::facts::Facts;
use super::failure::SetupFailure;
use super::finding::Reason;
use super::{kernel, machine, namespaces, state_folder};

/// The severity of a cause.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Severity {
    /// No sandbox can be made.
    Error,
    /// Sandboxes can be made, with weaker limits or protection.
    Warn,
}

/// Marks a cause that explains a failure of any step.
pub(super) const ANY_STEP: &[&str] = &["*"];

/// One thing that may be wrong with a host.
#[derive(Clone, Copy)]
pub(super) struct Cause {
    /// The id of the finding that the cause belongs to, such as `user-namespaces`.
    pub subject: &'static str,
    /// The name of the cause, such as `max-user-namespaces`.
    pub name: &'static str,
    /// The severity.
    pub severity: Severity,
    /// The facts alone do not show this cause: a step must have failed as well.
    pub needs_failure: bool,
    /// The steps whose failure the cause explains.
    pub steps: &'static [&'static str],
    /// The error numbers that the cause explains; empty for all.
    pub errnos: &'static [Errno],
    /// Returns the sentence and the fix if the facts show this cause.
    pub shows: fn(&Facts) -> Option<Reason>,
}

impl Cause {
    /// Tells whether the cause can explain this failure, going by its step and error number.
    fn fits(&self, failure: &SetupFailure) -> bool {
        let step = self.steps == ANY_STEP || self.steps.contains(&failure.step.as_str());
        let errno =
            self.errnos.is_empty() || self.errnos.iter().any(|errno| errno.raw_os_error() == failure.errno());
        step && errno
    }
}

/// Lists every cause. The first match explains a failure, so more certain causes come first.
pub(super) fn all() -> impl Iterator<Item = &'static Cause> {
    [kernel::CAUSES, state_folder::CAUSES, machine::CAUSES, namespaces::CAUSES, state_folder::LATE_CAUSES]
        .into_iter()
        .flatten()
}

/// Finds the cause of a failed step on this host, with its sentence and fix; `None` if no known
/// cause fits.
pub(super) fn explain(facts: &Facts, failure: &SetupFailure) -> Option<(&'static Cause, Reason)> {
    all().filter(|cause| cause.fits(failure)).find_map(|cause| Some((cause, (cause.shows)(facts)?)))
}
