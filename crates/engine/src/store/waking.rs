//! Waking: of all who want a sandbox awake one wakes it and starts its services, and what a killed one has left half done
//! is known.

use std::sync::Arc;

use eyot::{Result, SandboxId};

use super::Store;
use super::claim::Claim;
use super::database::Transaction;
use super::making::sandbox_not_found;
use super::owner::Owner;
use super::row::{SandboxRow, by_id, owner, select};
use super::statement::{execute, read_one};
use super::value::values;

/// The turn to wake a sandbox.
#[derive(Debug)]
pub enum WakingTurn {
    /// Ours: say [`Store::finish_waking`] when it is done, or has failed.
    Ours(Claim),
    /// Ours, after the previous waker stopped in the middle: some services may run.
    TakenOver(Claim),
    /// Somebody else's, of this process or another one.
    Theirs,
}

const WHAT: &str = "take turns to wake a sandbox";

impl Store {
    /// Asks for the turn to wake this sandbox. `not_found` if it is not there (any more).
    pub fn begin_waking(self: &Arc<Self>, id: &SandboxId) -> Result<WakingTurn> {
        let this = self.owner()?;
        // Held before the row says so, and not within the transaction: a claim that is given up writes to the store.
        let claim = self.claim(id);
        let begun = self.write(WHAT, |transaction| {
            by_id(transaction, id)?.ok_or_else(|| sandbox_not_found(id))?;
            let before = waker(transaction, id)?;
            if let Some(other) = &before
                && !self.is_idle(transaction, other, id, 1)?
            {
                return Ok(None);
            }
            let sql = "INSERT INTO wakes VALUES (?1, ?2, ?3, ?4) ON CONFLICT (id) DO UPDATE SET \
                 owner_pid = excluded.owner_pid, owner_start_ticks = excluded.owner_start_ticks, \
                 owner_boot_id = excluded.owner_boot_id";
            execute(transaction, sql, values![id.as_str(), this.pid, this.start_ticks, &this.boot_id])?;
            Ok(Some(before.is_some()))
        });
        Ok(match begun? {
            None => WakingTurn::Theirs,
            Some(true) => WakingTurn::TakenOver(claim),
            Some(false) => WakingTurn::Ours(claim),
        })
    }

    /// Ends the turn. Nothing happens if it is not this process's any more.
    pub fn finish_waking(&self, id: &SandboxId) -> Result<()> {
        let Owner { pid, start_ticks, boot_id } = self.owner()?;
        self.write(WHAT, |transaction| {
            let sql = "DELETE FROM wakes WHERE id = ?1 AND owner_pid = ?2 AND owner_start_ticks = ?3 \
                 AND owner_boot_id = ?4";
            execute(transaction, sql, values![id.as_str(), pid, start_ticks, &boot_id])
        })
    }

    /// The live sandboxes whose waker could not go on in the middle of it. Nothing is taken over: ask for the turn.
    pub fn abandoned_wakes(&self) -> Result<Vec<SandboxRow>> {
        self.read(WHAT, |transaction| {
            let rows = select(transaction, "WHERE state = 'live' AND id IN (SELECT id FROM wakes)", &[])?;
            let mut left = Vec::new();
            for row in rows {
                if let Some(waker) = waker(transaction, &row.id)?
                    && self.is_idle(transaction, &waker, &row.id, 0)?
                {
                    left.push(row);
                }
            }
            Ok(left)
        })
    }
}

fn waker(transaction: &Transaction<'_>, id: &SandboxId) -> Result<Option<Owner>> {
    let sql = "SELECT owner_pid, owner_start_ticks, owner_boot_id FROM wakes WHERE id = ?1";
    read_one(transaction, WHAT, sql, values![id.as_str()], owner).map(Option::flatten)
}
