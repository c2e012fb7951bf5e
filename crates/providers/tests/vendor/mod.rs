//! The conformance suite over sandboxes of a vendor: over a stand-in with native sandboxes, and over the vendor's own service.

use std::sync::{Arc, LazyLock};

use eyot::SandboxProvider;
use eyot::conformance::{Case, Fixture, Verdict, cases};
use libtest_mimic::{Completion, Trial};
use tokio::runtime::Runtime;

/// The runtime of every case: connections that are kept belong to it.
static RUNTIME: LazyLock<Runtime> = LazyLock::new(|| Runtime::new().expect("a runtime"));

/// Runs a case.
pub fn block_on<T>(case: impl Future<Output = T>) -> T {
    RUNTIME.block_on(case)
}

/// A vendor's provider as a fixture.
pub struct OverVendor {
    pub provider: Arc<dyn SandboxProvider>,
    pub exceptions: &'static [(&'static str, &'static str)],
    /// Cases go round less often where each call crosses the internet.
    pub rounds: usize,
}

impl Fixture for OverVendor {
    fn provider(&self) -> Arc<dyn SandboxProvider> {
        Arc::clone(&self.provider)
    }

    fn exceptions(&self) -> &'static [(&'static str, &'static str)] {
        self.exceptions
    }

    fn rounds(&self) -> usize {
        self.rounds
    }
}

/// Returns the rules over a fixture.
pub fn over(name: &str, vendor: impl Fixture) -> Vec<Trial> {
    let vendor: Arc<dyn Fixture> = Arc::new(vendor);
    let trial = |case: Case| {
        let vendor = Arc::clone(&vendor);
        Trial::ignorable_test(format!("{name}::{}", case.name), move || {
            match block_on(case.attempt(vendor)) {
                Ok(Verdict::Holds) => Ok(Completion::Completed),
                Ok(Verdict::NotHere(reason)) => Ok(Completion::ignored_with(reason)),
                Err(broken) => Err(broken.into()),
            }
        })
    };
    cases().into_iter().map(trial).collect()
}

/// Returns the suite as ignored, with the reason.
pub fn ignored(name: &str, reason: &str) -> Trial {
    Trial::test(format!("{name}::conformance"), || Ok(())).with_kind(reason).with_ignored_flag(true)
}
