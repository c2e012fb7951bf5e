//! Changes of a sandbox that is there: its labels and deadlines.

use eyot::internal::now_ms;
use eyot::{Result, SandboxId, SandboxSpec};

use super::Store;
use super::making::sandbox_not_found;
use super::row::{SandboxRow, by_id};
use super::statement::execute;
use super::value::{json, values};

impl Store {
    /// Changes what a sandbox was made from, as far as it is remembered, and with it when its ttl ends. `not_found` if the
    /// sandbox is not there (any more).
    pub fn change_spec(&self, id: &SandboxId, change: impl FnOnce(&mut SandboxSpec)) -> Result<SandboxRow> {
        self.write("change a sandbox", |transaction| {
            let mut row = by_id(transaction, id)?.ok_or_else(|| sandbox_not_found(id))?;
            change(&mut row.spec);
            let lifecycle = &row.spec.lifecycle;
            let ttl_ms = lifecycle.ttl_ms.filter(|_| lifecycle.auto_destroy);
            let ends = |ttl_ms: u64| row.created_ms.saturating_add(i64::try_from(ttl_ms).unwrap_or(i64::MAX));
            row.deadline_ms = ttl_ms.map(ends);
            let sql = "UPDATE sandboxes SET spec = ?2, deadline_ms = ?3, last_change_ms = ?4 WHERE id = ?1";
            execute(transaction, sql, values![id.as_str(), json(&row.spec)?, row.deadline_ms, now_ms()])?;
            Ok(row)
        })
    }
}
