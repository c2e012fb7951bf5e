//! Who pays for a sandbox with a range. The kernel counts signals, inotify instances, message queues and more per user: for
//! each user inside, and once more for the user who made the user namespace. Made by the host's root, all sandboxes together
//! would use up what root has. So each is made by a host user of its own, whose limits then hold for all users inside together.

use std::io;
use std::sync::{Mutex, PoisonError};

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use crate::plan::Account;
use crate::sys;

/// What all users inside may have together: several times what one process may have, for the kernel's memory that it takes
/// counts as the sandbox's anyway.
const PENDING_SIGNALS: u64 = 8192;
const QUEUE_BYTES: u64 = 819_200;
const LOCKED_BYTES: u64 = 8 << 20;

/// Limits are the whole process's, and a process can have several launchers.
static TURN: Mutex<()> = Mutex::new(());

/// Makes a user namespace as the account's user, with the account's limits. Only this thread is that user, and only
/// meanwhile.
pub(super) fn charge<T>(account: Account, make: impl FnOnce() -> io::Result<T>) -> io::Result<T> {
    let _turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    let limits = [
        (Resource::Nproc, account.processes),
        (Resource::Sigpending, PENDING_SIGNALS),
        (Resource::Msgqueue, QUEUE_BYTES),
        (Resource::Memlock, LOCKED_BYTES),
    ];
    let _lowered =
        limits.into_iter().map(|(which, most)| Lowered::to(which, most)).collect::<io::Result<Vec<_>>>()?;
    sys::as_user(account.uid, make)
}

/// A limit of this process that is lower until this is dropped.
struct Lowered {
    which: Resource,
    before: Rlimit,
}

impl Lowered {
    fn to(which: Resource, most: u64) -> io::Result<Self> {
        let before = getrlimit(which);
        let current = before.current.map_or(most, |current| current.min(most));
        setrlimit(which, Rlimit { current: Some(current), ..before })?;
        Ok(Self { which, before })
    }
}

impl Drop for Lowered {
    fn drop(&mut self) {
        // Back to what it was, below the same hard limit: that can't be refused.
        if setrlimit(self.which, self.before).is_err() {
            std::process::abort();
        }
    }
}
