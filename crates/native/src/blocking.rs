//! Work that blocks, in a program that is asynchronous.

use eyot::{Error, ErrorKind, Result};
use tokio::sync::oneshot;

/// Runs blocking work on a thread where it delays no other task.
pub(crate) async fn on_blocking_thread<T: Send + 'static>(
    work: impl FnOnce() -> Result<T> + Send + 'static,
) -> Result<T> {
    tokio::task::spawn_blocking(work).await.map_err(ended_early)?
}

/// Runs blocking work on such a thread, which drops a part of the outcome after it has given the answer. Others wait for what that
/// part holds, so it is dropped on the same thread: they may occupy all other threads.
pub(crate) async fn on_blocking_thread_and_after<T: Send + 'static, After>(
    work: impl FnOnce() -> (Result<T>, After) + Send + 'static,
) -> Result<T> {
    let (answer, answered) = oneshot::channel();
    let task = tokio::task::spawn_blocking(move || {
        let (done, after) = work();
        if answer.send(done).is_err() {
            tracing::debug!("nobody waits for the answer of a blocking task any more");
        }
        drop(after);
    });
    match answered.await {
        Ok(done) => done,
        Err(_) => Err(task.await.map_or_else(ended_early, |()| ended_early("it gave no answer"))),
    }
}

fn ended_early(error: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Error {
    Error::new(ErrorKind::Internal, "a blocking task ended early").with_source(error)
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;
    use std::time::Duration;

    use super::*;

    struct Held(mpsc::Sender<()>);

    impl Drop for Held {
        fn drop(&mut self) {
            self.0.send(()).unwrap();
        }
    }

    #[test]
    fn what_others_wait_for_is_freed_although_they_have_every_other_thread() {
        let runtime = tokio::runtime::Builder::new_current_thread().max_blocking_threads(1).build().unwrap();
        runtime.block_on(async {
            let (free, freed) = mpsc::channel();
            let (ask, asked) = mpsc::channel();
            // It waits before the rest of the first task is dropped, and has the only thread next.
            let first = on_blocking_thread_and_after(move || {
                asked.recv_timeout(Duration::from_secs(60)).unwrap();
                (Ok(()), Held(free))
            });
            let second = on_blocking_thread(move || Ok(freed.recv_timeout(Duration::from_secs(60)).is_ok()));
            let (first, is_freed, ()) = tokio::join!(first, second, async { ask.send(()).unwrap() });
            first.unwrap();
            assert!(is_freed.unwrap());
        });
    }
}
