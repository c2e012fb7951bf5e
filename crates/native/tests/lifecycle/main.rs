//! Sandboxes over time: they outlive their maker, their deadlines fire by themselves, and nothing is left behind,
//! whoever is killed when. This program is also the maker that is killed: see [`maker`].

mod deadlines;
mod disks;
mod groups;
mod images;
mod maker;
mod many;
mod outliving;
mod sleeping;
mod state;
mod workspaces;

use std::future::Future;
use std::time::Duration;

use libtest_mimic::{Arguments, Failed, Trial};

/// No test may hang; nothing is timed otherwise.
const HANG: Duration = Duration::from_secs(120);

fn main() {
    let mut arguments = std::env::args().skip(1);
    if arguments.next().as_deref() == Some("maker") {
        return maker::main(arguments);
    }
    let trials = [
        groups::trials(),
        disks::trials(),
        outliving::trials(),
        sleeping::trials(),
        deadlines::trials(),
        many::trials(),
        workspaces::trials(),
        images::trials(),
    ];
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
