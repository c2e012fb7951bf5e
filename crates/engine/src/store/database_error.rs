//! Refusals and failures of a database, in the words of the contract.

use std::error::Error as StdError;
use std::fmt;

use eyot::{Error, ErrorKind};
use rusqlite::ErrorCode;
use tokio_postgres::error::SqlState;
use tokio_rustls::rustls;

use super::mark;

/// The end of an error about a full disk.
pub(super) const DISK_FULL: &str = "no space is left on the disk of the state folder";
const HELD: &str = "another process has held the store for too long";

/// The answers of a database that lets nobody in for a while.
const AWAY: [SqlState; 5] = [
    SqlState::ADMIN_SHUTDOWN,
    SqlState::CRASH_SHUTDOWN,
    SqlState::CANNOT_CONNECT_NOW,
    SqlState::TOO_MANY_CONNECTIONS,
    // It has become the copy of another one.
    SqlState::READ_ONLY_SQL_TRANSACTION,
];

/// A statement that failed, or a row that can't be read.
#[derive(Debug)]
pub(super) enum DatabaseError {
    Sqlite(rusqlite::Error),
    Postgres(tokio_postgres::Error),
    /// The database did not answer.
    Silent(String),
    Unreadable {
        column: String,
        reason: Box<dyn StdError + Send + Sync>,
    },
}

impl DatabaseError {
    /// Makes the error for a column that holds something else than it should.
    pub(super) fn unreadable(column: &str, reason: Box<dyn StdError + Send + Sync>) -> Self {
        Self::Unreadable { column: column.to_owned(), reason }
    }

    /// Tells whether the connection has ended, or the database refuses all of them for a while.
    pub(super) fn is_away(&self) -> bool {
        match self {
            Self::Postgres(error) => error.code().map_or_else(|| is_cut(error), |code| AWAY.contains(code)),
            Self::Silent(_) => true,
            Self::Sqlite(_) | Self::Unreadable { .. } => false,
        }
    }

    /// Returns the kind, and the end of a sentence.
    fn meaning(&self) -> (ErrorKind, String) {
        match self {
            Self::Sqlite(error) => meaning_of_sqlite(error),
            Self::Postgres(error) if self.is_away() => {
                (ErrorKind::Unavailable, format!("the database does not answer: {}", last_cause(error)))
            }
            Self::Postgres(error) => meaning_of_postgres(error),
            Self::Silent(reason) => {
                (ErrorKind::Unavailable, format!("the database does not answer: {reason}"))
            }
            Self::Unreadable { .. } => (ErrorKind::Internal, format!("the store: {self}")),
        }
    }
}

impl fmt::Display for DatabaseError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Sqlite(error) => error.fmt(f),
            Self::Postgres(error) => error.fmt(f),
            Self::Silent(reason) => reason.fmt(f),
            Self::Unreadable { column, reason } => write!(f, "the column {column} can't be read: {reason}"),
        }
    }
}

impl StdError for DatabaseError {
    fn source(&self) -> Option<&(dyn StdError + 'static)> {
        match self {
            Self::Sqlite(error) => Some(error),
            Self::Postgres(error) => Some(error),
            Self::Silent(_) => None,
            Self::Unreadable { reason, .. } => Some(reason.as_ref()),
        }
    }
}

impl From<rusqlite::Error> for DatabaseError {
    fn from(error: rusqlite::Error) -> Self {
        Self::Sqlite(error)
    }
}

impl From<tokio_postgres::Error> for DatabaseError {
    fn from(error: tokio_postgres::Error) -> Self {
        Self::Postgres(error)
    }
}

fn meaning_of_sqlite(error: &rusqlite::Error) -> (ErrorKind, String) {
    match error.sqlite_error_code() {
        Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => {
            (ErrorKind::Unavailable, HELD.to_owned())
        }
        Some(ErrorCode::DiskFull) => (ErrorKind::Quota, DISK_FULL.to_owned()),
        Some(ErrorCode::ReadOnly | ErrorCode::PermissionDenied | ErrorCode::CannotOpen) => {
            (ErrorKind::Permission, "this user may not read and write the store".to_owned())
        }
        Some(ErrorCode::NotADatabase | ErrorCode::DatabaseCorrupt) => {
            (ErrorKind::Conflict, "the file is damaged or not a store".to_owned())
        }
        _ => (ErrorKind::Internal, format!("the store: {error}")),
    }
}

/// Tells whether a connection was not made or has ended. A certificate that is not trusted is no such thing.
fn is_cut(error: &tokio_postgres::Error) -> bool {
    let cause = StdError::source(error).and_then(|source| source.downcast_ref::<std::io::Error>());
    let is_certificate =
        |cause: &std::io::Error| cause.get_ref().is_some_and(|inner| inner.is::<rustls::Error>());
    error.is_closed() || cause.is_some_and(|cause| !is_certificate(cause))
}

fn meaning_of_postgres(error: &tokio_postgres::Error) -> (ErrorKind, String) {
    let said = last_cause(error);
    let Some(code) = error.code() else {
        return (ErrorKind::Setup, format!("the database can't be used: {said}"));
    };
    let held = [
        SqlState::LOCK_NOT_AVAILABLE,
        SqlState::QUERY_CANCELED,
        SqlState::T_R_DEADLOCK_DETECTED,
        SqlState::T_R_SERIALIZATION_FAILURE,
        SqlState::IDLE_IN_TRANSACTION_SESSION_TIMEOUT,
    ];
    if held.contains(code) {
        return (ErrorKind::Unavailable, HELD.to_owned());
    }
    let kind = match code.code().get(..2).unwrap_or_default() {
        // Authorization, and rights.
        "28" => ErrorKind::Permission,
        _ if *code == SqlState::INSUFFICIENT_PRIVILEGE => ErrorKind::Permission,
        // Resources: the disk, memory.
        "53" => ErrorKind::Quota,
        // Data that a column can't hold, such as a text with a zero byte.
        "22" => ErrorKind::Invalid,
        // The database that was named is not there.
        "3D" => ErrorKind::Setup,
        _ => ErrorKind::Internal,
    };
    (kind, format!("the database says: {said}"))
}

/// Returns the last cause of an error, which says the most.
pub(super) fn last_cause(error: &(dyn StdError + 'static)) -> String {
    let causes = std::iter::successors(Some(error), |cause: &&(dyn StdError + 'static)| (*cause).source());
    causes.last().map(ToString::to_string).unwrap_or_default()
}

/// Turns what a database refused into an error about `what`: verb and object.
pub(super) fn failed(what: &str) -> impl Fn(DatabaseError) -> Error {
    move |error| {
        let is_file = matches!(error, DatabaseError::Sqlite(_));
        let (kind, reason) = error.meaning();
        let error = Error::new(kind, format!("{what}: {reason}")).with_source(error);
        match kind {
            ErrorKind::Conflict => error.with_hint(mark::WAYS_ON),
            ErrorKind::Permission if is_file => error
                .with_hint("give this user the state folder, or name another one: --state DIR or EYOT_STATE"),
            ErrorKind::Setup => error.with_hint(
                "look at the address in EYOT_DATABASE; with sslmode=require, SSL_CERT_FILE names the certificates to trust",
            ),
            ErrorKind::Unavailable if !is_file => {
                error.with_hint("look whether the database of EYOT_DATABASE runs, and try again")
            }
            _ => error,
        }
    }
}

/// Returns SQLite's code below this error.
pub(super) fn sqlite_code(error: &Error) -> Option<ErrorCode> {
    let first = StdError::source(error);
    let causes = std::iter::successors(first, |cause: &&(dyn StdError + 'static)| (*cause).source());
    let failed = causes.filter_map(|cause| cause.downcast_ref::<rusqlite::Error>()).last();
    failed.and_then(rusqlite::Error::sqlite_error_code)
}

/// Returns whether an error of a file says that its disk is full, and not a pool's quota.
pub(super) fn is_disk_full(error: &Error) -> bool {
    error.kind() == ErrorKind::Quota && sqlite_code(error).is_some()
}
