//! Work that blocks, in a program that is asynchronous.

use eyot::{Error, ErrorKind, Result};

/// Runs blocking work on a thread where it delays no other task.
pub(crate) async fn on_blocking_thread<T: Send + 'static>(
    work: impl FnOnce() -> Result<T> + Send + 'static,
) -> Result<T> {
    let done = tokio::task::spawn_blocking(work).await;
    done.map_err(|error| Error::new(ErrorKind::Internal, "a blocking task ended early").with_source(error))?
}

/// Runs blocking work that nobody waits for. Work that has not begun when the program ends is not done.
pub(crate) fn later(work: impl FnOnce() + Send + 'static) {
    drop(tokio::task::spawn_blocking(work));
}
