//! Pools: their names, and what they were opened with.

use eyot::internal::now_ms;
use eyot::{Error, ErrorKind, Result, SandboxName};
use rusqlite::{OptionalExtension, Row, Transaction, params};
use serde_json::Value;

use super::row;
use super::statement::{execute, json};
use super::{Store, failed};

/// A pool as the store knows it.
#[derive(Debug, Clone, PartialEq)]
pub struct PoolRow {
    /// The name.
    pub name: SandboxName,
    /// The time at which it was first put there, in milliseconds since 1970 (UTC).
    pub created_ms: i64,
    /// The options that it was opened with last.
    pub options: Value,
}

const WHAT: &str = "look a pool up";

impl Store {
    /// Notes a pool with its options; those of one that is there are replaced.
    pub fn put_pool(&self, name: &SandboxName, options: &Value) -> Result<PoolRow> {
        self.write("note a pool", |transaction| {
            put(transaction, name, options)?;
            by_name(transaction, name)?.ok_or_else(|| not_found(name))
        })
    }

    /// The pool of this name, if there is one.
    pub fn pool(&self, name: &SandboxName) -> Result<Option<PoolRow>> {
        self.read(WHAT, |transaction| by_name(transaction, name))
    }

    /// All pools, by name.
    pub fn pools(&self) -> Result<Vec<PoolRow>> {
        self.read(WHAT, |transaction| {
            let sql = "SELECT name, created_ms, options FROM pools ORDER BY name";
            let mut statement = transaction.prepare_cached(sql).map_err(failed(WHAT))?;
            let rows = statement.query_map([], from_row).map_err(failed(WHAT))?;
            rows.collect::<rusqlite::Result<_>>().map_err(failed(WHAT))
        })
    }

    /// Forgets a pool without sandboxes; with some: `conflict`. Nothing happens if there is no such pool. How often its names
    /// were used is not forgotten with it.
    pub fn remove_pool(&self, name: &SandboxName) -> Result<()> {
        self.write_on_spare("forget a pool", |transaction| {
            let sql = "SELECT count(*) FROM sandboxes WHERE pool = ?1";
            let sandboxes: u64 =
                transaction.query_row(sql, [name.as_str()], |row| row.get(0)).map_err(failed(WHAT))?;
            if sandboxes > 0 {
                let message = format!("forget pool `{name}`: it has {sandboxes} sandboxes");
                return Err(Error::new(ErrorKind::Conflict, message).with_hint("remove them first"));
            }
            execute(transaction, "DELETE FROM pools WHERE name = ?1", [name.as_str()])
        })
    }
}

/// Notes a pool.
pub(super) fn put(transaction: &Transaction<'_>, name: &SandboxName, options: &Value) -> Result<()> {
    let sql = "INSERT INTO pools VALUES (?1, ?2, ?3) ON CONFLICT DO UPDATE SET options = excluded.options";
    execute(transaction, sql, params![name.as_str(), now_ms(), json(options)?])
}

/// Refuses a pool that is not there.
pub(super) fn require(transaction: &Transaction<'_>, name: &SandboxName) -> Result<()> {
    by_name(transaction, name)?.map(drop).ok_or_else(|| not_found(name))
}

fn not_found(name: &SandboxName) -> Error {
    Error::new(ErrorKind::NotFound, format!("the store has no pool `{name}`"))
}

fn by_name(transaction: &Transaction<'_>, name: &SandboxName) -> Result<Option<PoolRow>> {
    let sql = "SELECT name, created_ms, options FROM pools WHERE name = ?1";
    let mut statement = transaction.prepare_cached(sql).map_err(failed(WHAT))?;
    statement.query_row([name.as_str()], from_row).optional().map_err(failed(WHAT))
}

fn from_row(row: &Row<'_>) -> rusqlite::Result<PoolRow> {
    Ok(PoolRow {
        name: row::parsed(row, "name", |text| SandboxName::parse(text).ok())?,
        created_ms: row.get("created_ms")?,
        options: row::json(row, "options")?,
    })
}
