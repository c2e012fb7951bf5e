//! Blocking work, from async code.

use std::sync::Arc;

use eyot::{Error, ErrorKind, Result};
use tokio::sync::Semaphore;

/// Runs blocking work on a thread that may block. Once begun it is carried out, even if the caller
/// stops waiting.
pub(crate) async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T> + Send + 'static,
) -> Result<T> {
    let done = tokio::task::spawn_blocking(work).await;
    done.map_err(|error| Error::new(ErrorKind::Internal, "a blocking task ended early").with_source(error))?
}

/// The turns of those who use one thing that only so many of them can use at a time, such as the
/// connection to a store. Who waits for a turn holds no thread meanwhile.
pub(crate) struct Turns(Arc<Semaphore>);

impl Turns {
    pub(crate) fn new(at_once: usize) -> Self {
        Self(Arc::new(Semaphore::new(at_once)))
    }

    /// Runs blocking work as [`blocking`] does, once it is its turn.
    pub(crate) async fn blocking<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> Result<T> + Send + 'static,
    ) -> Result<T> {
        // It is never closed; without a turn the work would only wait on its thread.
        let turn = Arc::clone(&self.0).acquire_owned().await;
        // The work keeps its turn until it is done, even if the caller stops waiting.
        blocking(move || {
            let done = work();
            drop(turn);
            done
        })
        .await
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;
    use std::sync::mpsc::channel;
    use std::time::Duration;

    use super::*;

    #[test]
    fn who_waits_for_a_turn_holds_no_thread() {
        let two_threads = tokio::runtime::Builder::new_current_thread()
            .enable_time()
            .max_blocking_threads(2)
            .build()
            .unwrap();
        two_threads.block_on(async {
            let (turns, connection) = (Arc::new(Turns::new(1)), Arc::new(Mutex::new(0)));
            let (begun, has_begun) = channel();
            let (end, ended) = channel::<()>();
            let (of_first, its_connection) = (Arc::clone(&turns), Arc::clone(&connection));
            let first = tokio::spawn(async move {
                let work = move || {
                    let mut used = its_connection.lock().unwrap();
                    begun.send(()).unwrap();
                    *used += 1;
                    // `false`: nobody got a thread meanwhile.
                    Ok(ended.recv_timeout(Duration::from_secs(20)).is_ok())
                };
                of_first.blocking(work).await
            });
            tokio::task::spawn_blocking(move || has_begun.recv()).await.unwrap().unwrap();
            let others = (0..8).map(|_| {
                let (turns, connection) = (Arc::clone(&turns), Arc::clone(&connection));
                tokio::spawn(async move {
                    turns
                        .blocking(move || {
                            *connection.lock().unwrap() += 1;
                            Ok(())
                        })
                        .await
                })
            });
            let others: Vec<_> = others.collect();
            tokio::task::yield_now().await;
            // The second thread is free for it.
            let freed = tokio::task::spawn_blocking(move || end.send(()));
            assert!(first.await.unwrap().unwrap());
            freed.await.unwrap().unwrap();
            for other in others {
                other.await.unwrap().unwrap();
            }
            assert_eq!(*connection.lock().unwrap(), 9);
        });
    }

    #[tokio::test]
    async fn work_that_was_begun_keeps_its_turn_after_its_caller_stopped_waiting() {
        let turns = Turns::new(1);
        let (begun, has_begun) = channel();
        let (end, ended) = channel::<()>();
        let abandoned = turns.blocking(move || {
            begun.send(()).unwrap();
            ended.recv().unwrap();
            Ok(())
        });
        tokio::select! {
            _ = abandoned => unreachable!("it waits for its end"),
            seen = tokio::task::spawn_blocking(move || has_begun.recv()) => seen.unwrap().unwrap(),
        }
        assert!(turns.0.try_acquire().is_err());
        end.send(()).unwrap();
        turns.blocking(|| Ok(())).await.unwrap();
    }
}
