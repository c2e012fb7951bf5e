//! Locks that the tools share within this process, for each sandbox, whichever handles they have on it. Nothing here holds up
//! other processes that have the sandbox open, or commands inside.

use std::collections::HashMap;
use std::sync::{Arc, LazyLock, Mutex, PoisonError, Weak};

use eyot::{Sandbox, SandboxId};
use tokio::sync::OwnedMutexGuard;

/// A purpose for which work is done one after the other.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum LockPurpose {
    /// Changing a file from what it holds.
    Change,
    /// Counting the processes and starting one more.
    Start,
    /// Running a command in the shell that a model has there.
    Shell,
}

type AsyncLock = tokio::sync::Mutex<()>;
type LockTable = HashMap<(SandboxId, LockPurpose), Weak<AsyncLock>>;

/// The locks that a task holds or waits for.
static LOCKS: LazyLock<Mutex<LockTable>> = LazyLock::new(Mutex::default);

/// Waits until no task of this process changes a file of this sandbox; other tasks wait until
/// the guard is dropped. Held per sandbox, not per path: two paths can be one file (links,
/// spellings), and only the sandbox knows.
pub(super) async fn lock_changes(sandbox: &Sandbox) -> OwnedMutexGuard<()> {
    lock_of(sandbox.id(), LockPurpose::Change).lock_owned().await
}

/// Locks the shell of a sandbox: each command begins where the last one ended.
pub(super) async fn lock_shell(sandbox: &Sandbox) -> OwnedMutexGuard<()> {
    lock_of(sandbox.id(), LockPurpose::Shell).lock_owned().await
}

/// Locks the starting of processes, so that no more are started than may run.
pub(super) async fn lock_starts(sandbox: &Sandbox) -> OwnedMutexGuard<()> {
    lock_of(sandbox.id(), LockPurpose::Start).lock_owned().await
}

fn lock_of(sandbox: &SandboxId, turn: LockPurpose) -> Arc<AsyncLock> {
    let mut locks = LOCKS.lock().unwrap_or_else(PoisonError::into_inner);
    let key = (sandbox.clone(), turn);
    if let Some(held) = locks.get(&key).and_then(Weak::upgrade) {
        return held;
    }
    locks.retain(|_, lock| lock.strong_count() > 0);
    let lock = Arc::new(AsyncLock::default());
    locks.insert(key, Arc::downgrade(&lock));
    lock
}
