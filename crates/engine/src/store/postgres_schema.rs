//! The tables in a database: steps that are taken once each, in order. One that was released is never changed.

use eyot::{Error, ErrorKind, Result};

use super::database_error::failed;
use super::postgres_link::{BEGIN, PostgresLink};
use super::value::values;

const STEPS: [&str; 1] = [include_str!("migrations/postgres/0001_store.sql")];
const WHAT: &str = "open the store";
const VERSION: &str = "CREATE TABLE IF NOT EXISTS eyot_version (step BIGINT NOT NULL)";

/// Brings the tables up to date. `conflict`: a newer version of Eyot has made them, and they are left as they are.
pub(super) fn prepare(link: &PostgresLink) -> Result<()> {
    refuse_other_encodings(link)?;
    // Two servers must not take one step at once.
    link.batch(BEGIN).map_err(failed(WHAT))?;
    let taken = link.batch(VERSION).map_err(failed(WHAT)).and_then(|()| take_steps(link));
    link.batch(if taken.is_ok() { "COMMIT" } else { "ROLLBACK" }).map_err(failed(WHAT))?;
    taken
}

/// The hashes of events are made in the database, of the bytes of UTF-8.
fn refuse_other_encodings(link: &PostgresLink) -> Result<()> {
    let rows =
        link.rows("SELECT current_setting('server_encoding') AS encoding", &[]).map_err(failed(WHAT))?;
    let encoding: String =
        rows.first().map_or(Ok(String::new()), |row| row.get("encoding")).map_err(failed(WHAT))?;
    if encoding == "UTF8" {
        return Ok(());
    }
    let message = format!("{WHAT}: the database has the encoding {encoding}");
    Err(Error::new(ErrorKind::Unsupported, message)
        .with_hint("make one with: CREATE DATABASE eyot ENCODING 'UTF8' TEMPLATE template0"))
}

fn take_steps(link: &PostgresLink) -> Result<()> {
    let rows = link.rows("SELECT count(*) AS steps FROM eyot_version", &[]).map_err(failed(WHAT))?;
    let taken: u64 = rows.first().map_or(Ok(0), |row| row.get("steps")).map_err(failed(WHAT))?;
    let taken = usize::try_from(taken).unwrap_or(usize::MAX);
    let Some(left) = STEPS.get(taken..) else {
        let message = format!(
            "{WHAT}: a newer version of eyot has made its tables, with {} more changes than this one knows",
            taken - STEPS.len()
        );
        return Err(
            Error::new(ErrorKind::Conflict, message).with_hint("use that version, or another database")
        );
    };
    for (number, step) in (taken..).zip(left) {
        link.batch(step).map_err(failed(WHAT))?;
        let number = u64::try_from(number).unwrap_or(u64::MAX);
        link.execute("INSERT INTO eyot_version VALUES (?1)", values![number]).map_err(failed(WHAT))?;
    }
    Ok(())
}
