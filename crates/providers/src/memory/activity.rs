//! The use of a sandbox, and the time since its last.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// The use of one sandbox.
#[derive(Debug)]
pub(super) struct SandboxUse {
    state: Mutex<Use>,
}

#[derive(Debug)]
struct Use {
    busy: usize,
    last: Instant,
}

impl SandboxUse {
    /// Begins now.
    pub(super) fn new() -> Self {
        Self { state: Mutex::new(Use { busy: 0, last: Instant::now() }) }
    }

    fn lock(&self) -> MutexGuard<'_, Use> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Counts a use that lasts until this is dropped.
    pub(super) fn busy(self: &Arc<Self>) -> Busy {
        self.lock().busy += 1;
        Busy(self.clone())
    }

    /// Notes a use.
    pub(super) fn note(&self) {
        self.lock().last = Instant::now();
    }

    /// Returns for how long nobody has used it.
    pub(super) fn idle(&self) -> Duration {
        let state = self.lock();
        if state.busy > 0 { Duration::ZERO } else { state.last.elapsed() }
    }
}

/// A use that lasts.
#[derive(Debug)]
pub(super) struct Busy(Arc<SandboxUse>);

impl Drop for Busy {
    fn drop(&mut self) {
        let mut state = self.0.lock();
        state.busy -= 1;
        state.last = Instant::now();
    }
}
