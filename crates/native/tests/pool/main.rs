//! Pools of native sandboxes: the computers of one agent session, with nothing replaced by a
//! stand-in. This program is also the process that is killed: see [`killed`].

mod branches;
mod copies;
mod engine;
#[path = "../harness/mod.rs"]
mod harness;
mod killed;
mod killed_branches;
mod members;
mod ports;
mod session;
mod transfers;

use libtest_mimic::Arguments;

use harness::{ensure, trial};

fn main() {
    let mut arguments = std::env::args().skip(1);
    if arguments.next().as_deref() == Some("worker") {
        return killed::worker(arguments);
    }
    let trials = [
        members::trials(),
        transfers::trials(),
        ports::trials(),
        engine::trials(),
        branches::trials(),
        copies::trials(),
        killed::trials(),
        killed_branches::trials(),
    ];
    libtest_mimic::run(&Arguments::from_args(), trials.into_iter().flatten().collect()).exit();
}
