//! The store: which pools and sandboxes there are, what they were made from, and who is at work on them, in one SQLite
//! file that several processes share. It keeps rows, and the rules that make a change of rows safe; what a pool does
//! with them is the pool's.
//!
//! Every function is one transaction and blocks (on the disk, and on other processes): from async code call it through
//! [`Store::ask`]. A process may be killed at any moment: what it had been told is done is kept, the rest is undone. A
//! sandbox that it was making or removing is [`Store::abandoned`] then, and exactly one process gets to finish the
//! work. The same holds for a task of a process that lives on: see [`Claim`]. Nothing is synced on each change: a power failure may lose the last ones, and leaves a whole file.

mod abandoned;
mod agent_changes;
mod agent_runs;
mod anchors;
mod changing;
mod claim;
mod keys;
mod making;
mod mark;
mod names;
mod owner;
mod pools;
mod quota;
mod removing;
mod row;
mod schema;
mod sleep_state;
mod spare;
mod statement;
mod waking;

use std::fs::{DirBuilder, File, OpenOptions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, TryLockError};
use std::time::Duration;

use eyot::{Error, ErrorKind, Result};
use rusqlite::{Connection, ErrorCode, Transaction, TransactionBehavior};
use rustix::fs::statvfs;

pub use agent_changes::{AgentChange, conversation_in_use};
pub use agent_runs::{
    AgentRunFilter, AgentRunLease, AgentRunRow, AgentRunStatus, MAX_ENDED_RUNS_PER_INSTANCE,
};
pub use anchors::Anchor;
pub use claim::Claim;
pub use keys::KeyRow;
pub use making::NameReservation;
pub(crate) use mark::lost_store_error;
pub use owner::Owner;
pub use pools::PoolRow;
pub use quota::QuotaUse;
pub(crate) use quota::{enforce_sum, too_many_sandboxes};
pub(crate) use row::{ENDED_WITH_ITS_PROCESS, FOUND_GONE};
pub use row::{NewSandbox, RowState, SandboxRow};
pub use waking::WakingTurn;

use claim::StoreIdentity;

use crate::blocking::Turns;
use crate::folder_changes::FolderChanges;

/// The time that another process may hold the file before a call gives up. Transactions take well
/// below a millisecond.
const BUSY: Duration = Duration::from_secs(10);
const DISK_FULL: &str = "no space is left on the disk of the state folder";
/// A disk with less room is full, in bytes: a transaction writes some pages, and SQLite its index of them.
const ROOM_BYTES: u64 = 128 << 10;

/// An open store.
pub struct Store {
    connection: Mutex<Connection>,
    turns: Turns,
    /// The folder of its files; `None`: in memory.
    folder: Option<PathBuf>,
    identity: StoreIdentity,
}

impl std::fmt::Debug for Store {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Store").field("identity", &self.identity).finish_non_exhaustive()
    }
}

impl Store {
    /// Opens the store in this file, or makes it (mode 0600, with its folder), and brings an older one up to date.
    ///
    /// A file that a newer version of Eyot wrote, or that is no store, is refused (`conflict`) and left as it is. So is the
    /// place of a store that is gone: see [`Store::replace_lost`].
    pub fn open(path: impl AsRef<Path>) -> Result<Arc<Self>> {
        Self::open_at(path.as_ref(), |lock| mark::refuse_lost_store(path.as_ref(), lock))
    }

    /// Makes a new store in the place of one that is gone. `conflict`: it is not gone.
    pub fn replace_lost(path: impl AsRef<Path>) -> Result<Arc<Self>> {
        Self::open_at(path.as_ref(), |_| {
            if Self::is_missing(path.as_ref()) {
                Ok(())
            } else {
                Err(Error::new(ErrorKind::Conflict, "begin a new store: the old one is there"))
            }
        })
    }

    /// Returns whether there is no store in this file: it is missing, or empty.
    pub fn is_missing(path: &Path) -> bool {
        path.metadata().map_or_else(|error| error.kind() == io::ErrorKind::NotFound, |file| file.len() == 0)
    }

    fn open_at(path: &Path, check: impl FnOnce(&File) -> Result<()>) -> Result<Arc<Self>> {
        let host = |error| Error::host("open the store", error);
        // A path of one name lies where the process is.
        let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
        DirBuilder::new().recursive(true).mode(0o700).create(folder).map_err(host)?;
        // Two processes must not bring one file up to date at once. The lock goes with the file's closing.
        let one_at_a_time = lock(path).map_err(host)?;
        check(&one_at_a_time)?;
        make_private(path).map_err(host)?;
        let connection = match connect(path, folder) {
            Err(error) if error.kind() == ErrorKind::Quota && spare::give_up(folder) => {
                connect(path, folder)?
            }
            connected => connected?,
        };
        mark::note(&one_at_a_time);
        spare::keep(folder);
        let identity = StoreIdentity::File(path.canonicalize().map_err(host)?);
        Ok(Arc::new(Self {
            connection: Mutex::new(connection),
            turns: Turns::new(),
            folder: Some(folder.to_owned()),
            identity,
        }))
    }

    /// A store that is gone with its last handle.
    pub fn in_memory() -> Result<Arc<Self>> {
        let mut connection = Connection::open_in_memory().map_err(failed("open a store in memory"))?;
        schema::bring_up_to_date(&mut connection)?;
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let identity = StoreIdentity::Memory(NEXT.fetch_add(1, Ordering::Relaxed));
        Ok(Arc::new(Self { connection: Mutex::new(connection), turns: Turns::new(), folder: None, identity }))
    }

    /// Asks the store from async code: runs `question` on a thread that may block, one question of this process after the
    /// other. Once begun it is carried out, even if the caller stops waiting.
    pub async fn ask<T: Send + 'static>(
        self: &Arc<Self>,
        question: impl FnOnce(&Arc<Self>) -> Result<T> + Send + 'static,
    ) -> Result<T> {
        let store = Arc::clone(self);
        self.turns.blocking(move || question(&store)).await
    }

    /// Tells when some process changed something in it; more often than that. `None`: it is in
    /// memory, where no other process can. Blocks.
    pub fn changes(&self) -> Result<Option<FolderChanges>> {
        let folder = self.folder.as_deref();
        folder.map(|folder| FolderChanges::watch(folder, "watch the store")).transpose()
    }

    /// Writes the store, as it is at one moment, into a new file (mode 0600) that nothing else
    /// uses. `already_exists`: it is there.
    pub fn copy_into(&self, path: &Path) -> Result<()> {
        OpenOptions::new()
            .write(true)
            .create_new(true)
            .mode(0o600)
            .open(path)
            .map_err(|error| Error::host("copy the store", error))?;
        let connection = self.connection.lock().unwrap_or_else(PoisonError::into_inner);
        let name = path.to_str().ok_or_else(|| Error::invalid("path", "must be UTF-8"))?;
        let copied = connection.execute("VACUUM INTO ?1", [name]).map(drop);
        copied.map_err(failed("copy the store")).map_err(|error| or_disk_full(error, path.parent()))
    }

    /// Does `work` in a transaction that holds the file's only right to write from its beginning.
    fn write<T>(&self, what: &str, work: impl FnOnce(&Transaction<'_>) -> Result<T>) -> Result<T> {
        self.transaction(TransactionBehavior::Immediate, what, work)
    }

    /// Does `work` as [`Store::write`] does, and a second time on the spare room if the disk is full:
    /// work that takes something away must not fail for want of room.
    fn write_on_spare<T>(&self, what: &str, work: impl Fn(&Transaction<'_>) -> Result<T>) -> Result<T> {
        match self.write(what, &work) {
            Err(error) if is_disk_full(&error) && self.give_up_spare() => self.write(what, &work),
            done => done,
        }
    }

    /// Frees the spare room beside the store. Returns whether there was any.
    pub(crate) fn give_up_spare(&self) -> bool {
        self.folder.as_deref().is_some_and(spare::give_up)
    }

    /// Refuses to begin what takes room, while there is hardly any left on the disk.
    fn require_room(&self, what: &str) -> Result<()> {
        if self.folder.as_deref().is_some_and(is_full) { Err(disk_full(what)) } else { Ok(()) }
    }

    /// Does `work` on the file as it is at one moment.
    fn read<T>(&self, what: &str, work: impl FnOnce(&Transaction<'_>) -> Result<T>) -> Result<T> {
        self.transaction(TransactionBehavior::Deferred, what, work)
    }

    fn transaction<T>(
        &self,
        behavior: TransactionBehavior,
        what: &str,
        work: impl FnOnce(&Transaction<'_>) -> Result<T>,
    ) -> Result<T> {
        // A transaction that a panic cut short was rolled back when it was dropped.
        let mut connection = self.connection.lock().unwrap_or_else(PoisonError::into_inner);
        let done =
            connection.transaction_with_behavior(behavior).map_err(failed(what)).and_then(|transaction| {
                let done = work(&transaction)?;
                transaction.commit().map_err(failed(what))?;
                Ok(done)
            });
        done.map_err(|error| or_disk_full(error, self.folder.as_deref()))
    }

    /// Does `work`, which is one statement and so needs no transaction, unless somebody in this
    /// process uses the store just now. Readers do not wait for other processes.
    fn read_at_once<T>(&self, work: impl FnOnce(&Connection) -> Result<T>) -> Option<Result<T>> {
        let connection = match self.connection.try_lock() {
            Ok(connection) => connection,
            Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
            Err(TryLockError::WouldBlock) => return None,
        };
        Some(work(&connection).map_err(|error| or_disk_full(error, self.folder.as_deref())))
    }
}

/// Locks the store for opening it: a file of its own beside it. SQLite's locks on the store itself
/// belong to the process, and would be lost if anybody in it closed another descriptor of that
/// file.
fn lock(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    let file =
        options.read(true).write(true).create(true).truncate(false).mode(0o600).open(lock_path(path))?;
    file.lock()?;
    Ok(file)
}

fn lock_path(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(".lock");
    PathBuf::from(name)
}

/// Makes the file, where there is none, for its owner alone: specs may hold secrets. What SQLite puts beside it gets the
/// same mode. A file that is there is not even opened, for the reason that [`lock`] gives.
fn make_private(path: &Path) -> io::Result<()> {
    match OpenOptions::new().write(true).create_new(true).mode(0o600).open(path) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        made => made.map(drop),
    }
}

/// Turns what SQLite refused into an error about `what`: verb and object.
fn failed(what: &str) -> impl Fn(rusqlite::Error) -> Error {
    move |error| {
        let (kind, reason) = match error.sqlite_error_code() {
            Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => {
                (ErrorKind::Unavailable, "another process has held the store for too long".to_owned())
            }
            Some(ErrorCode::DiskFull) => (ErrorKind::Quota, DISK_FULL.to_owned()),
            Some(ErrorCode::ReadOnly | ErrorCode::PermissionDenied | ErrorCode::CannotOpen) => {
                (ErrorKind::Permission, "this user may not read and write the store".to_owned())
            }
            Some(ErrorCode::NotADatabase | ErrorCode::DatabaseCorrupt) => {
                (ErrorKind::Conflict, "the file is damaged or not a store".to_owned())
            }
            _ => (ErrorKind::Internal, format!("the store: {error}")),
        };
        let error = Error::new(kind, format!("{what}: {reason}")).with_source(error);
        match kind {
            ErrorKind::Conflict => error.with_hint(mark::WAYS_ON),
            ErrorKind::Permission => error
                .with_hint("give this user the state folder, or name another one: --state DIR or EYOT_STATE"),
            _ => error,
        }
    }
}

/// The same error, or that there is no space left where the store lies: SQLite says of some writes only that they failed.
fn or_disk_full(error: Error, folder: Option<&Path>) -> Error {
    let may_be_full = matches!(
        sqlite_code(&error),
        Some(ErrorCode::SystemIoFailure | ErrorCode::CannotOpen | ErrorCode::DiskFull)
    );
    if !may_be_full || !folder.is_some_and(is_full) {
        return error;
    }
    let message = error.to_string();
    let what = message.split(": ").next().unwrap_or_default();
    disk_full(what).with_source(error)
}

fn disk_full(what: &str) -> Error {
    Error::new(ErrorKind::Quota, format!("{what}: {DISK_FULL}"))
        .with_hint("free space there; `eyot rm NAME` destroys a sandbox with its files")
}

/// Returns whether an error of this store says that its disk is full, and not a pool's quota.
fn is_disk_full(error: &Error) -> bool {
    error.kind() == ErrorKind::Quota && sqlite_code(error).is_some()
}

/// The code of SQLite's error below this one.
fn sqlite_code(error: &Error) -> Option<ErrorCode> {
    let causes = std::iter::successors(std::error::Error::source(error), |cause| cause.source());
    let failed = causes.filter_map(|cause| cause.downcast_ref::<rusqlite::Error>()).last();
    failed.and_then(rusqlite::Error::sqlite_error_code)
}

/// Opens the file of a store in this folder, and brings an older one up to date. `quota`: the disk is
/// full.
fn connect(path: &Path, folder: &Path) -> Result<Connection> {
    let opened = Connection::open(path).map_err(failed("open the store")).and_then(|mut connection| {
        connection.busy_timeout(BUSY).map_err(failed("open the store"))?;
        schema::prepare(&mut connection)?;
        Ok(connection)
    });
    opened.map_err(|error| or_disk_full(error, Some(folder)))
}

/// Returns whether there is no room for what a transaction writes.
fn is_full(folder: &Path) -> bool {
    statvfs(folder).is_ok_and(|disk| disk.f_bavail.saturating_mul(disk.f_frsize) < ROOM_BYTES)
}
