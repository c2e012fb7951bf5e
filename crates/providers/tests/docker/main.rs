//! The Docker provider over a real Engine. Where none answers, and none can be started, every test shows as ignored with
//! that reason.

mod asked;
mod check;
mod conformance;
mod engine;
mod guest;
mod killed;
mod mended;
mod own_engine;
mod proxy;
mod survival;

use std::process::ExitCode;

use libtest_mimic::{Arguments, Trial};

fn main() -> ExitCode {
    let arguments = Arguments::from_args();
    let engine = engine::TestEngine::find();
    let subjects =
        [asked::trials, guest::trials, mended::trials, survival::trials, killed::trials, conformance::trials];
    let trials: Vec<Trial> = subjects.into_iter().flat_map(|trials| trials(&engine)).collect();
    libtest_mimic::run(&arguments, trials).exit_code()
}
