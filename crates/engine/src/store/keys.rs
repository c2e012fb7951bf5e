//! API keys: whose they are, which pools they open, and the hash by which one that is shown is known.

use eyot::internal::now_ms;
use eyot::{Error, ErrorKind, Result, SandboxName};
use serde::Serialize;

use super::Store;
use super::database::Transaction;
use super::database_error::DatabaseError;
use super::row;
use super::statement::{execute, read_all, read_one};
use super::value::{DatabaseRow, json, values};

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
            execute(transaction, sql, values![id, name.as_str(), hash, json(&pools)?, now_ms()])?;
            active_key(transaction, id)?.ok_or_else(|| not_found(id))
        })
    }

    /// All keys, the oldest first, revoked ones included.
    pub fn keys(&self) -> Result<Vec<KeyRow>> {
        self.read(WHAT, |transaction| {
            let sql = format!("{SELECT} ORDER BY created_ms, id");
            read_all(transaction, WHAT, &sql, &[], from_row)
        })
    }

    /// The key in use with this hash.
    pub fn key_of_hash(&self, hash: [u8; 32]) -> Result<Option<KeyRow>> {
        self.read(WHAT, |transaction| key_by_hash(transaction, hash))
    }

    /// The same in some microseconds, without waiting for anybody; `None` while somebody in this process uses the store, and if it lies in a
    /// database. For async code, where a thread that may block costs more than the look.
    pub fn key_of_hash_at_once(&self, hash: [u8; 32]) -> Option<Result<Option<KeyRow>>> {
        self.read_at_once(|transaction| key_by_hash(transaction, hash))
    }

    /// Revokes the key in use with this id or name; `not_found` if there is none.
    pub fn revoke_key(&self, id_or_name: &str) -> Result<KeyRow> {
        self.write_on_spare("revoke a key", |transaction| {
            let row = active_key(transaction, id_or_name)?.ok_or_else(|| not_found(id_or_name))?;
            let now = now_ms();
            execute(transaction, "UPDATE api_keys SET revoked_ms = ?2 WHERE id = ?1", values![&row.id, now])?;
            Ok(KeyRow { revoked_ms: Some(now), ..row })
        })
    }
}

fn key_by_hash(transaction: &Transaction<'_>, hash: [u8; 32]) -> Result<Option<KeyRow>> {
    let sql = format!("{SELECT} WHERE hash = ?1 AND revoked_ms IS NULL");
    read_one(transaction, WHAT, &sql, values![hash], from_row)
}

fn active_key(transaction: &Transaction<'_>, id_or_name: &str) -> Result<Option<KeyRow>> {
    let sql = format!("{SELECT} WHERE (id = ?1 OR name = ?1) AND revoked_ms IS NULL");
    read_one(transaction, WHAT, &sql, values![id_or_name], from_row)
}

fn not_found(id_or_name: &str) -> Error {
    Error::new(ErrorKind::NotFound, format!("there is no key `{id_or_name}` in use"))
        .with_hint("`eyot keys ls` shows the keys there are")
}

fn from_row(row: &DatabaseRow) -> std::result::Result<KeyRow, DatabaseError> {
    Ok(KeyRow {
        id: row.get("id")?,
        name: row::parsed(row, "name", |text| SandboxName::parse(text).ok())?,
        pools: row::json(row, "pools")?,
        created_ms: row.get("created_ms")?,
        revoked_ms: row.get("revoked_ms")?,
    })
}
