//! The sandboxes that are known to sleep. The provider decides whether one sleeps, and an idle one
//! puts itself to sleep unobserved. This notes what was seen, so that of several processes that see
//! it one records it.

use eyot::{Result, SandboxId};

use super::Store;
use super::statement::count_changed;
use super::value::values;

const WHAT: &str = "note that a sandbox sleeps, or is awake";

impl Store {
    /// The sandbox was seen asleep, or awake. Whether that is news; of one that is not there (any more) nothing is.
    pub fn mark_asleep(&self, id: &SandboxId, is_asleep: bool) -> Result<bool> {
        self.write(WHAT, |transaction| {
            let sql = "UPDATE sandboxes SET is_asleep = ?2 WHERE id = ?1 AND is_asleep <> ?2";
            Ok(count_changed(transaction, WHAT, sql, values![id.as_str(), is_asleep])? > 0)
        })
    }
}
