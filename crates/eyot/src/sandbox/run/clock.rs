//! The events that can end a command from outside, its deadline and its cancellation, and when it
//! began.

use std::future::{Future, pending};
use std::pin::Pin;
use std::time::{Duration, SystemTime};

use tokio::time::{Instant, Sleep};
use tokio_util::sync::WaitForCancellationFutureOwned;

use super::RunOptions;

/// Deadlines beyond this (ten years) are none; 2^53 milliseconds must not overflow anything.
const FAR_MS: u64 = 10 * 365 * 24 * 60 * 60 * 1000;

pub(super) struct Clock {
    pub(super) started: Instant,
    pub(super) started_at: SystemTime,
    pub(super) timeout_ms: Option<u64>,
    pub(super) deadline: Option<Pin<Box<Sleep>>>,
    pub(super) cancelled: Option<Pin<Box<WaitForCancellationFutureOwned>>>,
    pub(super) expired: Option<Pin<Box<WaitForCancellationFutureOwned>>>,
}

impl Clock {
    /// Starts it, now.
    pub(super) fn start(terms: &RunOptions) -> Self {
        let mut clock = Self {
            started: Instant::now(),
            started_at: SystemTime::now(),
            timeout_ms: terms.timeout_ms,
            deadline: None,
            cancelled: terms.cancel.clone().map(|cancel| Box::pin(cancel.cancelled_owned())),
            expired: terms.expired.clone().map(|expired| Box::pin(expired.cancelled_owned())),
        };
        clock.deadline = clock.expiry().map(|expiry| Box::pin(tokio::time::sleep_until(expiry)));
        clock
    }

    /// Returns the time at which the deadline passes, if there is one worth a timer.
    pub(super) fn expiry(&self) -> Option<Instant> {
        let near = self.timeout_ms.filter(|timeout_ms| *timeout_ms < FAR_MS)?;
        self.started.checked_add(Duration::from_millis(near))
    }

    pub(super) fn elapsed_ms(&self) -> u64 {
        u64::try_from(self.started.elapsed().as_millis()).unwrap_or(u64::MAX)
    }
}

/// Waits for a future that may not be there (then for ever), and forgets it once it has come.
pub(super) async fn arrived<F: Future + Unpin>(future: &mut Option<F>) -> F::Output {
    match future {
        Some(waiting) => {
            let output = waiting.await;
            *future = None;
            output
        }
        None => pending().await,
    }
}
