//! The store: which pools and sandboxes there are, what they were made from, and who is at work on them. It lies in one
//! SQLite file that several processes of a host share, or in a PostgreSQL database that several hosts share. It keeps rows,
//! and the rules that make a change of rows safe; what a pool does with them is the pool's.
//!
//! Every function is one transaction and blocks (on the disk, and on other processes): from async code call it through
//! [`Store::ask`]. A process may be killed at any moment: what it had been told is done is kept, the rest is undone. A
//! sandbox that it was making or removing is [`Store::abandoned`] then, and exactly one process gets to finish the
//! work. The same holds for a task of a process that lives on: see [`Claim`]. In a file nothing is synced on each change: a power failure may lose the last ones, and leaves a whole file.

mod abandoned;
mod agent_changes;
mod agent_runs;
mod anchors;
mod changing;
mod claim;
mod database;
mod database_error;
mod database_url;
mod keys;
mod logged_events;
mod making;
mod mark;
mod names;
mod owner;
mod pools;
mod postgres;
mod postgres_link;
mod postgres_schema;
mod presence;
mod quota;
mod removing;
mod row;
mod schema;
mod shared;
mod sleep_state;
mod spare;
mod sqlite;
mod statement;
mod value;
mod waking;

use std::io;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use eyot::{Error, ErrorKind, Result};

pub use agent_changes::{AgentChange, conversation_in_use};
pub use agent_runs::{
    AgentRunFilter, AgentRunLease, AgentRunRow, AgentRunStatus, MAX_ENDED_RUNS_PER_INSTANCE,
};
pub use anchors::Anchor;
pub use claim::Claim;
pub use database_url::DatabaseUrl;
pub use keys::KeyRow;
pub use making::NameReservation;
pub(crate) use mark::lost_store_error;
pub use owner::Owner;
pub use pools::PoolRow;
pub use quota::QuotaUse;
pub(crate) use quota::{enforce_sum, too_many_sandboxes};
pub(crate) use row::{ENDED_WITH_ITS_PROCESS, FOUND_GONE};
pub use row::{NewSandbox, RowState, SandboxRow};
pub use waking::WakingTurn;

use claim::StoreIdentity;
use database::{Database, Transaction};
use database_error::is_disk_full;
pub(crate) use logged_events::{LogEnds, MOST_LINES};
use postgres::{MOST_LINKS, PostgresDatabase, only_in_a_file};
use sqlite::SqliteDatabase;

use crate::blocking::Turns;
use crate::changes::ChangeWatch;

/// An open store.
pub struct Store {
    database: Database,
    turns: Turns,
    identity: StoreIdentity,
}

impl std::fmt::Debug for Store {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Store").field("identity", &self.identity).finish_non_exhaustive()
    }
}

impl Store {
    /// Opens the store in this file, or makes it (mode 0600, with its folder), and brings an older one up to date.
    ///
    /// A file that a newer version of Eyot wrote, or that is no store, is refused (`conflict`) and left as it is. So is the
    /// place of a store that is gone: see [`Store::replace_lost`].
    pub fn open(path: impl AsRef<Path>) -> Result<Arc<Self>> {
        let path = path.as_ref();
        Self::of_file(path, SqliteDatabase::open(path, |lock| mark::refuse_lost_store(path, lock))?)
    }

    /// Makes a new store in the place of one that is gone. `conflict`: it is not gone.
    pub fn replace_lost(path: impl AsRef<Path>) -> Result<Arc<Self>> {
        let path = path.as_ref();
        let opened = SqliteDatabase::open(path, |_| {
            if Self::is_missing(path) {
                Ok(())
            } else {
                Err(Error::new(ErrorKind::Conflict, "begin a new store: the old one is there"))
            }
        });
        Self::of_file(path, opened?)
    }

    /// Returns whether there is no store in this file: it is missing, or empty.
    pub fn is_missing(path: &Path) -> bool {
        path.metadata().map_or_else(|error| error.kind() == io::ErrorKind::NotFound, |file| file.len() == 0)
    }

    fn of_file(path: &Path, database: SqliteDatabase) -> Result<Arc<Self>> {
        let path = path.canonicalize().map_err(|error| Error::host("open the store", error))?;
        Ok(Self::of(Database::Sqlite(database), StoreIdentity::File(path), 1))
    }

    fn of(database: Database, identity: StoreIdentity, turns: usize) -> Arc<Self> {
        Arc::new(Self { database, turns: Turns::new(turns), identity })
    }

    /// A store that is gone with its last handle.
    pub fn in_memory() -> Result<Arc<Self>> {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let identity = StoreIdentity::Memory(NEXT.fetch_add(1, Ordering::Relaxed));
        Ok(Self::of(Database::Sqlite(SqliteDatabase::in_memory()?), identity, 1))
    }

    /// Opens the store in this database, whose tables are made if need be. Each store that is opened counts as a server
    /// of its own. Blocks.
    ///
    /// `unavailable`: the database does not answer within 10 seconds. `conflict`: a newer version of Eyot has made the
    /// tables.
    pub fn in_database(url: &DatabaseUrl) -> Result<Arc<Self>> {
        let database = PostgresDatabase::open(url)?;
        let identity = StoreIdentity::Server(database.presence().owner().boot_id);
        Ok(Self::of(Database::Postgres(database), identity, MOST_LINKS))
    }

    /// Tells whether servers of several hosts share it.
    pub fn is_shared(&self) -> bool {
        matches!(self.database, Database::Postgres(_))
    }

    /// Asks the store from async code: runs `question` on a thread that may block. In a file, one question of this process
    /// after the other. Once begun it is carried out, even if the caller stops waiting.
    pub async fn ask<T: Send + 'static>(
        self: &Arc<Self>,
        question: impl FnOnce(&Arc<Self>) -> Result<T> + Send + 'static,
    ) -> Result<T> {
        let store = Arc::clone(self);
        self.turns.blocking(move || question(&store)).await
    }

    /// Tells when some process changed something in it; more often than that. `None`: it is in
    /// memory, where no other process can. Blocks.
    pub fn changes(&self) -> Result<Option<ChangeWatch>> {
        match &self.database {
            Database::Sqlite(file) => {
                file.folder().map(|folder| ChangeWatch::of_folder(folder, "watch the store")).transpose()
            }
            Database::Postgres(database) => {
                Ok(Some(ChangeWatch::of_database(database.presence().store_changes())))
            }
        }
    }

    /// Writes the store, as it is at one moment, into a new file (mode 0600) that nothing else
    /// uses. `already_exists`: it is there. `unsupported`: the store lies in a database.
    pub fn copy_into(&self, path: &Path) -> Result<()> {
        match &self.database {
            Database::Sqlite(file) => file.copy_into(path),
            Database::Postgres(_) => {
                Err(only_in_a_file("copy the store", "`pg_dump` makes a copy of the database"))
            }
        }
    }

    /// Does `work`, which gives something up. A file is written at once; for a database, which may be away, nobody waits.
    fn without_waiting(&self, work: impl FnOnce() + Send + 'static) {
        match &self.database {
            Database::Sqlite(_) => work(),
            Database::Postgres(_) => {
                let begun = std::thread::Builder::new().name("eyot-gives-up".to_owned()).spawn(work);
                if let Err(error) = begun {
                    // This process still knows; others learn it when this one ends.
                    tracing::warn!(%error, "give up work: no thread can be started");
                }
            }
        }
    }

    /// Does `work` in a transaction that holds the only right to write from its beginning.
    fn write<T>(&self, what: &str, work: impl FnOnce(&Transaction<'_>) -> Result<T>) -> Result<T> {
        match &self.database {
            Database::Sqlite(file) => file.write(what, |file| work(&Transaction::Sqlite(file))),
            Database::Postgres(database) => database.write(what, |link| work(&Transaction::Postgres(link))),
        }
    }

    /// Does `work` as [`Store::write`] does, and a second time on the spare room if the disk is full:
    /// work that takes something away must not fail for want of room.
    fn write_on_spare<T>(&self, what: &str, work: impl Fn(&Transaction<'_>) -> Result<T>) -> Result<T> {
        match self.write(what, &work) {
            Err(error) if is_disk_full(&error) && self.give_up_spare() => self.write(what, &work),
            done => done,
        }
    }

    /// Frees the spare room beside the store. Returns whether there was any.
    pub(crate) fn give_up_spare(&self) -> bool {
        match &self.database {
            Database::Sqlite(file) => file.give_up_spare(),
            Database::Postgres(_) => false,
        }
    }

    /// Refuses to begin what takes room, while there is hardly any left on the disk.
    fn require_room(&self, what: &str) -> Result<()> {
        match &self.database {
            Database::Sqlite(file) => file.require_room(what),
            Database::Postgres(_) => Ok(()),
        }
    }

    /// Does `work`, which only reads. It may be done twice. In a file it sees one moment; in a database each statement
    /// sees its own.
    fn read<T>(&self, what: &str, work: impl Fn(&Transaction<'_>) -> Result<T>) -> Result<T> {
        match &self.database {
            Database::Sqlite(file) => file.read(what, |file| work(&Transaction::Sqlite(file))),
            Database::Postgres(database) => database.read(what, |link| work(&Transaction::Postgres(link))),
        }
    }

    /// Does `work`, which is one statement that takes microseconds. `None`: it would have to wait, for somebody in this
    /// process or for a database.
    fn read_at_once<T>(&self, work: impl FnOnce(&Transaction<'_>) -> Result<T>) -> Option<Result<T>> {
        match &self.database {
            Database::Sqlite(file) => file.read_at_once(|file| work(&Transaction::Sqlite(file))),
            Database::Postgres(_) => None,
        }
    }
}
