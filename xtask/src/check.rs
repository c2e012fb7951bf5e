//! Formatting, lints, documentation, architecture.

use crate::architecture;
use crate::process::{cargo, run as run_program};

const FEATURES: [&str; 3] = [
    "--workspace",
    "--features",
    "eyot/conformance,eyot-guest/client,eyot-guest/program,eyot-providers/docker,eyot-providers/remote",
];

/// Checks everything; with `--rules`, only the rules that need no build.
pub fn run(arguments: &[String]) -> Result<(), String> {
    architecture::check()?;
    if arguments.iter().any(|argument| argument == "--rules") {
        return Ok(());
    }
    run_program(cargo().args(["fmt", "--all", "--check"]))?;
    run_program(cargo().arg("clippy").args(FEATURES).args(["--all-targets", "--", "-D", "warnings"]))?;
    run_program(cargo().arg("doc").args(FEATURES).arg("--no-deps").env("RUSTDOCFLAGS", "-D warnings"))
}
