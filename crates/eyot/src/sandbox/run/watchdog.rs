//! Kills a streamed command on its deadline or cancellation even while its events are not taken: a
//! client that stalls must not keep a command alive.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use tokio::task::AbortHandle;

use super::clock::Clock;
use super::{RunOptions, order_kill};
use crate::driver::ExecutionControl;
use crate::exec::Outcome;

/// A task that waits for the moment to kill. Dropping it calls it off.
pub(super) struct Watchdog {
    task: AbortHandle,
    fired: Arc<AtomicBool>,
}

impl Watchdog {
    /// Sets one, if the command is streamed.
    pub(super) fn set(
        clock: &Clock,
        terms: &RunOptions,
        control: &Arc<dyn ExecutionControl>,
    ) -> Option<Self> {
        let expired = terms.expired.clone()?;
        let expiry = clock.expiry();
        let cancel = terms.cancel.clone().unwrap_or_default();
        let control = control.clone();
        let fired = Arc::new(AtomicBool::new(false));
        let fire = fired.clone();
        let task = tokio::spawn(async move {
            let deadline = async {
                match expiry {
                    Some(expiry) => tokio::time::sleep_until(expiry).await,
                    None => std::future::pending().await,
                }
            };
            let outcome = tokio::select! {
                biased;
                () = cancel.cancelled() => Outcome::Cancelled,
                () = deadline => Outcome::TimedOut,
                () = expired.cancelled() => Outcome::TimedOut,
            };
            fire.store(true, Ordering::Release);
            if let Err(error) = order_kill(control.as_ref(), outcome).await {
                tracing::debug!(%error, "the watchdog could not order a kill; the run will try again");
            }
        });
        Some(Self { task: task.abort_handle(), fired })
    }

    /// Returns whether it has ordered a kill.
    pub(super) fn has_fired(&self) -> bool {
        self.fired.load(Ordering::Acquire)
    }
}

impl Drop for Watchdog {
    fn drop(&mut self) {
        self.task.abort();
    }
}
