//! Statements: those that change rows, and those that read them.

use eyot::Result;

use super::database::Transaction;
use super::database_error::{DatabaseError, failed};
use super::value::{DatabaseRow, Value};

/// Runs a statement that changes rows.
pub(super) fn execute(transaction: &Transaction<'_>, sql: &str, values: &[Value]) -> Result<()> {
    count_changed(transaction, "change the store", sql, values).map(drop)
}

/// Runs a statement that changes rows, and returns how many it has changed.
pub(super) fn count_changed(
    transaction: &Transaction<'_>,
    what: &str,
    sql: &str,
    values: &[Value],
) -> Result<u64> {
    transaction.execute(sql, values).map_err(failed(what))
}

/// Reads all rows of a statement.
pub(super) fn read_all<T>(
    transaction: &Transaction<'_>,
    what: &str,
    sql: &str,
    values: &[Value],
    from_row: impl Fn(&DatabaseRow) -> std::result::Result<T, DatabaseError>,
) -> Result<Vec<T>> {
    let rows = transaction.rows(sql, values).map_err(failed(what))?;
    rows.iter().map(from_row).collect::<std::result::Result<_, _>>().map_err(failed(what))
}

/// Reads the first row of a statement, if there is one.
pub(super) fn read_one<T>(
    transaction: &Transaction<'_>,
    what: &str,
    sql: &str,
    values: &[Value],
    from_row: impl Fn(&DatabaseRow) -> std::result::Result<T, DatabaseError>,
) -> Result<Option<T>> {
    Ok(read_all(transaction, what, sql, values, from_row)?.into_iter().next())
}
