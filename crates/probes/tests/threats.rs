//! Every threat as a test, as root or as an ordinary user. `cargo xtask soak threats` runs them at
//! full size.

use std::process::ExitCode;
use std::sync::Arc;

use eyot_probes::{Case, Verdict, World};
use libtest_mimic::{Arguments, Completion, Failed, Trial};
use tokio::runtime::Runtime;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().collect();
    match arguments.get(1).map(String::as_str) {
        Some("probe") => eyot_probes::attack(&arguments[2..]),
        _ => run(),
    }
}

fn run() -> ExitCode {
    let arguments = Arguments::from_args();
    if std::env::var_os("EYOT_SLOW").is_some_and(|value| value == "1") {
        eyot_probes::want_slow();
    }
    let (Ok(runtime), Ok(world)) = (Runtime::new(), World::new(&std::env::temp_dir())) else {
        eprintln!("the tests can't be prepared");
        return ExitCode::FAILURE;
    };
    let (runtime, world) = (Arc::new(runtime), Arc::new(world));
    let trials = eyot_probes::cases().into_iter().map(|case| trial(case, &runtime, &world)).collect();
    let conclusion = libtest_mimic::run(&arguments, trials);
    if let Err(error) = runtime.block_on(world.clear()) {
        eprintln!("a failed case's sandbox is left: {error}");
    }
    conclusion.exit_code()
}

fn trial(case: Case, runtime: &Arc<Runtime>, world: &Arc<World>) -> Trial {
    let (runtime, world) = (runtime.clone(), world.clone());
    Trial::ignorable_test(case.name, move || completion(runtime.block_on(case.attempt(world))))
}

fn completion(came_to: Result<Verdict, String>) -> Result<Completion, Failed> {
    match came_to {
        Ok(Verdict::Holds) => Ok(Completion::Completed),
        Ok(Verdict::NotHere(reason) | Verdict::NotEnforced(reason)) => Ok(Completion::ignored_with(reason)),
        Err(broken) => Err(broken.into()),
    }
}
