//! The toolsets `pool` and `checkpoints` over native sandboxes, called as a model calls it.

mod checkpoints;
mod files;
#[path = "../harness/mod.rs"]
mod harness;
mod images;
mod sandboxes;
mod session;
mod shell;
mod workflow;

use libtest_mimic::{Arguments, Failed};

use harness::{ensure, trial};

fn main() {
    let trials = [
        workflow::trials(),
        shell::trials(),
        files::trials(),
        images::trials(),
        sandboxes::trials(),
        checkpoints::trials(),
    ];
    libtest_mimic::run(&Arguments::from_args(), trials.into_iter().flatten().collect()).exit();
}

/// Fails, with both values, unless they are equal.
fn ensure_eq<T: PartialEq + std::fmt::Debug>(is: T, should: T) -> Result<(), Failed> {
    ensure(is == should, format!("is {is:?}, should be {should:?}"))
}
