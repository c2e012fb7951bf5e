//! E2B's API with the vendor's own SDKs from npm and PyPI, unmodified: they are given the server's
//! address and a key. Where they can't be had the tests show as ignored, with the reason.

#[path = "../../../agent/tests/npm/mod.rs"]
mod npm;
mod pip;
mod server;

use std::process::Command;

use libtest_mimic::{Arguments, Failed, Trial};

use npm::NpmPackages;
use pip::PipPackages;

const SOURCES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/e2b_sdks/clients");
const JAVASCRIPT: &str = "sdk.mjs";
const PYTHON: &str = "sdk.py";

/// The cases of `sdk.mjs`.
const JAVASCRIPT_CASES: &[&str] = &[
    "commands_run_and_their_output_streams",
    "a_command_that_takes_too_long_is_ended",
    "files_are_written_read_and_listed",
    "a_process_runs_in_the_background_reads_input_and_is_killed",
    "a_client_connects_to_a_process_that_another_started",
    "a_terminal_is_typed_into_and_resized",
    "a_directory_is_watched",
    "sandboxes_are_listed_found_and_killed",
    "a_paused_sandbox_keeps_its_files",
    "a_server_inside_answers_at_the_host_of_its_port",
    "a_wrong_key_is_refused",
];

/// The cases of `sdk.py`.
const PYTHON_CASES: &[&str] = &[
    "commands_run_and_their_output_streams",
    "a_command_that_takes_too_long_is_ended",
    "files_are_written_read_and_listed",
    "a_process_runs_in_the_background_reads_input_and_is_killed",
    "a_terminal_is_typed_into_and_resized",
    "a_directory_is_watched",
    "sandboxes_are_listed_found_and_killed",
    "a_paused_sandbox_keeps_its_files",
    "the_asynchronous_client_works_too",
];

fn main() {
    let arguments = Arguments::from_args();
    let npm = NpmPackages::install(&arguments, "e2b-javascript", SOURCES, &[JAVASCRIPT]);
    let pip = PipPackages::install(&arguments, "e2b-python", SOURCES, &[PYTHON]);
    let javascript = JAVASCRIPT_CASES.iter().map(|case| {
        npm::trial(&format!("javascript_{case}"), &npm, move |npm| run(npm.command(JAVASCRIPT).arg(case)))
    });
    let python = PYTHON_CASES.iter().map(|case| {
        npm::trial(&format!("python_{case}"), &pip, move |pip| run(pip.command(PYTHON).arg(case)))
    });
    let trials: Vec<Trial> = javascript.chain(python).collect();
    libtest_mimic::run(&arguments, trials).exit();
}

/// Runs a program of the SDK against a server of its own, and looks that it has left no sandbox.
fn run(command: &mut Command) -> Result<(), Failed> {
    let server = server::Server::start()?;
    let output = server.around(command).output()?;
    let (out, err) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    if !output.status.success() {
        return Err(format!("{}\n{out}\n{err}", output.status).into());
    }
    server.end()
}
