//! The conformance suite over E2B's API: as this repository's server speaks it, with native sandboxes, and as the
//! vendor's own does. The latter needs E2B_API_KEY; without it its rules show as ignored.

mod faults;
mod ground;

use std::sync::Arc;

use eyot::SandboxProvider;
use eyot::conformance::{Case, Fixture, Verdict, cases};
use eyot_providers::e2b::{E2bOptions, E2bProvider, EXCEPTIONS};
use libtest_mimic::{Arguments, Completion, Trial};

struct OverE2b {
    provider: Arc<E2bProvider>,
    /// Cases go round less often where each call crosses the internet.
    rounds: usize,
}

impl Fixture for OverE2b {
    fn provider(&self) -> Arc<dyn SandboxProvider> {
        self.provider.clone()
    }

    fn exceptions(&self) -> &'static [(&'static str, &'static str)] {
        EXCEPTIONS
    }

    fn rounds(&self) -> usize {
        self.rounds
    }
}

fn main() {
    let arguments = Arguments::from_args();
    if !rustix::process::geteuid().is_root() {
        let reason = "E2B's sandboxes have a root, and native ones only where root makes them".to_owned();
        let ignored =
            Trial::test("stand_in::conformance", || Ok(())).with_kind(reason).with_ignored_flag(true);
        let trials = vendor().into_iter().chain([ignored]).collect();
        libtest_mimic::run(&arguments, trials).exit();
    }
    let ground = ground::Ground::new();
    let stand_in = Arc::new(OverE2b { provider: ground.provider(), rounds: 2 });
    let mut trials = over("stand_in", stand_in);
    trials.extend(vendor());
    trials.extend(faults::trials());
    let done = libtest_mimic::run(&arguments, trials);
    drop(ground);
    done.exit();
}

/// The rules over the vendor's own service.
fn vendor() -> Vec<Trial> {
    if std::env::var_os("E2B_API_KEY").is_none() {
        let reason = "E2B_API_KEY is not set".to_owned();
        return vec![Trial::test("vendor::conformance", || Ok(())).with_kind(reason).with_ignored_flag(true)];
    }
    let notes = tempfile::tempdir().expect("a folder for notes");
    let owner = format!("eyot-tests-{}", std::process::id());
    let options = E2bOptions { owner, ..E2bOptions::from_environment(notes.path()) };
    let provider = E2bProvider::new(options).expect("a provider");
    over("vendor", Arc::new(OverE2b { provider, rounds: 1 }))
}

fn over(name: &str, fixture: Arc<dyn Fixture>) -> Vec<Trial> {
    let trial = |case: Case| {
        let fixture = Arc::clone(&fixture);
        Trial::ignorable_test(format!("{name}::{}", case.name), move || {
            match ground::block_on(case.attempt(fixture)) {
                Ok(Verdict::Holds) => Ok(Completion::Completed),
                Ok(Verdict::NotHere(reason)) => Ok(Completion::ignored_with(reason)),
                Err(broken) => Err(broken.into()),
            }
        })
    };
    cases().into_iter().map(trial).collect()
}
