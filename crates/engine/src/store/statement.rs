//! Statements that change rows, and the values that go into them.

use eyot::{Error, ErrorKind, Result};
use rusqlite::Transaction;
use serde::Serialize;

use super::failed;

/// Runs a statement that changes rows.
pub(super) fn execute(transaction: &Transaction<'_>, sql: &str, values: impl rusqlite::Params) -> Result<()> {
    let mut statement = transaction.prepare_cached(sql).map_err(failed("change the store"))?;
    statement.execute(values).map(drop).map_err(failed("change the store"))
}

/// Writes a value as a column of JSON has it.
pub(super) fn json(value: &impl Serialize) -> Result<String> {
    serde_json::to_string(value).map_err(|error| {
        Error::new(ErrorKind::Internal, "change the store: a value is no JSON").with_source(error)
    })
}
