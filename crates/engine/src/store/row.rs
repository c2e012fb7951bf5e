//! A sandbox's row.

use eyot::internal::now_ms;
use eyot::{IdleAction, Lifecycle, Result, SandboxId, SandboxName, SandboxSpec, Service};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::Store;
use super::database::Transaction;
use super::database_error::DatabaseError;
use super::owner::Owner;
use super::statement::{read_all, read_one};
use super::value::{DatabaseRow, Value, values};

type ColumnResult<T> = std::result::Result<T, DatabaseError>;

/// The work that is being done on a sandbox.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RowState {
    /// The owner makes it. Whether the provider has it already is not known.
    Making,
    /// It was made, and its removal has not begun. The provider knows whether it runs or sleeps.
    Live,
    /// The owner removes it. Whether the provider still has it is not known.
    Removing,
}

impl RowState {
    pub(super) fn as_str(self) -> &'static str {
        match self {
            Self::Making => "making",
            Self::Live => "live",
            Self::Removing => "removing",
        }
    }

    fn parse(text: &str) -> Option<Self> {
        [Self::Making, Self::Live, Self::Removing].into_iter().find(|state| state.as_str() == text)
    }
}

/// A sandbox that is to be made.
#[derive(Debug, Clone, PartialEq)]
pub struct NewSandbox {
    /// The pool, which must be there ([`Store::put_pool`]).
    pub pool: SandboxName,
    /// The name in the pool.
    pub name: SandboxName,
    /// The id, never used before.
    pub id: SandboxId,
    /// The provider's name.
    pub provider: String,
    /// The sandbox ends with this process.
    pub lives_with_its_process: bool,
    /// The image, as it was named; `None`: none was.
    pub image: Option<String>,
    /// The spec it is made from; quotas count its limits. Kept as JSON, contents of the manifest's
    /// files included, so leave those out unless they are wanted again.
    pub spec: SandboxSpec,
    /// The programs that run in it whenever it is awake.
    pub services: Vec<Service>,
    /// It sleeps after this many idle milliseconds; `None`: never.
    pub sleep_after_ms: Option<u64>,
    /// The time at which its ttl ends, in milliseconds since 1970 (UTC); `None`: never.
    pub deadline_ms: Option<i64>,
    /// The part of the pool's quota of the disk that its snapshots take, in MiB. Not kept.
    pub snapshots_mib: u64,
}

/// A sandbox as the store knows it.
#[derive(Debug, Clone, PartialEq)]
pub struct SandboxRow {
    /// The pool that it belongs to.
    pub pool: SandboxName,
    /// The name, which no other of the pool has.
    pub name: SandboxName,
    /// The id, which no other sandbox has.
    pub id: SandboxId,
    /// Counts the sandboxes that were begun under this name of this pool, from 1. It begins anew when a pool has used a
    /// thousand other names.
    pub generation: u64,
    /// The provider's name.
    pub provider: String,
    /// The process that it ends with; `None`: it ends with none.
    pub process: Option<Owner>,
    /// The image, as it was named; `None`: none was.
    pub image: Option<String>,
    /// The spec it was made from.
    pub spec: SandboxSpec,
    /// The programs that run in it whenever it is awake.
    pub services: Vec<Service>,
    /// The work that is being done on it.
    pub state: RowState,
    /// The process that makes or removes it; `None` for a live one.
    pub owner: Option<Owner>,
    /// It sleeps after this many idle milliseconds; `None`: never.
    pub sleep_after_ms: Option<u64>,
    /// The time at which it was begun, in milliseconds since 1970 (UTC).
    pub created_ms: i64,
    /// The time at which its ttl ends, in milliseconds since 1970 (UTC); `None`: never.
    pub deadline_ms: Option<i64>,
    /// The time at which its row was changed last, in milliseconds since 1970 (UTC).
    pub last_change_ms: i64,
}

/// The reason of an end that came with its process, whenever that was.
pub(crate) const ENDED_WITH_ITS_PROCESS: &str = "it has ended with its process";
/// The beginning of the reasons of an end that nobody saw.
pub(crate) const FOUND_GONE: &str = "it was found to be gone";
const FOUND_GONE_AFTER_IDLING: &str = "it was found to be gone: its idle timeout may have passed";

impl SandboxRow {
    /// Tells whether it is in another process, which runs.
    pub fn is_in_another_process(&self) -> bool {
        let Some(process) = &self.process else { return false };
        let is_this = Owner::this_process().is_ok_and(|this| this == *process);
        !is_this && process.is_alive()
    }

    /// Tells whether it has ended with its process.
    pub fn has_ended_with_its_process(&self) -> bool {
        self.process.as_ref().is_some_and(|process| !process.is_alive())
    }

    /// Tells whether its time to live is over.
    pub fn has_expired(&self) -> bool {
        self.deadline_ms.is_some_and(|deadline| deadline <= now_ms())
    }

    /// Returns the reason why the provider does not have it.
    pub fn why_gone(&self) -> &'static str {
        match () {
            () if self.has_expired() => "its ttl had passed",
            () if ends_when_idle(&self.spec.lifecycle) => FOUND_GONE_AFTER_IDLING,
            () => FOUND_GONE,
        }
    }
}

/// Tells whether a sandbox that nobody uses is destroyed, and not put to sleep.
fn ends_when_idle(lifecycle: &Lifecycle) -> bool {
    let Lifecycle { idle_timeout_ms, on_idle, auto_destroy, .. } = lifecycle;
    idle_timeout_ms.is_some() && *on_idle == IdleAction::Destroy && *auto_destroy
}

const SELECT: &str = "SELECT pool, name, id, generation, provider, process, image, spec, services, state, owner_pid, \
     owner_start_ticks, owner_boot_id, sleep_after_ms, created_ms, deadline_ms, last_change_ms FROM sandboxes";
const WHAT: &str = "look sandboxes up";

impl Store {
    /// The sandboxes of a pool, by name; none of a pool that there is not.
    pub fn sandboxes(&self, pool: &SandboxName) -> Result<Vec<SandboxRow>> {
        self.read(WHAT, |transaction| {
            select(transaction, "WHERE pool = ?1 ORDER BY name", values![pool.as_str()])
        })
    }

    /// The sandboxes of all pools, by pool and name.
    pub fn all_sandboxes(&self) -> Result<Vec<SandboxRow>> {
        self.read(WHAT, |transaction| select(transaction, "ORDER BY pool, name", &[]))
    }

    /// The sandbox of this id, if there is one.
    pub fn sandbox(&self, id: &SandboxId) -> Result<Option<SandboxRow>> {
        self.read(WHAT, |transaction| by_id(transaction, id))
    }

    /// The sandbox of this name, if there is one.
    pub fn sandbox_named(&self, pool: &SandboxName, name: &SandboxName) -> Result<Option<SandboxRow>> {
        self.read(WHAT, |transaction| by_name(transaction, pool, name))
    }

    /// The live sandboxes whose ttl has ended by this time (in milliseconds since 1970, UTC), the longest first.
    pub fn expired(&self, now_ms: i64) -> Result<Vec<SandboxRow>> {
        let rest = "WHERE state = 'live' AND deadline_ms <= ?1 ORDER BY deadline_ms";
        self.read(WHAT, |transaction| select(transaction, rest, values![now_ms]))
    }
}

/// The rows that `rest` of the statement leaves.
pub(super) fn select(transaction: &Transaction<'_>, rest: &str, values: &[Value]) -> Result<Vec<SandboxRow>> {
    read_all(transaction, WHAT, &format!("{SELECT} {rest}"), values, from_row)
}

pub(super) fn by_id(transaction: &Transaction<'_>, id: &SandboxId) -> Result<Option<SandboxRow>> {
    read_one(transaction, WHAT, &format!("{SELECT} WHERE id = ?1"), values![id.as_str()], from_row)
}

pub(super) fn by_name(
    transaction: &Transaction<'_>,
    pool: &SandboxName,
    name: &SandboxName,
) -> Result<Option<SandboxRow>> {
    let values = values![pool.as_str(), name.as_str()];
    read_one(transaction, WHAT, &format!("{SELECT} WHERE pool = ?1 AND name = ?2"), values, from_row)
}

fn from_row(row: &DatabaseRow) -> ColumnResult<SandboxRow> {
    let state: String = row.get("state")?;
    Ok(SandboxRow {
        pool: parsed(row, "pool", |text| SandboxName::parse(text).ok())?,
        name: parsed(row, "name", |text| SandboxName::parse(text).ok())?,
        id: parsed(row, "id", |text| SandboxId::parse(text).ok())?,
        generation: row.get("generation")?,
        provider: row.get("provider")?,
        process: process(row)?,
        image: row.get("image")?,
        spec: json(row, "spec")?,
        services: json(row, "services")?,
        state: RowState::parse(&state).ok_or_else(|| DatabaseError::unreadable("state", state.into()))?,
        owner: owner(row)?,
        sleep_after_ms: row.get("sleep_after_ms")?,
        created_ms: row.get("created_ms")?,
        deadline_ms: row.get("deadline_ms")?,
        last_change_ms: row.get("last_change_ms")?,
    })
}

/// Reads the process that a sandbox lives with, if it lives with one.
pub(super) fn process(row: &DatabaseRow) -> ColumnResult<Option<Owner>> {
    let written: Option<String> = row.get("process")?;
    written.map(|_| json(row, "process")).transpose()
}

pub(super) fn owner(row: &DatabaseRow) -> ColumnResult<Option<Owner>> {
    let Some(pid) = row.get("owner_pid")? else { return Ok(None) };
    let (start_ticks, boot_id) = (row.get("owner_start_ticks")?, row.get("owner_boot_id")?);
    Ok(Some(Owner { pid, start_ticks, boot_id }))
}

pub(super) fn parsed<T>(
    row: &DatabaseRow,
    column: &str,
    parse: impl Fn(&str) -> Option<T>,
) -> ColumnResult<T> {
    let text: String = row.get(column)?;
    parse(&text).ok_or_else(|| DatabaseError::unreadable(column, text.into()))
}

pub(super) fn json<T: DeserializeOwned>(row: &DatabaseRow, column: &str) -> ColumnResult<T> {
    let text: String = row.get(column)?;
    serde_json::from_str(&text).map_err(|error| DatabaseError::unreadable(column, error.into()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_idle_sandbox_that_sleeps_or_has_no_deadlines_does_not_end() {
        let destroyed = Lifecycle { idle_timeout_ms: Some(1000), ..Lifecycle::default() };
        assert!(ends_when_idle(&destroyed));
        for kept in [
            Lifecycle { on_idle: IdleAction::Sleep, ..destroyed.clone() },
            Lifecycle { auto_destroy: false, ..destroyed.clone() },
            Lifecycle { idle_timeout_ms: None, ..destroyed },
        ] {
            assert!(!ends_when_idle(&kept), "{kept:?}");
        }
    }
}
