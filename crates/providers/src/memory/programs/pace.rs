//! The pauses of work that shares its thread: a command is ended in one of them, and others go on.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// The longest time between two pauses, as far as the work asks for them.
const TIME_AT_ONCE: Duration = Duration::from_millis(2);

/// The time of the last pause.
pub(super) struct Pace {
    began: Instant,
    /// In microseconds since it began.
    last: AtomicU64,
}

impl Pace {
    pub(super) fn new() -> Self {
        Self { began: Instant::now(), last: AtomicU64::new(0) }
    }

    /// Pauses if the last pause was a while ago.
    pub(super) async fn pause(&self) {
        let micros = |time: Duration| u64::try_from(time.as_micros()).unwrap_or(u64::MAX);
        let now = micros(self.began.elapsed());
        if now.saturating_sub(self.last.load(Ordering::Relaxed)) >= micros(TIME_AT_ONCE) {
            self.last.store(now, Ordering::Relaxed);
            tokio::task::yield_now().await;
        }
    }
}
