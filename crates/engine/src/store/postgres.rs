//! The store of several hosts: a PostgreSQL database.
//!
//! A transaction that writes first takes one lock of the whole database, as it does in a file. So the rules of the
//! store are the same for both. What was written is on the disk before anybody is told; events are not, so a crash of the
//! database may lose the last ones.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use eyot::{Error, ErrorKind, Result};

use super::database_error::{DatabaseError, failed};
use super::database_url::DatabaseUrl;
use super::postgres_link::{AWAY_PATIENCE, BEGIN, PostgresLink, connect_patiently};
use super::postgres_schema;
use super::presence::Presence;

/// The most connections of one process. More calls than that wait for one.
pub(super) const MOST_LINKS: usize = 8;
/// Ends it on the disk, and tells everybody who listens.
const COMMIT: &str = "SET LOCAL synchronous_commit = on; SELECT pg_notify('eyot_store', ''); COMMIT";

/// The pause in which calls fail at once after the database was found to be away.
const AWAY_PAUSE: Duration = Duration::from_secs(1);

/// A database.
pub(super) struct PostgresDatabase {
    url: DatabaseUrl,
    links: Mutex<LinkPool>,
    /// Tells that a connection was given back.
    given_back: Condvar,
    presence: Presence,
}

/// The connections of a database.
struct LinkPool {
    idle: Vec<PostgresLink>,
    in_use: usize,
    /// Until then the database is taken for away.
    away_until: Option<Instant>,
}

/// A connection in use. It is closed when it is dropped, unless it is kept.
struct UsedLink<'a> {
    database: &'a PostgresDatabase,
    link: Option<PostgresLink>,
    is_new: bool,
}

impl UsedLink<'_> {
    fn get(&self) -> Result<&PostgresLink, DatabaseError> {
        self.link.as_ref().ok_or_else(|| DatabaseError::Silent("its connection is gone".to_owned()))
    }

    /// Keeps the connection for the next call.
    fn keep(mut self) {
        if let Some(link) = self.link.take().filter(|link| !link.is_closed()) {
            self.database.links().idle.push(link);
        }
    }
}

impl Drop for UsedLink<'_> {
    fn drop(&mut self) {
        self.database.links().in_use -= 1;
        self.database.given_back.notify_one();
    }
}

impl PostgresDatabase {
    /// Connects, brings the tables up to date, and notes this process among the servers.
    pub(super) fn open(url: &DatabaseUrl) -> Result<Self> {
        const WHAT: &str = "open the store";
        let link = connect_patiently(url).map_err(failed(WHAT))?;
        postgres_schema::prepare(&link)?;
        let presence = Presence::begin(url, &link).map_err(failed(WHAT))?;
        let links = Mutex::new(LinkPool { idle: vec![link], in_use: 0, away_until: None });
        Ok(Self { url: url.clone(), links, given_back: Condvar::new(), presence })
    }

    /// Returns the presence of this process.
    pub(super) fn presence(&self) -> &Presence {
        &self.presence
    }

    /// Does `work` in a transaction, while no other one writes.
    pub(super) fn write<T>(&self, what: &str, work: impl FnOnce(&PostgresLink) -> Result<T>) -> Result<T> {
        let used = self.begun().map_err(failed(what))?;
        let link = used.get().map_err(failed(what))?;
        match work(link) {
            Ok(done) => {
                link.batch(COMMIT).map_err(failed(what))?;
                used.keep();
                Ok(done)
            }
            Err(error) => {
                // One that can't be kept is closed, which undoes the work as well.
                if link.batch("ROLLBACK").is_ok() {
                    used.keep();
                }
                Err(error)
            }
        }
    }

    /// Does `work`, whose statements each see the database as it is then. Repeats it once if a connection that was kept
    /// has ended meanwhile.
    pub(super) fn read<T>(&self, what: &str, work: impl Fn(&PostgresLink) -> Result<T>) -> Result<T> {
        loop {
            let used = self.link().map_err(failed(what))?;
            let (is_new, link) = (used.is_new, used.get().map_err(failed(what))?);
            match work(link) {
                Err(error) if error.kind() == ErrorKind::Unavailable => {
                    self.links().idle.clear();
                    if is_new || !link.is_closed() {
                        return Err(error);
                    }
                }
                done => {
                    used.keep();
                    return done;
                }
            }
        }
    }

    /// Does `work`, one statement, once.
    pub(super) fn at_once<T>(
        &self,
        work: impl FnOnce(&PostgresLink) -> Result<T>,
    ) -> Result<Result<T>, DatabaseError> {
        let used = self.link()?;
        let done = work(used.get()?);
        if done.as_ref().is_err_and(|error| error.kind() == ErrorKind::Unavailable) {
            self.links().idle.clear();
        } else {
            used.keep();
        }
        Ok(done)
    }

    /// Returns a connection on which a transaction has begun. Nothing is lost if one ends before.
    fn begun(&self) -> Result<UsedLink<'_>, DatabaseError> {
        loop {
            let used = self.link()?;
            match used.get()?.batch(BEGIN) {
                Ok(()) => return Ok(used),
                Err(error) if error.is_away() && !used.is_new => self.links().idle.clear(),
                Err(error) => return Err(error),
            }
        }
    }

    /// Takes a connection, once fewer than all are in use.
    fn link(&self) -> Result<UsedLink<'_>, DatabaseError> {
        let is_full = |links: &mut LinkPool| links.in_use >= MOST_LINKS;
        let (mut links, waited) = self
            .given_back
            .wait_timeout_while(self.links(), AWAY_PATIENCE, is_full)
            .unwrap_or_else(PoisonError::into_inner);
        if waited.timed_out() {
            return Err(DatabaseError::Silent("all connections to it are in use".to_owned()));
        }
        links.idle.retain(|link| !link.is_closed());
        links.in_use += 1;
        let (kept, is_away) =
            (links.idle.pop(), links.away_until.is_some_and(|until| Instant::now() < until));
        drop(links);
        // From here on the place is given back.
        let mut used = UsedLink { database: self, is_new: kept.is_none(), link: kept };
        if used.is_new {
            if is_away {
                return Err(DatabaseError::Silent("it was away a moment ago".to_owned()));
            }
            let connected = connect_patiently(&self.url);
            let is_away = connected.as_ref().is_err_and(DatabaseError::is_away);
            self.links().away_until = is_away.then(|| Instant::now() + AWAY_PAUSE);
            used.link = Some(connected?);
        }
        Ok(used)
    }

    fn links(&self) -> MutexGuard<'_, LinkPool> {
        self.links.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for PostgresDatabase {
    fn drop(&mut self) {
        // Others need not wait until the row is old.
        let link = self.links().idle.pop();
        if let Some(link) = link.filter(|link| !link.is_closed()) {
            self.presence.end(&link);
        }
    }
}

/// Refuses a use of the store that only a file allows.
pub(super) fn only_in_a_file(what: &str, hint: &str) -> Error {
    Error::new(ErrorKind::Unsupported, format!("{what}: the store lies in a database")).with_hint(hint)
}
