//! The work that agents really do, on every provider and from one image: each task must have the
//! same transcript on all of them, and the expected one. Without an Engine, or without an image, a
//! test shows as ignored with that reason.

mod building;
mod files;
mod ground;
mod packages;
mod processes;
mod servers;
mod settings;
mod streams;
mod table;
mod transcript;
mod workflow;

use std::process::ExitCode;

use libtest_mimic::Arguments;

fn main() -> ExitCode {
    let arguments = Arguments::from_args();
    let ground = ground::Ground::find();
    let trials = table::trials(&ground).into_iter().chain(workflow::trials(&ground));
    libtest_mimic::run(&arguments, trials.collect()).exit_code()
}
