//! The results of cases, and waits that end.

use std::fmt;
use std::time::Duration;

use eyot::Error;
use libtest_mimic::Failed;

/// The result of a case.
pub type Tried = Result<(), Failed>;

pub fn ensure(holds: bool, otherwise: impl fmt::Display) -> Tried {
    if holds { Ok(()) } else { Err(otherwise.to_string().into()) }
}

/// Returns the error that was due.
pub fn failed<T>(result: Result<T, Error>) -> Result<Error, Failed> {
    result.err().ok_or_else(|| "it succeeded; an error was due".into())
}

/// Waits for what may take this long.
pub async fn within<T>(seconds: u64, work: impl Future<Output = T>) -> Result<T, Failed> {
    let late = |_| Failed::from(format!("it took longer than {seconds} s"));
    tokio::time::timeout(Duration::from_secs(seconds), work).await.map_err(late)
}
