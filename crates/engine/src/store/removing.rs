//! Removing: first the row says so, then the provider is asked, then the row goes.

use eyot::internal::now_ms;
use eyot::{Result, SandboxId};

use super::Store;
use super::claim::is_alive;
use super::database::Transaction;
use super::making::{owned_by_other, sandbox_not_found};
use super::owner::Owner;
use super::row::{RowState, SandboxRow, by_id};
use super::statement::execute;
use super::value::values;

impl Store {
    /// This process is about to remove the sandbox: one that is live; one that it makes or removes itself (a make that
    /// failed, a remove that is tried again); or one whose maker or remover has ended. While another process that lives is
    /// at work on it: `conflict`. `not_found` if it is not there (any more).
    pub fn begin_removing(&self, id: &SandboxId) -> Result<SandboxRow> {
        let this = self.owner()?;
        self.write_on_spare("begin to remove a sandbox", |transaction| {
            let row = by_id(transaction, id)?.ok_or_else(|| sandbox_not_found(id))?;
            if let Some(owner) = row.owner.as_ref().filter(|owner| **owner != this)
                && is_alive(transaction, owner, &this)?
            {
                return Err(owned_by_other(&row));
            }
            take_ownership(transaction, id, RowState::Removing, &this)?;
            by_id(transaction, id)?.ok_or_else(|| sandbox_not_found(id))
        })
    }

    /// Begins to remove a sandbox whose maker or remover can't go on. `conflict` if that is not so:
    /// it may be live by now, though its row said otherwise when the caller read it. The caller
    /// holds one claim on it.
    pub fn begin_removing_given_up(&self, id: &SandboxId) -> Result<SandboxRow> {
        let this = self.owner()?;
        self.write_on_spare("begin to remove a sandbox that was given up", |transaction| {
            let row = by_id(transaction, id)?.ok_or_else(|| sandbox_not_found(id))?;
            // A maker ends its claim after its row is live, so a row that still names it, without a claim, was given up.
            if row.state == RowState::Live || !self.is_row_idle(transaction, &row, 1)? {
                return Err(owned_by_other(&row));
            }
            take_ownership(transaction, id, RowState::Removing, &this)?;
            by_id(transaction, id)?.ok_or_else(|| sandbox_not_found(id))
        })
    }

    /// The sandbox is gone, and its name is free. Only its remover may say so (`conflict`). Nothing
    /// happens if the row is gone already.
    pub fn finish_removing(&self, id: &SandboxId) -> Result<()> {
        let this = self.owner()?;
        self.write_on_spare("note that a sandbox was removed", |transaction| {
            let Some(row) = by_id(transaction, id)? else { return Ok(()) };
            if row.state != RowState::Removing || row.owner.as_ref() != Some(&this) {
                return Err(owned_by_other(&row));
            }
            execute(transaction, "DELETE FROM sandboxes WHERE id = ?1", values![id.as_str()])
        })
    }
}

/// Makes this process the one at work on a sandbox.
pub(super) fn take_ownership(
    transaction: &Transaction<'_>,
    id: &SandboxId,
    state: RowState,
    owner: &Owner,
) -> Result<()> {
    let sql = "UPDATE sandboxes SET state = ?2, owner_pid = ?3, owner_start_ticks = ?4, owner_boot_id = ?5, \
         last_change_ms = ?6 WHERE id = ?1";
    let Owner { pid, start_ticks, boot_id } = owner;
    execute(transaction, sql, values![id.as_str(), state.as_str(), *pid, *start_ticks, boot_id, now_ms()])
}
