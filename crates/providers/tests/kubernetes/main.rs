//! The conformance suite and the faults of a cluster over a stand-in of an API server, whose Pods are processes
//! of this machine with the real guest. Making their namespaces takes root; without it everything shows as ignored.

mod faults;
mod stand_in;

use std::sync::{Arc, LazyLock};

use eyot::SandboxProvider;
use eyot::conformance::{Case, Fixture, Verdict, cases};
use libtest_mimic::{Arguments, Completion, Trial};
use stand_in::StandIn;
use tokio::runtime::Runtime;

/// The runtime of every case: connections that are kept belong to it.
static RUNTIME: LazyLock<Runtime> = LazyLock::new(|| Runtime::new().expect("a runtime"));

/// Runs a case.
pub fn block_on<T>(case: impl Future<Output = T>) -> T {
    RUNTIME.block_on(case)
}

struct OverPods(Arc<dyn SandboxProvider>);

impl Fixture for OverPods {
    fn provider(&self) -> Arc<dyn SandboxProvider> {
        self.0.clone()
    }

    fn rounds(&self) -> usize {
        2
    }
}

fn main() {
    let arguments = Arguments::from_args();
    if !rustix::process::geteuid().is_root() {
        let reason = "only root can make the namespaces of Pods".to_owned();
        let ignored = Trial::test("conformance", || Ok(())).with_kind(reason).with_ignored_flag(true);
        libtest_mimic::run(&arguments, vec![ignored]).exit();
    }
    let cluster = StandIn::new();
    let fixture: Arc<dyn Fixture> = Arc::new(OverPods(cluster.provider()));
    let trial = |case: Case| {
        let fixture = Arc::clone(&fixture);
        Trial::ignorable_test(format!("stand_in::{}", case.name), move || {
            match block_on(case.attempt(fixture)) {
                Ok(Verdict::Holds) => Ok(Completion::Completed),
                Ok(Verdict::NotHere(reason)) => Ok(Completion::ignored_with(reason)),
                Err(broken) => Err(broken.into()),
            }
        })
    };
    let mut trials: Vec<Trial> = cases().into_iter().map(trial).collect();
    trials.extend(faults::trials());
    let done = libtest_mimic::run(&arguments, trials);
    drop(cluster);
    done.exit();
}
