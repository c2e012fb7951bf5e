//! API keys: whose they are, which pools they open, and the hash by which one that is shown is known.

use eyot::internal::now_ms;
use eyot::{Error, ErrorKind, Result, SandboxName};
use rusqlite::{Connection, OptionalExtension, Row, Transaction, params};
use serde::Serialize;

use super::row;
use super::statement::{execute, json};
use super::{Store, failed};

/// The facts about an API key.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct KeyRow {
    /// The id, which is no secret.
    pub id: String,
    /// The name; of the keys that are not revoked no other has it.
    pub name: SandboxName,
    /// The pools that it opens, at least one; the first is meant where a request names none.
    pub pools: Vec<SandboxName>,
    /// The time at which it was made, in milliseconds since 1970 (UTC).
    pub created_ms: i64,
    /// The time at which it was revoked, in milliseconds since 1970 (UTC); `None`: it is in use.
    pub revoked_ms: Option<i64>,
}

impl KeyRow {
    /// Returns whether it opens this pool.
    pub fn opens(&self, pool: &SandboxName) -> bool {
        self.pools.contains(pool)
    }
}

const WHAT: &str = "look a key up";
const SELECT: &str = "SELECT id, name, pools, created_ms, revoked_ms FROM api_keys";

impl Store {
    /// Notes a key by the SHA-256 of its secret. `invalid` without a pool; `already_exists` if a key of that name is in use.
    pub fn add_key(
        &self,
        id: &str,
        name: &SandboxName,
        pools: &[SandboxName],
        hash: [u8; 32],
    ) -> Result<KeyRow> {
        if pools.is_empty() {
            return Err(Error::invalid("pools", "must name at least one pool"));
        }
        self.write("note a key", |transaction| {
            if active_key(transaction, name.as_str())?.is_some() {
                let message = format!("make a key: the name `{name}` is in use");
                return Err(Error::new(ErrorKind::AlreadyExists, message)
                    .with_hint(format!("take another name, or: eyot keys revoke {name}")));
            }
            let sql = "INSERT INTO api_keys VALUES (?1, ?2, ?3, ?4, ?5, NULL)";
            execute(transaction, sql, params![id, name.as_str(), hash, json(&pools)?, now_ms()])?;
            active_key(transaction, id)?.ok_or_else(|| not_found(id))
        })
    }

    /// All keys, the oldest first, revoked ones included.
    pub fn keys(&self) -> Result<Vec<KeyRow>> {
        self.read(WHAT, |transaction| {
            let sql = format!("{SELECT} ORDER BY created_ms, id");
            let mut statement = transaction.prepare_cached(&sql).map_err(failed(WHAT))?;
            let rows = statement.query_map([], from_row).map_err(failed(WHAT))?;
            rows.collect::<rusqlite::Result<_>>().map_err(failed(WHAT))
        })
    }

    /// The key in use with this hash.
    pub fn key_of_hash(&self, hash: [u8; 32]) -> Result<Option<KeyRow>> {
        self.read(WHAT, |transaction| key_by_hash(transaction, hash))
    }

    /// The same in some microseconds, without waiting for anybody; `None` while somebody in this process uses the store. For
    /// async code, where a thread that may block costs more than the look.
    pub fn key_of_hash_at_once(&self, hash: [u8; 32]) -> Option<Result<Option<KeyRow>>> {
        self.read_at_once(|connection| key_by_hash(connection, hash))
    }

    /// Revokes the key in use with this id or name; `not_found` if there is none.
    pub fn revoke_key(&self, id_or_name: &str) -> Result<KeyRow> {
        self.write_on_spare("revoke a key", |transaction| {
            let row = active_key(transaction, id_or_name)?.ok_or_else(|| not_found(id_or_name))?;
            let now = now_ms();
            execute(transaction, "UPDATE api_keys SET revoked_ms = ?2 WHERE id = ?1", params![row.id, now])?;
            Ok(KeyRow { revoked_ms: Some(now), ..row })
        })
    }
}

fn key_by_hash(connection: &Connection, hash: [u8; 32]) -> Result<Option<KeyRow>> {
    let sql = format!("{SELECT} WHERE hash = ?1 AND revoked_ms IS NULL");
    let mut statement = connection.prepare_cached(&sql).map_err(failed(WHAT))?;
    statement.query_row([hash], from_row).optional().map_err(failed(WHAT))
}

fn active_key(transaction: &Transaction<'_>, id_or_name: &str) -> Result<Option<KeyRow>> {
    let sql = format!("{SELECT} WHERE (id = ?1 OR name = ?1) AND revoked_ms IS NULL");
    let mut statement = transaction.prepare_cached(&sql).map_err(failed(WHAT))?;
    statement.query_row([id_or_name], from_row).optional().map_err(failed(WHAT))
}

fn not_found(id_or_name: &str) -> Error {
    Error::new(ErrorKind::NotFound, format!("there is no key `{id_or_name}` in use"))
        .with_hint("`eyot keys ls` shows the keys there are")
}

fn from_row(row: &Row<'_>) -> rusqlite::Result<KeyRow> {
    Ok(KeyRow {
        id: row.get("id")?,
        name: row::parsed(row, "name", |text| SandboxName::parse(text).ok())?,
        pools: row::json(row, "pools")?,
        created_ms: row.get("created_ms")?,
        revoked_ms: row.get("revoked_ms")?,
    })
}
