//! Turns at one sandbox: of the sleeps and wakes of this process one is carried out at a time.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use tokio::sync::{Mutex as AsyncMutex, OwnedMutexGuard};

/// The turns at all sandboxes, by E2B's ids.
#[derive(Debug, Default)]
pub(super) struct LifeTurns(Mutex<BTreeMap<String, Weak<AsyncMutex<()>>>>);

impl LifeTurns {
    /// Waits for the turn at a sandbox.
    pub async fn take(&self, e2b_id: &str) -> OwnedMutexGuard<()> {
        self.of(e2b_id).lock_owned().await
    }

    fn of(&self, e2b_id: &str) -> Arc<AsyncMutex<()>> {
        let mut turns = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(turn) = turns.get(e2b_id).and_then(Weak::upgrade) {
            return turn;
        }
        turns.retain(|_, turn| turn.strong_count() > 0);
        let turn = Arc::default();
        turns.insert(e2b_id.to_owned(), Arc::downgrade(&turn));
        turn
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn one_at_a_time_has_the_turn_at_a_sandbox_and_nothing_is_kept_of_those_that_are_done() {
        let turns = LifeTurns::default();
        let held = turns.take("i1").await;
        assert!(turns.of("i1").try_lock().is_err() && turns.of("i2").try_lock().is_ok());
        drop(held);
        drop(turns.take("i3").await);
        turns.of("i4");
        assert_eq!(turns.0.lock().unwrap().len(), 1);
    }
}
