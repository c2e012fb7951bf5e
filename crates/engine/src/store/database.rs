//! The two kinds of database that a store can lie in: a file of this host, and a PostgreSQL server that several hosts
//! share. The statements are the same for both.

use super::database_error::DatabaseError;
use super::postgres::PostgresDatabase;
use super::postgres_link::PostgresLink;
use super::sqlite::{self, SqliteDatabase};
use super::value::{DatabaseRow, Value};

/// A database.
pub(super) enum Database {
    Sqlite(SqliteDatabase),
    Postgres(PostgresDatabase),
}

/// A way to run statements, all within one transaction. Statements have their values by number: `?1`.
pub(super) enum Transaction<'a> {
    Sqlite(&'a rusqlite::Connection),
    Postgres(&'a PostgresLink),
}

impl Transaction<'_> {
    /// Runs a statement that changes rows. Returns their number.
    pub(super) fn execute(&self, sql: &str, values: &[Value]) -> Result<u64, DatabaseError> {
        match self {
            Self::Sqlite(connection) => sqlite::execute(connection, sql, values),
            Self::Postgres(link) => link.execute(sql, values),
        }
    }

    /// Runs a statement that returns rows.
    pub(super) fn rows(&self, sql: &str, values: &[Value]) -> Result<Vec<DatabaseRow>, DatabaseError> {
        match self {
            Self::Sqlite(connection) => sqlite::rows(connection, sql, values),
            Self::Postgres(link) => link.rows(sql, values),
        }
    }
}
