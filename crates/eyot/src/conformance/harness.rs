//! Running the cases as tests: each by its name, in threads as any Rust test, ignored with the reason where it can't
//! be tried.

use std::collections::BTreeMap;
use std::process::ExitCode;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use libtest_mimic::{Arguments, Completion, Failed, Trial};
use tokio::runtime::Runtime;

use super::check::slowness;
use super::disposable::settle;
use super::{Case, Fixture, Verdict, cases};

/// The time that one case may take. Nothing here waits for longer than seconds, so this is a hang.
const HANG: Duration = Duration::from_secs(120);

/// Runs every case over a fixture, with the arguments of the process. See [`crate::conformance_tests`].
pub fn main(fixture: impl Fixture) -> ExitCode {
    let arguments = Arguments::from_args();
    let runtime = match tokio::runtime::Builder::new_multi_thread().enable_all().build() {
        Ok(runtime) => Arc::new(runtime),
        Err(error) => {
            eprintln!("the tests have no runtime: {error}");
            return ExitCode::FAILURE;
        }
    };
    let fixture: Arc<dyn Fixture> = Arc::new(fixture);
    let unknown = |name: &&str| cases().iter().all(|case| case.name != *name);
    if let Some(name) = fixture.exceptions().iter().map(|(name, _)| *name).find(unknown) {
        eprintln!("there is no rule `{name}` to make an exception of");
        return ExitCode::FAILURE;
    }
    let ignored = Ignored::default();
    let trial = |case| trial(case, runtime.clone(), fixture.clone(), ignored.clone());
    let trials = cases().into_iter().map(trial).collect();
    let conclusion = libtest_mimic::run(&arguments, trials);
    runtime.block_on(settle());
    ignored.print();
    conclusion.exit_code()
}

fn trial(case: Case, runtime: Arc<Runtime>, fixture: Arc<dyn Fixture>, ignored: Ignored) -> Trial {
    Trial::ignorable_test(case.name, move || runtime.block_on(attempt(case, fixture, ignored)))
}

async fn attempt(case: Case, fixture: Arc<dyn Fixture>, ignored: Ignored) -> Result<Completion, Failed> {
    match case.attempt(fixture).await {
        Ok(Verdict::Holds) => Ok(Completion::Completed),
        Ok(Verdict::NotHere(reason)) => {
            ignored.count(&reason);
            Ok(Completion::ignored_with(reason))
        }
        Err(broken) => Err(broken.into()),
    }
}

/// The reasons why cases were not tried, each with how many of them.
#[derive(Clone, Default)]
struct Ignored(Arc<Mutex<BTreeMap<String, usize>>>);

impl Ignored {
    fn lock(&self) -> MutexGuard<'_, BTreeMap<String, usize>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn count(&self, reason: &str) {
        *self.lock().entry(reason.to_owned()).or_default() += 1;
    }

    /// Says at the end of the run what a reader would have to count.
    fn print(&self) {
        let counts = self.lock();
        let mut counts: Vec<_> = counts.iter().collect();
        counts.sort_by_key(|(_, count)| std::cmp::Reverse(**count));
        for (reason, count) in counts {
            eprintln!("ignored {count}: {reason}");
        }
    }
}

impl Case {
    /// Tries it, if the provider can do what it needs, for no longer than two minutes on an ordinary machine.
    ///
    /// # Errors
    /// What did not hold, in words.
    pub async fn attempt(self, fixture: Arc<dyn Fixture>) -> Result<Verdict, String> {
        let provider = fixture.provider();
        if let Some(missing) = self.needs.iter().find(|need| !provider.capabilities().has(**need)) {
            return Ok(Verdict::NotHere(format!("{} has no capability {missing:?}", provider.name())));
        }
        if let Some((_, reason)) = fixture.exceptions().iter().find(|(name, _)| *name == self.name) {
            return Ok(Verdict::NotHere((*reason).to_owned()));
        }
        let patience = HANG * slowness();
        let late = |_| Err(format!("it hangs: no answer within {} seconds", patience.as_secs()));
        tokio::time::timeout(patience, (self.run)(fixture)).await.unwrap_or_else(late)
    }
}
