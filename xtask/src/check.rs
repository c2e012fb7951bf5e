//! Formatting, lints, documentation, architecture.

use crate::phases::Phases;
use crate::process::{cargo, run as run_program};
use crate::{architecture, names, source};

/// The features of the tests' build, and the one that its dependencies on `eyot-image` add: so
/// clippy and rustdoc check the same crates once.
const FEATURES: [&str; 3] = [
    "--workspace",
    "--features",
    "eyot/conformance,eyot-agent/opentelemetry,eyot-guest/client,eyot-guest/program,eyot-image/testing,eyot-providers/cloudflare,eyot-providers/daytona,eyot-providers/docker,eyot-providers/e2b,eyot-providers/kubernetes,eyot-providers/memory,eyot-providers/modal,eyot-providers/native,eyot-providers/remote",
];

/// Checks everything; with `--rules`, only the rules that need no build; with `--shrink`, shortens a list instead.
pub fn run(arguments: &[String]) -> Result<(), String> {
    if arguments.iter().any(|argument| argument == "--shrink") {
        return names::shrink(&source::all()?);
    }
    let mut phases = Phases::default();
    phases.time("architecture", architecture::check)?;
    if arguments.iter().any(|argument| argument == "--rules") {
        return Ok(());
    }
    phases.time("formatting", || {
        run_program(cargo().args(["fmt", "--all", "--check"]))?;
        run_program(cargo().args(["fmt", "--manifest-path", "examples/provider/Cargo.toml", "--check"]))
    })?;
    let mut clippy = cargo();
    clippy.arg("clippy").args(FEATURES).args(["--all-targets", "--", "-D", "warnings"]);
    phases.time("clippy", || run_program(&mut clippy))?;
    // One after the other, since the program and the library have one name, and so one folder.
    phases.time("rustdoc of the program", || document(&["--bin", "eyot"]))?;
    phases.time("rustdoc of the libraries", || document(&[]))?;
    phases.print();
    Ok(())
}

/// Writes the documentation of these targets, or of all libraries; a broken link is an error.
fn document(targets: &[&str]) -> Result<(), String> {
    let mut rustdoc = cargo();
    rustdoc.arg("doc").args(FEATURES).arg("--no-deps").args(targets).env("RUSTDOCFLAGS", "-D warnings");
    run_program(&mut rustdoc)
}
