//! Pools of native sandboxes: one agent session's computers, over everything that is real. This program is also the process
//! that is killed: see [`killed`].

mod engine;
mod killed;
mod members;
mod ports;
mod session;
mod transfers;

use std::future::Future;
use std::time::Duration;

use libtest_mimic::{Arguments, Failed, Trial};

/// No test may hang; nothing is timed otherwise.
const HANG: Duration = Duration::from_secs(240);

fn main() {
    let mut arguments = std::env::args().skip(1);
    if arguments.next().as_deref() == Some("worker") {
        return killed::worker(arguments);
    }
    let trials =
        [members::trials(), transfers::trials(), ports::trials(), engine::trials(), killed::trials()];
    libtest_mimic::run(&Arguments::from_args(), trials.into_iter().flatten().collect()).exit();
}

/// A case as a trial, with a runtime of its own.
fn trial<F>(name: &str, case: fn() -> F) -> Trial
where
    F: Future<Output = Result<(), Failed>> + 'static,
{
    Trial::test(name, move || {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
        runtime.block_on(async { tokio::time::timeout(HANG, case()).await })?
    })
}

/// `Err` with the message unless the condition holds.
fn ensure(condition: bool, message: impl Into<String>) -> Result<(), Failed> {
    if condition { Ok(()) } else { Err(message.into().into()) }
}
