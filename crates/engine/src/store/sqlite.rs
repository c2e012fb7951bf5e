//! The store of one host: a file that several processes share, or memory.

use std::fs::{DirBuilder, File, OpenOptions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError, TryLockError};
use std::time::Duration;

use eyot::{Error, ErrorKind, Result};
use rusqlite::types::{ToSqlOutput, ValueRef};
use rusqlite::{Connection, ErrorCode, ToSql, TransactionBehavior};
use rustix::fs::statvfs;

use super::database_error::{DISK_FULL, DatabaseError, failed, sqlite_code};
use super::value::{DatabaseRow, Value};
use super::{mark, schema, spare};

/// The time that another process may hold the file before a call gives up. Transactions take well
/// below a millisecond.
const BUSY: Duration = Duration::from_secs(10);
/// A disk with less room is full, in bytes: a transaction writes some pages, and SQLite its index of them.
const ROOM_BYTES: u64 = 128 << 10;

/// An open database.
pub(super) struct SqliteDatabase {
    connection: Mutex<Connection>,
    /// The folder of its files; `None`: in memory.
    folder: Option<PathBuf>,
}

impl SqliteDatabase {
    /// Opens the file, or makes it (mode 0600, with its folder), once `check` has seen its lock.
    pub(super) fn open(path: &Path, check: impl FnOnce(&File) -> Result<()>) -> Result<Self> {
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
        Ok(Self { connection: Mutex::new(connection), folder: Some(folder.to_owned()) })
    }

    /// Opens one in memory.
    pub(super) fn in_memory() -> Result<Self> {
        let opened = Connection::open_in_memory().map_err(DatabaseError::from);
        let mut connection = opened.map_err(failed("open a store in memory"))?;
        schema::bring_up_to_date(&mut connection)?;
        Ok(Self { connection: Mutex::new(connection), folder: None })
    }

    /// Returns the folder of its files; `None`: it is in memory.
    pub(super) fn folder(&self) -> Option<&Path> {
        self.folder.as_deref()
    }

    /// Writes it, as it is at one moment, into a new file (mode 0600). `already_exists`: the file is there.
    pub(super) fn copy_into(&self, path: &Path) -> Result<()> {
        OpenOptions::new()
            .write(true)
            .create_new(true)
            .mode(0o600)
            .open(path)
            .map_err(|error| Error::host("copy the store", error))?;
        let connection = self.connection.lock().unwrap_or_else(PoisonError::into_inner);
        let name = path.to_str().ok_or_else(|| Error::invalid("path", "must be UTF-8"))?;
        let copied = connection.execute("VACUUM INTO ?1", [name]).map(drop).map_err(DatabaseError::from);
        copied.map_err(failed("copy the store")).map_err(|error| or_disk_full(error, path.parent()))
    }

    /// Frees the spare room beside the file. Returns whether there was any.
    pub(super) fn give_up_spare(&self) -> bool {
        self.folder().is_some_and(spare::give_up)
    }

    /// Refuses to begin what takes room, while there is hardly any left on the disk.
    pub(super) fn require_room(&self, what: &str) -> Result<()> {
        if self.folder().is_some_and(is_full) { Err(disk_full(what)) } else { Ok(()) }
    }

    /// Does `work` in a transaction that holds the file's only right to write from its beginning.
    pub(super) fn write<T>(&self, what: &str, work: impl FnOnce(&Connection) -> Result<T>) -> Result<T> {
        self.transaction(TransactionBehavior::Immediate, what, work)
    }

    /// Does `work` on the file as it is at one moment.
    pub(super) fn read<T>(&self, what: &str, work: impl FnOnce(&Connection) -> Result<T>) -> Result<T> {
        self.transaction(TransactionBehavior::Deferred, what, work)
    }

    fn transaction<T>(
        &self,
        behavior: TransactionBehavior,
        what: &str,
        work: impl FnOnce(&Connection) -> Result<T>,
    ) -> Result<T> {
        let refused = |error: rusqlite::Error| failed(what)(error.into());
        // A transaction that a panic cut short was rolled back when it was dropped.
        let mut connection = self.connection.lock().unwrap_or_else(PoisonError::into_inner);
        let done = connection.transaction_with_behavior(behavior).map_err(refused).and_then(|transaction| {
            let done = work(&transaction)?;
            transaction.commit().map_err(refused)?;
            Ok(done)
        });
        done.map_err(|error| or_disk_full(error, self.folder()))
    }

    /// Does `work`, which is one statement and so needs no transaction, unless somebody in this
    /// process uses the file just now. Readers do not wait for other processes.
    pub(super) fn read_at_once<T>(&self, work: impl FnOnce(&Connection) -> Result<T>) -> Option<Result<T>> {
        let connection = match self.connection.try_lock() {
            Ok(connection) => connection,
            Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
            Err(TryLockError::WouldBlock) => return None,
        };
        Some(work(&connection).map_err(|error| or_disk_full(error, self.folder())))
    }
}

impl ToSql for Value {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        Ok(ToSqlOutput::Borrowed(match self {
            Self::Null => ValueRef::Null,
            Self::Integer(number) => ValueRef::Integer(*number),
            Self::Text(text) => ValueRef::Text(text.as_bytes()),
            Self::Bytes(bytes) => ValueRef::Blob(bytes),
        }))
    }
}

/// Runs a statement that changes rows.
pub(super) fn execute(connection: &Connection, sql: &str, values: &[Value]) -> Result<u64, DatabaseError> {
    let mut statement = connection.prepare_cached(sql)?;
    let changed = statement.execute(rusqlite::params_from_iter(values))?;
    Ok(changed.try_into().unwrap_or(u64::MAX))
}

/// Runs a statement that returns rows.
pub(super) fn rows(
    connection: &Connection,
    sql: &str,
    values: &[Value],
) -> Result<Vec<DatabaseRow>, DatabaseError> {
    let mut statement = connection.prepare_cached(sql)?;
    let names: Arc<[String]> = statement.column_names().into_iter().map(str::to_owned).collect();
    let mut rows = statement.query(rusqlite::params_from_iter(values))?;
    let mut read = Vec::new();
    while let Some(row) = rows.next()? {
        let columns = names.iter().enumerate().map(|(index, name)| value(name, row.get_ref(index)?));
        read.push(DatabaseRow::new(&names, columns.collect::<Result<_, DatabaseError>>()?));
    }
    Ok(read)
}

fn value(column: &str, found: ValueRef<'_>) -> Result<Value, DatabaseError> {
    Ok(match found {
        ValueRef::Null => Value::Null,
        ValueRef::Integer(number) => Value::Integer(number),
        ValueRef::Text(text) => {
            let text = std::str::from_utf8(text);
            Value::Text(text.map_err(|error| DatabaseError::unreadable(column, error.into()))?.to_owned())
        }
        ValueRef::Blob(bytes) => Value::Bytes(bytes.to_vec()),
        ValueRef::Real(_) => return Err(DatabaseError::unreadable(column, "it holds a fraction".into())),
    })
}

/// Locks the file for opening it: by a file of its own beside it. SQLite's locks on the file itself
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

/// The same error, or that there is no space left where the file lies: SQLite says of some writes only that they failed.
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

/// Opens the file in this folder, and brings an older one up to date. `quota`: the disk is full.
fn connect(path: &Path, folder: &Path) -> Result<Connection> {
    let refused = |error: rusqlite::Error| failed("open the store")(error.into());
    let opened = Connection::open(path).map_err(refused).and_then(|mut connection| {
        connection.busy_timeout(BUSY).map_err(refused)?;
        schema::prepare(&mut connection)?;
        Ok(connection)
    });
    opened.map_err(|error| or_disk_full(error, Some(folder)))
}

/// Returns whether there is no room for what a transaction writes.
fn is_full(folder: &Path) -> bool {
    statvfs(folder).is_ok_and(|disk| disk.f_bavail.saturating_mul(disk.f_frsize) < ROOM_BYTES)
}
