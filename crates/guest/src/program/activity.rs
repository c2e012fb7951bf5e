//! The time at which the sandbox was last used, for its idle timeout. It is atomic, because workers
//! set it too.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use super::sys;

/// The times of the guest's start and of the last activity, in milliseconds since boot.
#[derive(Debug)]
pub struct Activity {
    started_ms: u64,
    last_ms: AtomicU64,
}

impl Activity {
    /// Begins now.
    pub fn new() -> Self {
        let now = now_ms();
        Self { started_ms: now, last_ms: AtomicU64::new(now) }
    }

    /// Something happened.
    pub fn note(&self) {
        self.last_ms.store(now_ms(), Ordering::Relaxed);
    }

    /// Since the guest's start, in milliseconds.
    pub fn uptime_ms(&self) -> u64 {
        now_ms().saturating_sub(self.started_ms)
    }

    /// Since something last happened, in milliseconds.
    pub fn idle_ms(&self) -> u64 {
        now_ms().saturating_sub(self.last_ms.load(Ordering::Relaxed))
    }

    /// The moment, since boot, that is this many milliseconds after the start.
    pub fn after_start(&self, ms: u64) -> Duration {
        Duration::from_millis(self.started_ms.saturating_add(ms))
    }

    /// The moment, since boot, that is this many milliseconds after something last happened.
    pub fn after_last(&self, ms: u64) -> Duration {
        Duration::from_millis(self.last_ms.load(Ordering::Relaxed).saturating_add(ms))
    }
}

fn now_ms() -> u64 {
    sys::time_since_boot().as_millis() as u64
}
