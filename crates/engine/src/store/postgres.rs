//! The store of several hosts: a PostgreSQL database.
//!
//! A transaction that writes first takes one lock of the whole database, as it does in a file. So the rules of the
//! store are the same for both. What was written is on the disk before anybody is told; events are not, so a crash of the
//! database may lose the last ones.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use eyot::{Error, ErrorKind, Result};

use super::database_error::{DatabaseError, failed};
use super::database_url::DatabaseUrl;
use super::postgres_link::{AWAY_PATIENCE, PostgresLink, connect_patiently};
use super::postgres_schema;
use super::presence::Presence;

/// The most calls of one process that are under way at once, and the connections that are kept.
pub(super) const MOST_LINKS: usize = 8;
/// Begins a transaction that writes. The number is "eyot" in ASCII.
const BEGIN: &str = "BEGIN; SELECT pg_advisory_xact_lock(1702457204)";
/// Ends it on the disk, and tells everybody who listens.
const COMMIT: &str = "SET LOCAL synchronous_commit = on; SELECT pg_notify('eyot_store', ''); COMMIT";

/// A database.
pub(super) struct PostgresDatabase {
    url: DatabaseUrl,
    idle: Mutex<Vec<PostgresLink>>,
    presence: Presence,
}

impl PostgresDatabase {
    /// Connects, brings the tables up to date, and notes this process among the servers.
    pub(super) fn open(url: &DatabaseUrl) -> Result<Self> {
        const WHAT: &str = "open the store";
        let link = connect_patiently(url).map_err(failed(WHAT))?;
        postgres_schema::prepare(&link)?;
        let presence = Presence::begin(url, &link).map_err(failed(WHAT))?;
        Ok(Self { url: url.clone(), idle: Mutex::new(vec![link]), presence })
    }

    /// Returns the presence of this process.
    pub(super) fn presence(&self) -> &Presence {
        &self.presence
    }

    /// Does `work` in a transaction, while no other one writes.
    pub(super) fn write<T>(&self, what: &str, work: impl FnOnce(&PostgresLink) -> Result<T>) -> Result<T> {
        let link = self.begun().map_err(failed(what))?;
        match work(&link) {
            Ok(done) => {
                link.batch(COMMIT).map_err(failed(what))?;
                self.put_back(link);
                Ok(done)
            }
            Err(error) => {
                // One that can't go back is closed, which undoes the work as well.
                if link.batch("ROLLBACK").is_ok() {
                    self.put_back(link);
                }
                Err(error)
            }
        }
    }

    /// Does `work`, whose statements each see the database as it is then. Repeats it once if the connection has ended.
    pub(super) fn read<T>(&self, what: &str, work: impl Fn(&PostgresLink) -> Result<T>) -> Result<T> {
        let once = || {
            let link = self.link().map_err(failed(what))?;
            let done = work(&link);
            self.put_back(link);
            done
        };
        match once() {
            Err(error) if error.kind() == ErrorKind::Unavailable => once(),
            done => done,
        }
    }

    /// Does `work`, one statement, once.
    pub(super) fn at_once<T>(
        &self,
        work: impl FnOnce(&PostgresLink) -> Result<T>,
    ) -> Result<Result<T>, DatabaseError> {
        let link = self.link()?;
        let done = work(&link);
        self.put_back(link);
        Ok(done)
    }

    /// Returns a connection on which a transaction has begun. Nothing is lost if one ends before.
    fn begun(&self) -> Result<PostgresLink, DatabaseError> {
        let given_up = Instant::now() + AWAY_PATIENCE;
        loop {
            let link = self.link()?;
            match link.batch(BEGIN) {
                Ok(()) => return Ok(link),
                Err(error) if error.is_away() && Instant::now() < given_up => {}
                Err(error) => return Err(error),
            }
        }
    }

    fn link(&self) -> Result<PostgresLink, DatabaseError> {
        loop {
            let idle = self.idle().pop();
            match idle {
                Some(link) if link.is_closed() => {}
                Some(link) => return Ok(link),
                None => return connect_patiently(&self.url),
            }
        }
    }

    fn put_back(&self, link: PostgresLink) {
        let mut idle = self.idle();
        if idle.len() < MOST_LINKS && !link.is_closed() {
            idle.push(link);
        }
    }

    fn idle(&self) -> MutexGuard<'_, Vec<PostgresLink>> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for PostgresDatabase {
    fn drop(&mut self) {
        // Others need not wait until the row is old.
        let link = self.idle().pop();
        if let Some(link) = link.filter(|link| !link.is_closed()) {
            self.presence.end(&link);
        }
    }
}

/// Refuses a use of the store that only a file allows.
pub(super) fn only_in_a_file(what: &str, hint: &str) -> Error {
    Error::new(ErrorKind::Unsupported, format!("{what}: the store lies in a database")).with_hint(hint)
}
