//! Facts that the servers of a database agree on: whose sandboxes these are, and whose turn it is. A store in a file has
//! neither, and refuses both.

use std::time::Duration;

use eyot::{Error, ErrorKind, Result};

use super::Store;
use super::statement::{count_changed, execute, read_one};
use super::value::values;

const OWNER: &str = "look whose sandboxes these are";
const TURN: &str = "take turns among servers";

impl Store {
    /// Notes whose sandboxes the store has, such as a signing key. `conflict`: it has another one's, which this server would
    /// take for gone.
    pub fn require_sandboxes_of(&self, owner: &str) -> Result<()> {
        self.write(OWNER, |transaction| {
            let sql = "INSERT INTO sandbox_owner (owner) VALUES (?1) ON CONFLICT DO NOTHING";
            execute(transaction, sql, values![owner])?;
            let sql = "SELECT owner FROM sandbox_owner";
            let noted = read_one(transaction, OWNER, sql, &[], |row| row.get::<String>("owner"))?;
            match noted {
                Some(noted) if noted != owner => {
                    let message = format!("the database has the sandboxes of {noted}, and this is {owner}");
                    Err(Error::new(ErrorKind::Conflict, message)
                        .with_hint("use the signing key of the other servers, or another database"))
                }
                _ => Ok(()),
            }
        })
    }

    /// Takes a turn at some work that one server at a time does. Returns whether it is ours, for this time.
    pub fn take_turn(&self, work: &str, time: Duration) -> Result<bool> {
        let sql = "INSERT INTO turns SELECT ?1, now.ms + ?2 FROM \
                       (SELECT (extract(epoch FROM clock_timestamp()) * 1000)::bigint AS ms) AS now \
                   ON CONFLICT (work) DO UPDATE SET until_ms = excluded.until_ms \
                       WHERE turns.until_ms <= excluded.until_ms - ?2";
        let time_ms = u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
        self.write(TURN, |transaction| Ok(count_changed(transaction, TURN, sql, values![work, time_ms])? > 0))
    }
}
