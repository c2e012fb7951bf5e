//! Work that blocks, in a program that is asynchronous.

use eyot::{Error, ErrorKind, Result};
use tokio::sync::oneshot;

/// Runs blocking work on a thread where it delays no other task.
pub(crate) async fn on_blocking_thread<T: Send + 'static>(
    work: impl FnOnce() -> Result<T> + Send + 'static,
) -> Result<T> {
    let done = tokio::task::spawn_blocking(work).await;
    done.map_err(|error| Error::new(ErrorKind::Internal, "a blocking task ended early").with_source(error))?
}

/// Runs blocking work on such a thread, which drops a part of the outcome after it has given the answer. Others wait for what that
/// part holds, so it is dropped on the same thread: they may occupy all other threads.
pub(crate) async fn on_blocking_thread_and_after<T: Send + 'static, After>(
    work: impl FnOnce() -> (Result<T>, After) + Send + 'static,
) -> Result<T> {
    let (answer, answered) = oneshot::channel();
    drop(tokio::task::spawn_blocking(move || {
        let (done, after) = work();
        // Whoever asked may have gone.
        drop(answer.send(done));
        drop(after);
    }));
    let ended = |_| Error::new(ErrorKind::Internal, "a blocking task ended early");
    answered.await.map_err(ended)?
}
