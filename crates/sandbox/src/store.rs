//! The store: which pools and sandboxes there are, what they were made from, and who is at work on them, in one SQLite
//! file that several processes share. It keeps rows, and the rules that make a change of rows safe; what a pool does
//! with them is the pool's.
//!
//! Every function is one transaction and blocks (on the disk, and on other processes): from async code call it on a
//! thread that may. A process may be killed at any moment: what it had been told is done is kept, the rest is undone. A
//! sandbox that it was making or removing is [`Store::abandoned`] then, and exactly one process gets to finish the
//! work. Nothing is synced on each change: a power failure may lose the last ones, and leaves a whole file.

mod abandoned;
mod asleep;
mod changing;
mod keys;
mod making;
mod owner;
mod pools;
mod quota;
mod removing;
mod row;
mod schema;
mod waking;

use std::fs::{DirBuilder, File, OpenOptions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError, TryLockError};
use std::time::Duration;

use rusqlite::{Connection, ErrorCode, Transaction, TransactionBehavior};

pub use keys::KeyRow;
pub use making::{Begun, NewSandbox};
pub use owner::Owner;
pub use pools::PoolRow;
pub use quota::QuotaUse;
pub use row::{RowState, SandboxRow};
pub use waking::WakingTurn;

use crate::error::{Error, ErrorKind, Result};
use crate::folder_changes::FolderChanges;

/// How long another process may hold the file before a call gives up. Transactions take well below a millisecond.
const BUSY: Duration = Duration::from_secs(10);

/// An open store.
pub struct Store {
    connection: Mutex<Connection>,
    /// Where its files lie; `None`: in memory.
    folder: Option<PathBuf>,
}

impl Store {
    /// Opens the store in this file, or makes it (mode 0600, with its folder), and brings an older one up to date.
    ///
    /// A file that a newer version of Eyot wrote, or that is no store, is refused (`conflict`) and left as it is.
    pub fn open(path: impl AsRef<Path>) -> Result<Arc<Self>> {
        let path = path.as_ref();
        let host = |error| Error::host("open the store", error);
        // A path of one name lies where the process is.
        let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
        DirBuilder::new().recursive(true).mode(0o700).create(folder).map_err(host)?;
        // Two processes must not bring one file up to date at once. The lock goes with the file's closing.
        let _one_at_a_time = lock(path).map_err(host)?;
        make_private(path).map_err(host)?;
        let mut connection = Connection::open(path).map_err(failed("open the store"))?;
        connection.busy_timeout(BUSY).map_err(failed("open the store"))?;
        schema::prepare(&mut connection)?;
        Ok(Arc::new(Self { connection: Mutex::new(connection), folder: Some(folder.to_owned()) }))
    }

    /// A store that is gone with its last handle.
    pub fn in_memory() -> Result<Arc<Self>> {
        let mut connection = Connection::open_in_memory().map_err(failed("open a store in memory"))?;
        schema::bring_up_to_date(&mut connection)?;
        Ok(Arc::new(Self { connection: Mutex::new(connection), folder: None }))
    }

    /// Tells when some process changed something in it; more often than that. `None`: it is in memory, where nobody else
    /// can. Blocks.
    pub fn changes(&self) -> Result<Option<FolderChanges>> {
        let folder = self.folder.as_deref();
        folder.map(|folder| FolderChanges::watch(folder, "watch the store")).transpose()
    }

    /// Writes the store, as it is at one moment, into a new file (mode 0600) that nobody else uses. `already_exists`: it is there.
    pub fn copy_into(&self, path: &Path) -> Result<()> {
        OpenOptions::new()
            .write(true)
            .create_new(true)
            .mode(0o600)
            .open(path)
            .map_err(|error| Error::host("copy the store", error))?;
        let connection = self.connection.lock().unwrap_or_else(PoisonError::into_inner);
        let name = path.to_str().ok_or_else(|| Error::invalid("path", "must be UTF-8"))?;
        connection.execute("VACUUM INTO ?1", [name]).map(drop).map_err(failed("copy the store"))
    }

    /// Does `work` in a transaction that holds the file's only right to write from its beginning.
    fn write<T>(&self, what: &str, work: impl FnOnce(&Transaction<'_>) -> Result<T>) -> Result<T> {
        self.transaction(TransactionBehavior::Immediate, what, work)
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
        let transaction = connection.transaction_with_behavior(behavior).map_err(failed(what))?;
        let done = work(&transaction)?;
        transaction.commit().map_err(failed(what))?;
        Ok(done)
    }

    /// Does `work`, which is one statement and so needs no transaction, unless somebody in this process uses the store just now.
    /// Readers wait for nobody in another process.
    fn read_at_once<T>(&self, work: impl FnOnce(&Connection) -> Result<T>) -> Option<Result<T>> {
        let connection = match self.connection.try_lock() {
            Ok(connection) => connection,
            Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
            Err(TryLockError::WouldBlock) => return None,
        };
        Some(work(&connection))
    }
}

/// The lock of whoever opens the store: a file of its own beside it. SQLite's locks on the store itself belong to the
/// process, and would be lost if anybody in it closed another descriptor of that file.
fn lock(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    let file = options.read(true).write(true).create(true).truncate(false).mode(0o600).open(beside(path))?;
    file.lock()?;
    Ok(file)
}

fn beside(path: &Path) -> PathBuf {
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

/// What SQLite refused, as an error about `what`: verb and object.
fn failed(what: &str) -> impl Fn(rusqlite::Error) -> Error {
    move |error| {
        let (kind, reason) = match error.sqlite_error_code() {
            Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => {
                (ErrorKind::Unavailable, "another process has held the store for too long".to_owned())
            }
            Some(ErrorCode::DiskFull) => (ErrorKind::Quota, "no space left on the store's disk".to_owned()),
            Some(ErrorCode::ReadOnly | ErrorCode::PermissionDenied | ErrorCode::CannotOpen) => {
                (ErrorKind::Permission, "this user may not read and write the store".to_owned())
            }
            Some(ErrorCode::NotADatabase | ErrorCode::DatabaseCorrupt) => {
                (ErrorKind::Conflict, "the file is damaged, or it is no store".to_owned())
            }
            _ => (ErrorKind::Internal, format!("the store: {error}")),
        };
        Error::new(kind, format!("{what}: {reason}")).with_source(error)
    }
}
