//! The Docker provider over a real Engine. Where none answers, and none can be started, every test shows as ignored with
//! that reason.

mod conformance;
mod engine;

use std::process::ExitCode;

use libtest_mimic::{Arguments, Trial};

fn main() -> ExitCode {
    let arguments = Arguments::from_args();
    let engine = engine::TestEngine::find();
    let trials: Vec<Trial> = [conformance::trials(&engine)].into_iter().flatten().collect();
    libtest_mimic::run(&arguments, trials).exit_code()
}
