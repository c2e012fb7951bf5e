//! Anchors of logs: the last event that a log is known to have had. The log lies elsewhere, so that
//! an older copy of it, or none, is found to be one.

use eyot::Result;

use super::Store;
use super::statement::{count_changed, execute, read_one};
use super::value::values;

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
            read_one(transaction, READ, sql, values![log], |row| {
                let (hash, is_contradicted) = (row.get("hash")?, row.get("is_contradicted")?);
                Ok(Anchor { seq: row.get("seq")?, hash, is_contradicted })
            })
        })
    }

    /// Moves the anchor of a log, unless another process has moved it since it was `known`. Returns
    /// whether it was moved.
    pub fn move_anchor(&self, log: &str, known: Option<&Anchor>, to: &Anchor) -> Result<bool> {
        let Anchor { seq, hash, is_contradicted } = to;
        self.write(MOVE, |transaction| {
            let changed = match known {
                None => {
                    let sql = "INSERT INTO anchors VALUES (?1, ?2, ?3, ?4) ON CONFLICT DO NOTHING";
                    count_changed(transaction, MOVE, sql, values![log, *seq, hash, *is_contradicted])?
                }
                Some(known) => {
                    let sql = "UPDATE anchors SET seq = ?2, hash = ?3, is_contradicted = ?4
                               WHERE log = ?1 AND seq = ?5 AND hash = ?6 AND is_contradicted = 0";
                    let values = values![log, *seq, hash, *is_contradicted, known.seq, &known.hash];
                    count_changed(transaction, MOVE, sql, values)?
                }
            };
            Ok(changed > 0)
        })
    }

    /// Forgets the anchor of a log, which is about to begin anew.
    pub fn forget_anchor(&self, log: &str) -> Result<()> {
        self.write(MOVE, |transaction| {
            execute(transaction, "DELETE FROM anchors WHERE log = ?1", values![log])
        })
    }
}
