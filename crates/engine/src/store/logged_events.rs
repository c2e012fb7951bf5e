//! The event log of a database: numbered lines, each with the hash of the one before it. A line is made where it is
//! kept, by one statement, so that servers that append at the same time need no second trip.

use eyot::{Error, ErrorKind, Result};

use super::Store;
use super::database::{Database, Transaction};
use super::database_error::failed;
use super::statement::{count_changed, read_all, read_one};
use super::value::values;
use crate::changes::ChangeWatch;

/// A line with its number.
pub(crate) type NumberedLine = (u64, String);

/// The ends of a log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct LogEnds {
    /// The first line that is kept; one more than `last` if none is.
    pub first: u64,
    /// The last line; 0 if there never was one.
    pub last: u64,
    /// The hash of the last line.
    pub hash: String,
}

const APPEND: &str = "append to the event log";
const READ: &str = "read the event log";
/// The number of lines that are kept, which is looked at once in so many lines.
pub(crate) const MOST_LINES: u64 = 100_000;
const LINES_BETWEEN_LOOKS: u64 = 1_000;
/// Adds a line of which `?1` is all between its number and the hash of the line before.
const ADD: &str = "WITH added AS (
        UPDATE events_end SET seq = seq + 1, previous = hash,
            hash = encode(sha256(convert_to('{\"seq\":' || (seq + 1) || ?1 || hash || '\"}', 'UTF8')), 'hex')
        RETURNING seq, previous, hash)
    INSERT INTO events
        SELECT seq, '{\"seq\":' || seq || ?1 || previous || '\",\"hash\":\"' || hash || '\"}' FROM added
        RETURNING seq, line, pg_notify('eyot_events', '')";

impl Store {
    /// Adds a line. `middle` is all of it between its number and the hash of the line before. Blocks.
    pub(crate) fn append_line(&self, middle: &str) -> Result<NumberedLine> {
        // One statement is a transaction of its own.
        let added = self.in_shared(APPEND, |transaction| {
            read_one(transaction, APPEND, ADD, values![middle], |row| {
                Ok((row.get::<u64>("seq")?, row.get::<String>("line")?))
            })
        })?;
        let (number, line) = added
            .ok_or_else(|| Error::new(ErrorKind::Internal, "append to the event log: no line was made"))?;
        if number % LINES_BETWEEN_LOOKS == 0 {
            let removed = self.in_shared(APPEND, |transaction| {
                let sql = "DELETE FROM events WHERE seq <= ?1";
                count_changed(transaction, APPEND, sql, values![number.saturating_sub(MOST_LINES)])
            });
            // The next look removes them; this line was added.
            if let Err(error) = removed {
                tracing::warn!(%error, "the oldest lines of the event log are kept for longer");
            }
        }
        Ok((number, line))
    }

    /// Returns at most `limit` lines from this number on.
    pub(crate) fn lines(&self, from: u64, limit: usize) -> Result<Vec<NumberedLine>> {
        let sql = "SELECT seq, line FROM events WHERE seq >= ?1 ORDER BY seq LIMIT ?2";
        let limit = u64::try_from(limit).unwrap_or(u64::MAX);
        self.read(READ, |transaction| {
            read_all(transaction, READ, sql, values![from, limit], |row| {
                Ok((row.get("seq")?, row.get("line")?))
            })
        })
    }

    /// Returns the ends of the log.
    pub(crate) fn log_ends(&self) -> Result<LogEnds> {
        let sql = "SELECT seq, hash, coalesce((SELECT min(seq) FROM events), events_end.seq + 1) AS first FROM events_end";
        let ends = self.read(READ, |transaction| {
            read_one(transaction, READ, sql, &[], |row| {
                Ok(LogEnds { first: row.get("first")?, last: row.get("seq")?, hash: row.get("hash")? })
            })
        })?;
        ends.ok_or_else(|| Error::new(ErrorKind::Conflict, "read the event log: its end is gone"))
    }

    /// Tells when a line was added by any process; more often than that.
    pub(crate) fn line_changes(&self) -> Result<ChangeWatch> {
        match &self.database {
            Database::Postgres(database) => Ok(ChangeWatch::of_database(database.presence().event_changes())),
            Database::Sqlite(_) => Err(no_log()),
        }
    }

    /// Does `work`, one statement, which is not repeated. Only in a database.
    fn in_shared<T>(&self, what: &str, work: impl FnOnce(&Transaction<'_>) -> Result<T>) -> Result<T> {
        match &self.database {
            Database::Postgres(database) => {
                database.at_once(|link| work(&Transaction::Postgres(link))).map_err(failed(what))?
            }
            Database::Sqlite(_) => Err(no_log()),
        }
    }
}

fn no_log() -> Error {
    Error::new(ErrorKind::Internal, "use the event log: that of a file lies in a folder of its own")
}
