//! The store's tables: migrations, numbered by their place in the list. One that was released is never changed.

use eyot::{Error, ErrorKind, Result};
use rusqlite::Connection;
use rusqlite_migration::{M, Migrations};

use super::database_error::failed;

const MIGRATION_STEPS: &[M<'static>] = &[
    M::up(include_str!("migrations/0001_pools.sql")),
    M::up(include_str!("migrations/0002_sandboxes.sql")),
    M::up(include_str!("migrations/0003_asleep.sql")),
    M::up(include_str!("migrations/0004_keys.sql")),
    M::up(include_str!("migrations/0005_anchors.sql")),
    M::up(include_str!("migrations/0006_process.sql")),
    M::up(include_str!("migrations/0007_agents.sql")),
    M::up(include_str!("migrations/0008_conversation_run.sql")),
    M::up(include_str!("migrations/0009_runs_of_pools.sql")),
    M::up(include_str!("migrations/0010_pids.sql")),
];
const MIGRATIONS: Migrations<'static> = Migrations::from_slice(MIGRATION_STEPS);

/// The application id that the first migration sets.
const APPLICATION_ID: i64 = 0x4579_6f74;
const WHAT: &str = "open the store";

fn refused(error: rusqlite::Error) -> Error {
    failed(WHAT)(error.into())
}

/// Sets a connection up, and brings the file up to date. The caller holds the lock for opening.
pub(super) fn prepare(connection: &mut Connection) -> Result<()> {
    refuse_what_is_no_store(connection)?;
    refuse_what_is_newer(connection)?;
    let mode: String =
        connection.pragma_update_and_check(None, "journal_mode", "wal", |row| row.get(0)).map_err(refused)?;
    if mode != "wal" {
        let message = format!("{WHAT}: its file system can't hold a store that processes share");
        return Err(Error::new(ErrorKind::Unsupported, message)
            .with_hint("put the state folder on a local disk (`--state`, EYOT_STATE)"));
    }
    // In WAL mode this keeps every commit over the end of the process, and the file whole over a power failure.
    connection.pragma_update(None, "synchronous", "normal").map_err(refused)?;
    bring_up_to_date(connection)
}

/// Makes the tables, or changes them.
pub(super) fn bring_up_to_date(connection: &mut Connection) -> Result<()> {
    connection.pragma_update(None, "foreign_keys", true).map_err(refused)?;
    MIGRATIONS.to_latest(connection).map_err(|error| {
        Error::new(ErrorKind::Internal, format!("{WHAT}: it can't be brought up to date")).with_source(error)
    })
}

fn refuse_what_is_no_store(connection: &Connection) -> Result<()> {
    let number = |sql| connection.query_row(sql, [], |row| row.get::<_, i64>(0)).map_err(refused);
    let is_empty = number("SELECT count(*) FROM sqlite_schema")? == 0;
    if is_empty || number("PRAGMA application_id")? == APPLICATION_ID {
        return Ok(());
    }
    let message = format!("{WHAT}: the file is a database of another program");
    Err(Error::new(ErrorKind::Conflict, message))
}

fn refuse_what_is_newer(connection: &Connection) -> Result<()> {
    let unreadable = |error| {
        Error::new(ErrorKind::Conflict, format!("{WHAT}: its version can't be read")).with_source(error)
    };
    let pending = MIGRATIONS.pending_migrations(connection).map_err(unreadable)?;
    if pending >= 0 {
        return Ok(());
    }
    let message = format!(
        "{WHAT}: a newer version of eyot has written it, with {} more changes than this one knows",
        -pending
    );
    Err(Error::new(ErrorKind::Conflict, message)
        .with_hint("use that version, or another state folder (`--state`, EYOT_STATE)"))
}

#[cfg(test)]
mod tests {
    use super::*;

    const LATEST: usize = MIGRATION_STEPS.len();

    fn version(connection: &Connection) -> usize {
        connection.query_row("PRAGMA user_version", [], |row| row.get(0)).unwrap()
    }

    fn opened(folder: &tempfile::TempDir) -> Connection {
        Connection::open(folder.path().join("eyot.db")).unwrap()
    }

    #[test]
    fn the_migrations_are_sound() {
        MIGRATIONS.validate().unwrap();
    }

    #[test]
    fn an_empty_file_becomes_a_store_of_the_latest_version() {
        let folder = tempfile::tempdir().unwrap();
        let mut connection = opened(&folder);
        prepare(&mut connection).unwrap();
        assert_eq!(version(&connection), LATEST);
        prepare(&mut connection).unwrap();
        assert_eq!(version(&connection), LATEST);
    }

    #[test]
    fn every_earlier_version_is_brought_up_to_date_with_its_rows() {
        for earlier in 1..LATEST {
            let folder = tempfile::tempdir().unwrap();
            let mut connection = opened(&folder);
            MIGRATIONS.to_version(&mut connection, earlier).unwrap();
            connection.execute("INSERT INTO pools VALUES ('p', 7, '{}')", []).unwrap();
            prepare(&mut connection).unwrap();
            assert_eq!(version(&connection), LATEST);
            let created: i64 =
                connection.query_row("SELECT created_ms FROM pools", [], |row| row.get(0)).unwrap();
            assert_eq!(created, 7);
        }
    }

    #[test]
    fn a_newer_version_is_refused_and_left_as_it_is() {
        let folder = tempfile::tempdir().unwrap();
        let mut connection = opened(&folder);
        prepare(&mut connection).unwrap();
        connection.pragma_update(None, "user_version", LATEST + 3).unwrap();
        let error = prepare(&mut connection).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Conflict);
        assert!(error.to_string().contains("a newer version of eyot has written it, with 3 more"), "{error}");
        assert!(error.hint().is_some());
        assert_eq!(version(&connection), LATEST + 3);
    }

    #[test]
    fn a_database_of_another_program_is_refused_and_left_as_it_is() {
        let folder = tempfile::tempdir().unwrap();
        let mut connection = opened(&folder);
        connection.execute_batch("CREATE TABLE notes (text TEXT)").unwrap();
        let error = prepare(&mut connection).unwrap_err();
        assert!(error.to_string().contains("a database of another program"), "{error}");
        let tables: i64 =
            connection.query_row("SELECT count(*) FROM sqlite_schema", [], |row| row.get(0)).unwrap();
        assert_eq!(tables, 1);
    }
}
