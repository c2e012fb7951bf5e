//! Claims: which tasks of this process are at work on which sandboxes. A row names the process that is at work on its
//! sandbox; a claim says that a task of that process still is. A task may be dropped at any await while its process lives on,
//! so a claim that is dropped unfinished gives up the row: from then on anybody may take it over.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::{Arc, LazyLock, Mutex, MutexGuard, PoisonError};

use eyot::{Result, SandboxId};

use super::Store;
use super::database::{Database, Transaction};
use super::owner::Owner;
use super::row::SandboxRow;
use super::statement::{execute, read_one};
use super::value::{DatabaseRow, values};

/// One store, however often this process has it open.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) enum StoreIdentity {
    /// A store in this file.
    File(PathBuf),
    /// A store in memory, by a number of its own.
    Memory(u64),
    /// A store in a database, as the server that this process is there. It has as many as it opens.
    Server(String),
}

type ClaimCounts = HashMap<(StoreIdentity, SandboxId), usize>;

/// The number of live claims on each sandbox.
static CLAIMS: LazyLock<Mutex<ClaimCounts>> = LazyLock::new(Mutex::default);

/// A server is there if its row is, unless it was silent for 30 seconds, by the database's clock. Only one that was itself
/// there for 30 seconds without a gap may judge that: a database that was away has heard of nobody.
const IS_THERE: &str = "SELECT servers.id FROM servers, \
         (SELECT (extract(epoch FROM clock_timestamp()) * 1000)::bigint AS ms) AS now \
     WHERE servers.id = ?1 AND (servers.seen_ms > now.ms - 30000 OR NOT EXISTS (SELECT 1 FROM servers AS judge \
         WHERE judge.id = ?2 AND judge.seen_ms > now.ms - 15000 AND judge.since_ms <= now.ms - 30000))";

/// Tells whether a process runs, or a server is there, as `this` one may judge it.
pub(super) fn is_alive(transaction: &Transaction<'_>, owner: &Owner, this: &Owner) -> Result<bool> {
    let Some(id) = owner.server() else { return Ok(owner.is_alive()) };
    let id_of = |row: &DatabaseRow| row.get::<String>("id");
    let values = values![id, this.server()];
    Ok(read_one(transaction, "look for a server", IS_THERE, values, id_of)?.is_some())
}

/// Owners that were looked for, each once: one may have begun thousands of things.
pub(super) struct KnownOwners<'a, 'b> {
    transaction: &'a Transaction<'b>,
    this: &'a Owner,
    known: Vec<(Owner, bool)>,
}

impl<'a, 'b> KnownOwners<'a, 'b> {
    /// Knows none yet.
    pub(super) fn new(transaction: &'a Transaction<'b>, this: &'a Owner) -> Self {
        Self { transaction, this, known: Vec::new() }
    }

    /// Tells whether this one is alive.
    pub(super) fn is_alive(&mut self, owner: &Owner) -> Result<bool> {
        if let Some((_, is_alive)) = self.known.iter().find(|(known, _)| known == owner) {
            return Ok(*is_alive);
        }
        let is_alive = is_alive(self.transaction, owner, self.this)?;
        self.known.push((owner.clone(), is_alive));
        Ok(is_alive)
    }
}

fn claim_counts() -> MutexGuard<'static, ClaimCounts> {
    CLAIMS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A task of this process is at work on a sandbox. Dropped before [`Claim::finish`], it gives the sandbox's rows up, for
/// which it blocks for a moment.
#[derive(Debug)]
#[must_use = "a claim is given up when it is dropped"]
pub struct Claim {
    store: Arc<Store>,
    id: SandboxId,
    is_finished: bool,
}

impl Claim {
    /// Ends the claim. Its rows say that the work was done.
    pub fn finish(mut self) {
        self.is_finished = true;
    }
}

impl Drop for Claim {
    fn drop(&mut self) {
        let is_last = {
            let mut all = claim_counts();
            let key = (self.store.identity.clone(), self.id.clone());
            let left = all.get(&key).map_or(0, |count| count.saturating_sub(1));
            if left == 0 {
                all.remove(&key)
            } else {
                all.insert(key, left)
            };
            left == 0
        };
        if self.is_finished || !is_last {
            return;
        }
        let (store, id) = (Arc::clone(&self.store), self.id.clone());
        let give_up = move || {
            if let Err(error) = store.give_up(&id) {
                // This process still knows that nobody holds it; others learn it when this one ends.
                tracing::warn!(%error, sandbox = %id, "give up the work on a sandbox");
            }
        };
        self.store.without_waiting(give_up);
    }
}

impl Store {
    /// Claims a sandbox for a task of this process. Take the claim before the row names this
    /// process.
    pub fn claim(self: &Arc<Self>, id: &SandboxId) -> Claim {
        *claim_counts().entry((self.identity.clone(), id.clone())).or_default() += 1;
        Claim { store: Arc::clone(self), id: id.clone(), is_finished: false }
    }

    /// Returns this process, as the rows of this store name it.
    pub fn owner(&self) -> Result<Owner> {
        match &self.database {
            Database::Sqlite(_) => Owner::this_process(),
            Database::Postgres(database) => Ok(database.presence().owner()),
        }
    }

    /// Tells whether the process that a row names can still go on.
    pub fn is_alive(&self, owner: &Owner) -> Result<bool> {
        let this = self.owner()?;
        self.read("look for a process", |transaction| is_alive(transaction, owner, &this))
    }

    /// Returns whether the owner that a row of this sandbox names can do nothing more for it: the
    /// process has ended, or it is this one and no task of it holds a claim. `own`: how many claims
    /// the caller holds.
    pub(super) fn is_idle(
        &self,
        transaction: &Transaction<'_>,
        owner: &Owner,
        id: &SandboxId,
        own: usize,
    ) -> Result<bool> {
        let this = self.owner()?;
        if this == *owner {
            let key = (self.identity.clone(), id.clone());
            return Ok(claim_counts().get(&key).is_none_or(|held| *held <= own));
        }
        is_alive(transaction, owner, &this).map(|is_alive| !is_alive)
    }

    /// The same of the owner that this row names. Without one it is `false`.
    pub(super) fn is_row_idle(
        &self,
        transaction: &Transaction<'_>,
        row: &SandboxRow,
        own: usize,
    ) -> Result<bool> {
        row.owner.as_ref().map_or(Ok(false), |owner| self.is_idle(transaction, owner, &row.id, own))
    }

    /// Returns whether somebody has begun to make or remove this sandbox who can't go on.
    pub fn is_given_up(&self, row: &SandboxRow) -> Result<bool> {
        self.read("look for a process", |transaction| self.is_row_idle(transaction, row, 0))
    }

    /// Gives up this process's work on a sandbox, so that another task can take it over.
    fn give_up(&self, id: &SandboxId) -> Result<()> {
        let Owner { pid, start_ticks, boot_id } = self.owner()?;
        let nobody = Owner::none();
        self.write_on_spare("give up the work on a sandbox", |transaction| {
            for table in ["sandboxes", "wakes"] {
                let sql = format!(
                    "UPDATE {table} SET owner_pid = ?2, owner_start_ticks = ?3, owner_boot_id = ?4 \
                     WHERE id = ?1 AND owner_pid = ?5 AND owner_start_ticks = ?6 AND owner_boot_id = ?7"
                );
                let to = (nobody.pid, nobody.start_ticks, &nobody.boot_id);
                let values = values![id.as_str(), to.0, to.1, to.2, pid, start_ticks, &boot_id];
                execute(transaction, &sql, values)?;
            }
            Ok(())
        })
    }
}
