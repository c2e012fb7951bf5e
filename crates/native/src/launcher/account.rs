//! The account of a sandbox with a range: the host user that the kernel charges for it. The kernel
//! counts signals, inotify instances, message queues and more per user, once for each user inside
//! and once for the user who made the user namespace. If the host's root made all namespaces, all
//! sandboxes together would use up root's share. So each namespace is made by a host user of its
//! own, whose limits then hold for all users inside together.

use std::io;
use std::sync::{Mutex, PoisonError};

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use crate::plan::Account;
use crate::sys;

/// The limits of all users inside together. They are several times what one process may have: the
/// kernel's memory behind them counts as the sandbox's anyway.
const PENDING_SIGNALS: u64 = 8192;
const QUEUE_BYTES: u64 = 819_200;
const LOCKED_BYTES: u64 = 8 << 20;

/// Held while limits are lowered: they belong to the whole process, and a process can have several
/// launchers.
static TURN: Mutex<()> = Mutex::new(());

/// Makes a user namespace as the account's user and with the account's limits. Only this thread
/// becomes that user, and only for this call.
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

/// A limit of this process that stays lowered until this value is dropped.
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
