//! The toolset `pool` over native sandboxes, called as a model calls it.

mod files;
mod images;
mod sandboxes;
mod session;
mod shell;
mod workflow;

use std::future::Future;
use std::time::Duration;

use libtest_mimic::{Arguments, Failed, Trial};

/// No test may hang; nothing is timed otherwise.
const HANG: Duration = Duration::from_secs(240);

fn main() {
    let trials =
        [workflow::trials(), shell::trials(), files::trials(), images::trials(), sandboxes::trials()];
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
fn ensure(condition: bool, message: impl std::fmt::Display) -> Result<(), Failed> {
    if condition { Ok(()) } else { Err(message.to_string().into()) }
}

/// `Err` with both unless they are equal.
fn ensure_eq<T: PartialEq + std::fmt::Debug>(is: T, should: T) -> Result<(), Failed> {
    ensure(is == should, format!("is {is:?}, should be {should:?}"))
}
