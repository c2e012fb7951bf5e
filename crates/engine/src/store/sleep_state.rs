//! The sandboxes that are known to sleep. The provider decides whether one sleeps, and an idle one
//! puts itself to sleep unobserved. This notes what was seen, so that of several processes that see
//! it one records it.

use eyot::{Result, SandboxId};
use rusqlite::params;

use super::{Store, failed};

const WHAT: &str = "note that a sandbox sleeps, or is awake";

impl Store {
    /// The sandbox was seen asleep, or awake. Whether that is news; of one that is not there (any more) nothing is.
    pub fn mark_asleep(&self, id: &SandboxId, is_asleep: bool) -> Result<bool> {
        self.write(WHAT, |transaction| {
            let sql = "UPDATE sandboxes SET is_asleep = ?2 WHERE id = ?1 AND is_asleep <> ?2";
            let mut statement = transaction.prepare_cached(sql).map_err(failed(WHAT))?;
            let changed = statement.execute(params![id.as_str(), is_asleep]).map_err(failed(WHAT))?;
            Ok(changed > 0)
        })
    }
}
