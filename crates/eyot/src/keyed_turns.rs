//! Turns at keys: of the works at one key one is carried out at a time in this process.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use tokio::sync::{Mutex as AsyncMutex, OwnedMutexGuard};

/// The turns at all keys.
#[derive(Debug, Default)]
pub struct KeyedTurns(Mutex<BTreeMap<String, Weak<AsyncMutex<()>>>>);

impl KeyedTurns {
    /// Waits for the turn at a key.
    pub async fn take(&self, key: &str) -> OwnedMutexGuard<()> {
        self.of(key).lock_owned().await
    }

    fn of(&self, key: &str) -> Arc<AsyncMutex<()>> {
        let mut turns = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(turn) = turns.get(key).and_then(Weak::upgrade) {
            return turn;
        }
        turns.retain(|_, turn| turn.strong_count() > 0);
        let turn = Arc::default();
        turns.insert(key.to_owned(), Arc::downgrade(&turn));
        turn
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn one_at_a_time_has_the_turn_at_a_key_and_nothing_is_kept_of_those_that_are_done() {
        let turns = KeyedTurns::default();
        let held = turns.take("i1").await;
        assert!(turns.of("i1").try_lock().is_err() && turns.of("i2").try_lock().is_ok());
        drop(held);
        drop(turns.take("i3").await);
        turns.of("i4");
        assert_eq!(turns.0.lock().unwrap().len(), 1);
    }
}
