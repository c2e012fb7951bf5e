//! Making: a name is taken, within the pool's quotas, before the provider is asked for anything.

use eyot::internal::now_ms;
use eyot::{Error, ErrorKind, Result, SandboxId};

use super::database::Transaction;
use super::owner::Owner;
use super::row::{NewSandbox, RowState, SandboxRow, by_id, by_name};
use super::statement::{execute, read_one};
use super::value::{json, values};
use super::{Store, pools, quota};
use crate::pool_options::PoolQuotas;

/// The result of asking for a name.
#[derive(Debug, Clone, PartialEq)]
pub enum NameReservation {
    /// It is ours to make: the row is in the state `making` and this process owns it.
    New(Box<SandboxRow>),
    /// The name is taken, by this one, in whatever state it is. Nothing was changed, and no quota was looked at.
    InUse(Box<SandboxRow>),
}

const WHAT: &str = "take a sandbox's name";
/// The most names of a pool of which it is remembered how often they were used, when they are free.
const MOST_NAMES: u32 = 1000;

impl Store {
    /// Takes a name for a sandbox that this process is about to make. Of all processes that ask for one name at a time one
    /// gets it. Over a quota: `quota`, with what is used and what was asked for; so on a full disk. Without the pool: `not_found`.
    pub fn begin_making(&self, new: &NewSandbox, quotas: &PoolQuotas) -> Result<NameReservation> {
        let owner = self.owner()?;
        self.write(WHAT, |transaction| self.reserve(transaction, new, quotas, &owner))
    }

    /// Notes a pool with its options and takes a name in it, as [`Store::begin_making`] does: both, or neither.
    pub fn begin_making_in_new_pool(
        &self,
        new: &NewSandbox,
        quotas: &PoolQuotas,
        pool_options: &serde_json::Value,
    ) -> Result<NameReservation> {
        let owner = self.owner()?;
        self.write(WHAT, |transaction| {
            pools::put(transaction, &new.pool, pool_options)?;
            self.reserve(transaction, new, quotas, &owner)
        })
    }

    fn reserve(
        &self,
        transaction: &Transaction<'_>,
        new: &NewSandbox,
        quotas: &PoolQuotas,
        owner: &Owner,
    ) -> Result<NameReservation> {
        if let Some(there) = by_name(transaction, &new.pool, &new.name)? {
            return Ok(NameReservation::InUse(Box::new(there)));
        }
        self.require_room(WHAT)?;
        pools::require(transaction, &new.pool)?;
        quota::enforce(transaction, new, quotas)?;
        let generation = next_generation(transaction, new)?;
        insert(transaction, new, generation, owner)?;
        let row = by_id(transaction, &new.id)?;
        row.map(|row| NameReservation::New(Box::new(row))).ok_or_else(|| sandbox_not_found(&new.id))
    }

    /// Takes a name for a sandbox that is there already; the pool is noted if need be. Returns
    /// whether it did: both the name and the id must be free.
    pub fn adopt(&self, new: &NewSandbox, pool_options: &serde_json::Value) -> Result<bool> {
        let owner = self.owner()?;
        self.write("adopt a sandbox", |transaction| {
            let is_taken = by_name(transaction, &new.pool, &new.name)?.is_some()
                || by_id(transaction, &new.id)?.is_some();
            if is_taken {
                return Ok(false);
            }
            match pools::require(transaction, &new.pool) {
                Err(error) if error.kind() == ErrorKind::NotFound => {
                    pools::put(transaction, &new.pool, pool_options)?;
                }
                required => required?,
            }
            let generation = next_generation(transaction, new)?;
            insert(transaction, new, generation, &owner)?;
            make_live(transaction, &new.id)?;
            Ok(true)
        })
    }

    /// Marks the sandbox as made: it is live from now on and has no owner. Only its maker may say
    /// so (`conflict`); `not_found` if it is not there (any more).
    pub fn finish_making(&self, id: &SandboxId) -> Result<SandboxRow> {
        let owner = self.owner()?;
        self.write("note that a sandbox was made", |transaction| {
            let row = by_id(transaction, id)?.ok_or_else(|| sandbox_not_found(id))?;
            if row.state != RowState::Making || row.owner.as_ref() != Some(&owner) {
                return Err(owned_by_other(&row));
            }
            make_live(transaction, id)?;
            by_id(transaction, id)?.ok_or_else(|| sandbox_not_found(id))
        })
    }
}

fn make_live(transaction: &Transaction<'_>, id: &SandboxId) -> Result<()> {
    let sql = "UPDATE sandboxes SET state = 'live', owner_pid = NULL, owner_start_ticks = NULL, \
         owner_boot_id = NULL, last_change_ms = ?2 WHERE id = ?1";
    execute(transaction, sql, values![id.as_str(), now_ms()])
}

fn next_generation(transaction: &Transaction<'_>, new: &NewSandbox) -> Result<u64> {
    let sql = "INSERT INTO generations VALUES (?1, ?2, 1) \
         ON CONFLICT (pool, name) DO UPDATE SET generation = generations.generation + 1 RETURNING generation";
    let values = values![new.pool.as_str(), new.name.as_str()];
    let generation = read_one(transaction, WHAT, sql, values, |row| row.get("generation"))?.unwrap_or(1);
    if generation == 1 {
        forget_names(transaction, new)?;
    }
    Ok(generation)
}

/// Forgets how often names were used that are free, once there are too many: names are the callers' to choose.
fn forget_names(transaction: &Transaction<'_>, new: &NewSandbox) -> Result<()> {
    let sql = "DELETE FROM generations WHERE pool = ?1 AND name != ?2 \
         AND (SELECT count(*) FROM generations WHERE pool = ?1) > ?3 \
         AND name NOT IN (SELECT name FROM sandboxes WHERE pool = ?1)";
    execute(transaction, sql, values![new.pool.as_str(), new.name.as_str(), MOST_NAMES])
}

fn insert(transaction: &Transaction<'_>, new: &NewSandbox, generation: u64, owner: &Owner) -> Result<()> {
    if by_id(transaction, &new.id)?.is_some() {
        let message = format!("take a sandbox's name: the id {} is in use", new.id);
        return Err(Error::new(ErrorKind::AlreadyExists, message));
    }
    let now = now_ms();
    let sql = "INSERT INTO sandboxes (pool, name, id, generation, provider, image, spec, services, state, owner_pid, \
         owner_start_ticks, owner_boot_id, sleep_after_ms, created_ms, deadline_ms, last_change_ms, memory_mib, \
         disk_mib, pids, process) \
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, 'making', ?9, ?10, ?11, ?12, ?13, ?14, ?13, ?15, ?16, ?17, ?18)";
    let values = values![
        new.pool.as_str(),
        new.name.as_str(),
        new.id.as_str(),
        generation,
        &new.provider,
        &new.image,
        json(&new.spec)?,
        json(&new.services)?,
        owner.pid,
        owner.start_ticks,
        &owner.boot_id,
        new.sleep_after_ms,
        now,
        new.deadline_ms,
        new.spec.limits.memory_mib,
        new.spec.limits.disk_mib,
        new.spec.limits.pids,
        new.lives_with_its_process.then(|| json(owner)).transpose()?,
    ];
    execute(transaction, sql, values)
}

pub(super) fn sandbox_not_found(id: &SandboxId) -> Error {
    Error::new(ErrorKind::NotFound, format!("there is no sandbox `{id}`"))
}

/// Makes the error for a row that this process does not own.
pub(super) fn owned_by_other(row: &SandboxRow) -> Error {
    let SandboxRow { pool, name, .. } = row;
    let state = match row.state {
        RowState::Making => "being made",
        RowState::Live => "made",
        RowState::Removing => "being removed",
    };
    let message = match &row.owner {
        Some(owner) if owner.server().is_some() => {
            format!("sandbox `{name}` of pool `{pool}` is {state} by another server")
        }
        Some(owner) => format!("sandbox `{name}` of pool `{pool}` is {state} by process {}", owner.pid),
        None => format!("sandbox `{name}` of pool `{pool}` is {state} already"),
    };
    let hint = match row.state {
        RowState::Removing => "it is gone once that has ended; `eyot ls` shows the sandboxes that are there",
        RowState::Making | RowState::Live => "wait until that has ended, and try again",
    };
    Error::new(ErrorKind::Conflict, message).with_hint(hint)
}
