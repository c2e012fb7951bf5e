//! Helpers that the test programs of this crate share. They turn a case into a trial, and a
//! condition into a failure with a message.

use std::future::Future;
use std::time::Duration;

use libtest_mimic::{Failed, Trial};

/// The limit for one test, so that none hangs. Tests depend on no other time.
pub const HANG: Duration = Duration::from_secs(240);

/// Turns a case into a trial with a runtime of its own.
pub fn trial<F>(name: &str, case: fn() -> F) -> Trial
where
    F: Future<Output = Result<(), Failed>> + 'static,
{
    Trial::test(name, move || {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
        runtime.block_on(async { tokio::time::timeout(HANG, case()).await })?
    })
}

/// Ignores a trial for ordinary users, for this reason.
#[allow(dead_code, reason = "not every test program has what only root can do")]
pub fn of_root(trial: Trial, reason: &str) -> Trial {
    if rustix::process::geteuid().is_root() { trial } else { trial.with_kind(reason).with_ignored_flag(true) }
}

/// Fails with the message unless the condition holds.
pub fn ensure(condition: bool, message: impl std::fmt::Display) -> Result<(), Failed> {
    if condition { Ok(()) } else { Err(message.to_string().into()) }
}
