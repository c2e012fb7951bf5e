//! Anchors of logs: the last event that a log is known to have had. The log lies elsewhere, so that
//! an older copy of it, or none, is found to be one.

use eyot::Result;
use rusqlite::{OptionalExtension, ToSql, params};

use super::statement::execute;
use super::{Store, failed};

/// The last event that a log is known to have had.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Anchor {
    /// The number of the event.
    pub seq: u64,
    /// The hash of the event, in hexadecimal digits.
    pub hash: String,
    /// Tells whether the log was seen without it later. It is not moved any more.
    pub is_contradicted: bool,
}

const READ: &str = "look the anchor of a log up";
const MOVE: &str = "move the anchor of a log";

impl Store {
    /// Returns the anchor of a log, if it has one.
    pub fn anchor(&self, log: &str) -> Result<Option<Anchor>> {
        self.read(READ, |transaction| {
            let sql = "SELECT seq, hash, is_contradicted FROM anchors WHERE log = ?1";
            let mut statement = transaction.prepare_cached(sql).map_err(failed(READ))?;
            let found = statement.query_row([log], |row| {
                let seq = row.get::<_, i64>(0)?.unsigned_abs();
                Ok(Anchor { seq, hash: row.get(1)?, is_contradicted: row.get(2)? })
            });
            found.optional().map_err(failed(READ))
        })
    }

    /// Moves the anchor of a log, unless another process has moved it since it was `known`. Returns
    /// whether it was moved.
    pub fn move_anchor(&self, log: &str, known: Option<&Anchor>, to: &Anchor) -> Result<bool> {
        let seq = i64::try_from(to.seq).unwrap_or(i64::MAX);
        self.write(MOVE, |transaction| {
            let execute = |sql, row: &[&dyn ToSql]| {
                transaction
                    .prepare_cached(sql)
                    .and_then(|mut statement| statement.execute(row))
                    .map_err(failed(MOVE))
            };
            let changed = match known {
                None => {
                    let sql = "INSERT INTO anchors VALUES (?1, ?2, ?3, ?4) ON CONFLICT DO NOTHING";
                    execute(sql, params![log, seq, to.hash, to.is_contradicted])?
                }
                Some(known) => {
                    let known_seq = i64::try_from(known.seq).unwrap_or(i64::MAX);
                    let sql = "UPDATE anchors SET seq = ?2, hash = ?3, is_contradicted = ?4
                               WHERE log = ?1 AND seq = ?5 AND hash = ?6 AND is_contradicted = 0";
                    execute(sql, params![log, seq, to.hash, to.is_contradicted, known_seq, known.hash])?
                }
            };
            Ok(changed > 0)
        })
    }

    /// Forgets the anchor of a log, which is about to begin anew.
    pub fn forget_anchor(&self, log: &str) -> Result<()> {
        self.write(MOVE, |transaction| {
            execute(transaction, "DELETE FROM anchors WHERE log = ?1", params![log]).map(drop)
        })
    }
}
