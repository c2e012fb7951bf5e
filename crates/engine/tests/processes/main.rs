//! Several processes on one event log and one store, some of them killed in the middle of it. The other processes are
//! this program, started again in a role.
#![allow(clippy::unwrap_used, reason = "a test's own plumbing fails the test")]

mod events;
mod role;
mod store;

use libtest_mimic::{Arguments, Trial};

fn main() {
    if role::played() {
        return;
    }
    let trials: Vec<Trial> = events::trials().into_iter().chain(store::trials()).collect();
    libtest_mimic::run(&Arguments::from_args(), trials).exit();
}
