//! The vendor's own client from PyPI, unmodified, against the stand-in that the provider `modal` is tried with: it is given the
//! address and a token. Where it can't be had the tests show as ignored, with the reason.

#[path = "../vendor/left.rs"]
mod left;
#[allow(dead_code, reason = "nothing is installed with npm here")]
#[path = "../../../agent/tests/npm/mod.rs"]
mod npm;
#[path = "../../../server/tests/e2b_sdks/pip.rs"]
mod pip;
#[allow(dead_code, reason = "no faults are planned here")]
#[path = "../modal/stand_in/mod.rs"]
mod stand_in;

use eyot::SandboxProvider;
use libtest_mimic::{Arguments, Failed, Trial};
use tokio::runtime::Runtime;

use npm::Missing;
use pip::PipPackages;
use stand_in::{StandIn, TOKEN_ID, TOKEN_SECRET};

const SOURCES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/modal_sdk/clients");
const PYTHON: &str = "sdk.py";

/// The cases of `sdk.py`.
const CASES: &[&str] = &[
    "the_quickstart_runs",
    "output_and_exit_codes_are_told",
    "input_is_read",
    "a_long_output_is_whole",
    "a_command_that_takes_too_long_is_ended",
    "sandboxes_are_listed_found_and_ended",
    "a_name_is_taken_once",
    "a_sandbox_ends_with_its_first_process",
    "a_wrong_token_is_refused",
];

fn main() {
    let arguments = Arguments::from_args();
    let is_root = rustix::process::geteuid().is_root();
    let missing = || {
        Missing::NotHere(
            "the stand-in's commands are root's, and native ones only where root makes them".to_owned(),
        )
    };
    let pip = PipPackages::install(&arguments, "modal-python", SOURCES, &[PYTHON]);
    let pip = if is_root { pip } else { Err(missing()) };
    let trials: Vec<Trial> =
        CASES.iter().map(|case| npm::trial(case, &pip, move |pip| run(pip, case))).collect();
    libtest_mimic::run(&arguments, trials).exit();
}

/// Runs a case against a stand-in of its own, and looks that it has left no sandbox.
fn run(pip: &PipPackages, case: &str) -> Result<(), Failed> {
    let runtime = Runtime::new()?;
    let stand_in = runtime.block_on(StandIn::start(0));
    let mut command = pip.command(PYTHON);
    command.arg(case).env("MODAL_SERVER_URL", &stand_in.url);
    command.env("MODAL_TOKEN_ID", TOKEN_ID).env("MODAL_TOKEN_SECRET", TOKEN_SECRET);
    let output = command.output()?;
    let left = runtime.block_on(async {
        let left = stand_in.native.list().await;
        stand_in.end().await;
        left
    })?;
    if !output.status.success() {
        let (out, err) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        return Err(format!("{}\n{out}\n{err}", output.status).into());
    }
    if left.is_empty() { Ok(()) } else { Err(format!("{} sandboxes are left", left.len()).into()) }
}
