//! Pools: their names, and what they were opened with.

use eyot::internal::now_ms;
use eyot::{Error, ErrorKind, Result, SandboxName};
use serde_json::Value;

use super::Store;
use super::database::Transaction;
use super::database_error::DatabaseError;
use super::row;
use super::statement::{execute, read_all, read_one};
use super::value::{DatabaseRow, json, values};

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
            read_all(transaction, WHAT, sql, &[], from_row)
        })
    }

    /// Forgets a pool without sandboxes; with some: `conflict`. Nothing happens if there is no such pool. How often its names
    /// were used is not forgotten with it.
    pub fn remove_pool(&self, name: &SandboxName) -> Result<()> {
        self.write_on_spare("forget a pool", |transaction| {
            let sql = "SELECT count(*) AS sandboxes FROM sandboxes WHERE pool = ?1";
            let count = |row: &DatabaseRow| row.get("sandboxes");
            let sandboxes: u64 =
                read_one(transaction, WHAT, sql, values![name.as_str()], count)?.unwrap_or(0);
            if sandboxes > 0 {
                let message = format!("forget pool `{name}`: it has {sandboxes} sandboxes");
                return Err(Error::new(ErrorKind::Conflict, message).with_hint("remove them first"));
            }
            execute(transaction, "DELETE FROM pools WHERE name = ?1", values![name.as_str()])
        })
    }
}

/// Notes a pool.
pub(super) fn put(transaction: &Transaction<'_>, name: &SandboxName, options: &Value) -> Result<()> {
    let sql =
        "INSERT INTO pools VALUES (?1, ?2, ?3) ON CONFLICT (name) DO UPDATE SET options = excluded.options";
    execute(transaction, sql, values![name.as_str(), now_ms(), json(options)?])
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
    read_one(transaction, WHAT, sql, values![name.as_str()], from_row)
}

fn from_row(row: &DatabaseRow) -> std::result::Result<PoolRow, DatabaseError> {
    Ok(PoolRow {
        name: row::parsed(row, "name", |text| SandboxName::parse(text).ok())?,
        created_ms: row.get("created_ms")?,
        options: row::json(row, "options")?,
    })
}
