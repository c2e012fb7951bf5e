//! The Docker provider over a real Engine. If none answers and none can be started, every test
//! shows as ignored with that reason.

mod asked;
mod check;
mod conformance;
mod engine;
mod foreign;
mod guest;
mod killed;
mod mended;
mod own_engine;
mod proxy;
mod raw;
mod replaced;
mod snapshots;
mod survival;
mod threats;

use std::process::ExitCode;
use std::sync::Arc;

use eyot::conformance::ReusedSandboxes;
use libtest_mimic::{Arguments, Trial};

use threats::Threats;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().collect();
    match arguments.get(1).map(String::as_str) {
        // Inside a container, as the attacker.
        Some("probe") => eyot_probes::attack(&arguments[2..]),
        // A process that is killed.
        Some(snapshots::WORK) => engine::block_on(snapshots::work(&arguments[2..])),
        _ => run(),
    }
}

fn run() -> ExitCode {
    let arguments = Arguments::from_args();
    let engine = engine::TestEngine::find();
    let subjects = [
        asked::trials,
        foreign::trials,
        guest::trials,
        mended::trials,
        survival::trials,
        killed::trials,
        snapshots::trials,
        replaced::trials,
    ];
    let mut trials: Vec<Trial> = subjects.into_iter().flat_map(|trials| trials(&engine)).collect();
    let reused = Arc::new(ReusedSandboxes::default());
    trials.extend(snapshots::of_soak(&engine));
    trials.extend(conformance::trials(&engine, &reused));
    let threats = Threats::new();
    trials.extend(threats.trials(&engine));
    let conclusion = libtest_mimic::run(&arguments, trials);
    if let Err(failed) = threats.clear() {
        eprintln!("what the threats made is left: {}", failed.message().unwrap_or("no word"));
    }
    if let Err(left) = engine::block_on(reused.destroy()) {
        eprintln!("a sandbox of the conformance suite is left: {left}");
    }
    conclusion.exit_code()
}
