//! The table of what may be wrong: for each cause the facts that show it, and the failures that it explains.

use rustix::io::Errno;

use super::facts::Facts;
use super::failure::SetupFailure;
use super::finding::Reason;
use super::{kernel, machine, namespaces, state_folder};

/// How bad a cause is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Severity {
    /// Sandboxes can't be made.
    Error,
    /// They can, with less.
    Warn,
}

/// Explains a failure of every step.
pub(super) const ANY_STEP: &[&str] = &["*"];

/// One thing that may be wrong with a host.
#[derive(Clone, Copy)]
pub(super) struct Cause {
    /// What it is about: the id of its finding.
    pub subject: &'static str,
    /// Its own name.
    pub name: &'static str,
    /// How bad it is.
    pub severity: Severity,
    /// The facts alone do not show it: it takes a failure that fits.
    pub needs_failure: bool,
    /// The steps whose failure it explains.
    pub steps: &'static [&'static str],
    /// The reasons of the kernel that it explains; empty for all.
    pub errnos: &'static [Errno],
    /// What the facts say, if they show it.
    pub shows: fn(&Facts) -> Option<Reason>,
}

impl Cause {
    /// Whether a failure may come from it.
    fn fits(&self, failure: &SetupFailure) -> bool {
        let step = self.steps == ANY_STEP || self.steps.contains(&failure.step.as_str());
        let errno =
            self.errnos.is_empty() || self.errnos.iter().any(|errno| errno.raw_os_error() == failure.errno());
        step && errno
    }
}

/// Every cause. The first that fits explains a failure, so what is surer stands first.
pub(super) fn all() -> impl Iterator<Item = &'static Cause> {
    [kernel::CAUSES, state_folder::CAUSES, machine::CAUSES, namespaces::CAUSES, state_folder::LATE_CAUSES]
        .into_iter()
        .flatten()
}

/// Why a step failed on this host, if that can be said: the cause, and what it says.
pub(super) fn explain(facts: &Facts, failure: &SetupFailure) -> Option<(&'static Cause, Reason)> {
    all().filter(|cause| cause.fits(failure)).find_map(|cause| Some((cause, (cause.shows)(facts)?)))
}
