//! The bytes of files that the programs of a command have read and not yet let go of.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// The most that the programs of one command hold at once: two of the largest files that are read whole.
const MAX_HELD_BYTES: u64 = 2 * super::shell_files::MAX_READ_BYTES;

/// The account of a command.
#[derive(Debug, Clone, Default)]
pub(super) struct ReadAccount(Arc<AtomicU64>);

/// A part of it, until this is dropped.
#[derive(Debug)]
pub(super) struct ReadShare {
    account: ReadAccount,
    bytes: u64,
}

impl ReadAccount {
    /// Takes some bytes on account. `None`: there are too many.
    pub(super) fn lend(&self, bytes: u64) -> Option<ReadShare> {
        let add = |held: u64| held.checked_add(bytes).filter(|held| *held <= MAX_HELD_BYTES);
        self.0.fetch_update(Ordering::Relaxed, Ordering::Relaxed, add).ok()?;
        Some(ReadShare { account: self.clone(), bytes })
    }
}

impl Drop for ReadShare {
    fn drop(&mut self) {
        self.account.0.fetch_sub(self.bytes, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_count_until_they_are_dropped() {
        let account = ReadAccount::default();
        let share = account.lend(MAX_HELD_BYTES - 1).unwrap();
        assert!(account.clone().lend(2).is_none() && account.lend(u64::MAX).is_none());
        drop((account.lend(1).unwrap(), share));
        assert!(account.lend(MAX_HELD_BYTES).is_some());
    }
}
