//! The vendor's own SDKs from npm and PyPI, unmodified, against the stand-in that the provider `daytona` is tried with: they are
//! given the address and a key. Where they can't be had the tests show as ignored, with the reason.

#[path = "../vendor/left.rs"]
mod left;
#[path = "../../../agent/tests/npm/mod.rs"]
mod npm;
#[path = "../../../server/tests/e2b_sdks/pip.rs"]
mod pip;
#[allow(dead_code, reason = "no faults are planned here")]
#[path = "../daytona/stand_in/mod.rs"]
mod stand_in;

use std::process::Command;

use libtest_mimic::{Arguments, Failed, Trial};
use tokio::runtime::Runtime;

use npm::{Missing, NpmPackages};
use pip::PipPackages;
use stand_in::{KEY, StandIn};

const SOURCES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/daytona_sdks/clients");
const JAVASCRIPT: &str = "sdk.mjs";
const PYTHON: &str = "sdk.py";

/// The cases of `sdk.mjs`.
const JAVASCRIPT_CASES: &[&str] = &[
    "the_quickstart_runs",
    "commands_run_and_their_ends_are_told",
    "files_are_written_read_and_listed",
    "a_session_keeps_its_shell_between_commands",
    "a_terminal_is_typed_into_and_tells_its_end",
    "sandboxes_are_labelled_found_stopped_and_started",
    "a_wrong_key_is_refused",
];

/// The cases of `sdk.py`.
const PYTHON_CASES: &[&str] = &[
    "the_quickstart_runs",
    "commands_run_and_their_ends_are_told",
    "files_are_written_read_and_listed",
    "sandboxes_are_found_stopped_and_started",
    "a_wrong_key_is_refused",
];

fn main() {
    let arguments = Arguments::from_args();
    let npm = NpmPackages::install(&arguments, "daytona-javascript", SOURCES, &[JAVASCRIPT]);
    let pip = PipPackages::install(&arguments, "daytona-python", SOURCES, &[PYTHON]);
    let is_root = rustix::process::geteuid().is_root();
    let missing = || {
        Missing::NotHere(
            "the stand-in's commands are root's, and native ones only where root makes them".to_owned(),
        )
    };
    let (npm, pip) = if is_root { (npm, pip) } else { (Err(missing()), Err(missing())) };
    let javascript = JAVASCRIPT_CASES.iter().map(|case| {
        npm::trial(&format!("javascript_{case}"), &npm, move |npm| run(npm.command(JAVASCRIPT).arg(case)))
    });
    let python = PYTHON_CASES.iter().map(|case| {
        npm::trial(&format!("python_{case}"), &pip, move |pip| run(pip.command(PYTHON).arg(case)))
    });
    let trials: Vec<Trial> = javascript.chain(python).collect();
    libtest_mimic::run(&arguments, trials).exit();
}

/// Runs a program of an SDK against a stand-in of its own, and looks that it has left no sandbox.
fn run(command: &mut Command) -> Result<(), Failed> {
    let runtime = Runtime::new()?;
    let stand_in = runtime.block_on(StandIn::start(0));
    let output = command.env("DAYTONA_API_URL", &stand_in.url).env("DAYTONA_API_KEY", KEY).output()?;
    let left = stand_in.machines.all().iter().filter(|machine| !machine.is("destroying")).count();
    runtime.block_on(stand_in.end());
    if !output.status.success() {
        let (out, err) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        return Err(format!("{}\n{out}\n{err}", output.status).into());
    }
    if left == 0 { Ok(()) } else { Err(format!("{left} sandboxes are left").into()) }
}
