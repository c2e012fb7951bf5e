//! The named sandboxes of one agent session: made on first use, woken when they are used, moved between.
//!
//! The first caller that asks for a name makes its sandbox, and callers that ask meanwhile wait for
//! it: within a process by a cell per name ([`member`]), between processes by the store, which
//! gives a name to one of them. A member whose sandbox has gone to sleep, or is gone, gives up its
//! place to a new one, which wakes or makes it.

mod apply;
mod as_provider;
mod branch;
mod branch_options;
mod browse;
mod change;
mod commit;
mod fork;
mod keeper;
mod make;
mod member;
mod names;
mod resolve;
mod snapshots;
mod still;
mod wake;
mod workspaces;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::{Duration, Instant};

use eyot::internal::{SandboxInternals, run_detached};
use eyot::{
    Capability, Error, ErrorKind, PoolEntry, PoolStatus, Result, Sandbox, SandboxId, SandboxName,
    SandboxProvider, SandboxStatus,
};
use tokio::sync::{Notify, Semaphore};

use crate::events::EventKind;
use crate::pool_options::{PoolCreate, PoolCreated, PoolOptions};
use crate::records::{PoolRecords, require_own_provider};
use crate::store::{RowState, SandboxRow};
use crate::transfer::{
    Transfer, TransferObserver, Transferred, check_source, nobody_watches, transfer_observed,
};
use browse::OpenPorts;
use member::{LiveSandbox, Member};

pub use as_provider::PoolProvider;
pub(crate) use branch::remove_snapshots_of;
pub use branch_options::{
    CommitOptions, ComparedPoint, ForkOptions, ForkSource, Forks, ImageCommitted, RollbackDone,
    RollbackOptions, SnapshotOptions, SnapshotTaken,
};
pub use browse::{MAX_OPEN_PORTS, Preview};
pub use change::Changes;
pub(crate) use make::PoolMetadata;
pub(crate) use wake::wake_in_turn;

/// The time to wait for another task or process to finish creating or removing a sandbox, or to
/// stop putting it to sleep, and the time between two checks that its process is alive.
const PATIENCE: Duration = Duration::from_secs(60);
const LOOK_AGAIN: Duration = Duration::from_secs(1);

/// The most comparisons of files that run at once in a pool. Each reads much and lists much; others wait.
const MAX_COMPARISONS: usize = 2;

/// Returns the tries that a call has. Their time is limited and not their number: of many who make
/// one sandbox, each may see all the others fail.
fn tries() -> impl Iterator<Item = ()> {
    let given_up = Instant::now() + PATIENCE;
    std::iter::from_fn(move || (Instant::now() < given_up).then_some(()))
}

/// The named sandboxes of one agent session. Clones share one pool.
#[derive(Clone)]
pub struct SandboxPool {
    inner: Arc<PoolInner>,
}

struct PoolInner {
    provider: Arc<dyn SandboxProvider>,
    options: PoolOptions,
    records: PoolRecords,
    members: Mutex<BTreeMap<SandboxName, Arc<Member>>>,
    forwards: OpenPorts,
    /// Rings when this pool has finished making or removing a sandbox.
    changed: Notify,
    /// Lets so many comparisons of files run at once.
    comparisons: Arc<Semaphore>,
}

/// A pool that may be closed by now.
#[derive(Clone)]
struct WeakPool(Weak<PoolInner>);

impl WeakPool {
    fn upgrade(&self) -> Option<SandboxPool> {
        self.0.upgrade().map(|inner| SandboxPool { inner })
    }
}

impl SandboxPool {
    /// A pool that is forgotten with this process, and records no events; see
    /// [`crate::Engine::pool`] for one that stays. [`SandboxPool::close`] destroys its sandboxes;
    /// nothing else does.
    pub fn open(provider: Arc<dyn SandboxProvider>, options: PoolOptions) -> Result<Self> {
        Self::with_records(provider, options, PoolRecords::in_memory()?)
    }

    /// Opens a pool over these records.
    pub(crate) fn with_records(
        provider: Arc<dyn SandboxProvider>,
        options: PoolOptions,
        records: PoolRecords,
    ) -> Result<Self> {
        options.template.clone().validate()?;
        let inner = PoolInner {
            provider,
            options,
            records,
            members: Mutex::default(),
            forwards: OpenPorts::default(),
            changed: Notify::new(),
            comparisons: Arc::new(Semaphore::new(MAX_COMPARISONS)),
        };
        Ok(Self { inner: Arc::new(inner) })
    }

    fn downgrade(&self) -> WeakPool {
        WeakPool(Arc::downgrade(&self.inner))
    }

    /// The options that it was opened with.
    pub fn options(&self) -> &PoolOptions {
        &self.inner.options
    }

    /// The name.
    pub fn name(&self) -> &SandboxName {
        &self.inner.options.name
    }

    /// The provider.
    pub fn provider(&self) -> &Arc<dyn SandboxProvider> {
        &self.inner.provider
    }

    /// Returns the sandbox of this name, POOL/NAME or id: made if there is none yet, woken if it sleeps. A hundred
    /// callers that ask at once for a missing one make one. `quota` if the pool has no room for
    /// another.
    pub async fn get(&self, name: &str) -> Result<Sandbox> {
        let name = self.name_of(name).await?;
        let (up, _) = self.live_sandbox(&name, &PoolCreate::default()).await?;
        Ok(up.sandbox.with_alias(name))
    }

    /// Makes the sandbox of this name unless there is one already. That one stays as it is, awake,
    /// and the answer says in what it differs.
    pub async fn create(&self, name: &str, create: PoolCreate) -> Result<PoolCreated> {
        let sandbox = self.name_of(name).await?;
        let (up, created) = self.live_sandbox(&sandbox, &create).await?;
        let differs = if created { Vec::new() } else { self.differences(&create, &up.row) };
        let image = resolve::image_label(up.row.image.as_deref()).to_owned();
        Ok(PoolCreated { sandbox, created, image, differs })
    }

    /// Lists the sandboxes by name. This wakes none and does not count as activity.
    pub async fn list(&self) -> Result<Vec<PoolEntry>> {
        let rows = self.rows().await?;
        let statuses: BTreeMap<SandboxId, SandboxStatus> =
            self.provider().list().await?.into_iter().map(|info| (info.id, info.status)).collect();
        let entry = |row: SandboxRow| {
            let status = match statuses.get(&row.id)? {
                SandboxStatus::Running => PoolStatus::Running,
                SandboxStatus::Sleeping | SandboxStatus::Dead => PoolStatus::Sleeping,
                SandboxStatus::Damaged => PoolStatus::Damaged,
                SandboxStatus::Creating => return None,
            };
            Some(PoolEntry {
                image: resolve::image_label(row.image.as_deref()).to_owned(),
                name: row.name,
                status,
            })
        };
        Ok(rows.into_iter().filter(|row| row.state == RowState::Live).filter_map(entry).collect())
    }

    /// Puts the sandbox of this name to sleep: its processes are stopped, its files and its env are kept, and any use wakes
    /// it. `not_found` if there is none; one that sleeps already is fine.
    pub async fn sleep(&self, name: &str) -> Result<()> {
        let row = self.live(name).await?;
        self.put_to_sleep(&row).await
    }

    async fn put_to_sleep(&self, row: &SandboxRow) -> Result<()> {
        let (pool, row) = (self.clone(), row.clone());
        run_detached(async move {
            pool.provider().sleep(row.id.as_str()).await?;
            pool.inner.records.record_sleep(&row, "it was put to sleep").await
        })
        .await
    }

    /// Destroys the sandbox of this name; `not_found` if there is none.
    pub async fn remove(&self, name: &str) -> Result<()> {
        let row = self.live(name).await?;
        self.remove_row(&row, "it was removed").await
    }

    async fn remove_row(&self, row: &SandboxRow, reason: &'static str) -> Result<()> {
        let (pool, row) = (self.clone(), row.clone());
        run_detached(async move {
            let removed = pool.inner.records.remove(pool.provider().as_ref(), &row, reason).await;
            pool.forget_name(&row.name);
            removed
        })
        .await
    }

    /// Removes a sandbox whose maker or remover can't go on; see [`PoolRecords::remove_given_up`].
    async fn remove_given_up(&self, row: &SandboxRow) -> Result<()> {
        let (pool, row) = (self.clone(), row.clone());
        run_detached(async move {
            let reason = "whoever was making or removing it could not go on";
            let removed = pool.inner.records.remove_given_up(pool.provider().as_ref(), &row, reason).await;
            if removed.is_ok() {
                pool.forget_name(&row.name);
            }
            removed
        })
        .await
    }

    /// Forgets a name: closes its ports and wakes those who wait.
    fn forget_name(&self, name: &SandboxName) {
        self.inner.forwards.close(name);
        self.members().remove(name);
        self.inner.changed.notify_waiters();
    }

    /// Copies a file or a tree from one sandbox of the pool to another, which is made if need be;
    /// see [`transfer()`](crate::transfer()). A source that does not exist is `not_found` rather than made: its name
    /// is more likely a slip.
    pub async fn transfer(&self, from: &str, to: &str, what: &Transfer) -> Result<Transferred> {
        self.transfer_observed(from, to, what, nobody_watches()).await
    }

    /// Copies as [`SandboxPool::transfer`] does, and tells an observer how far it is.
    pub async fn transfer_observed(
        &self,
        from: &str,
        to: &str,
        what: &Transfer,
        observer: TransferObserver,
    ) -> Result<Transferred> {
        self.live(from).await?;
        let source = self.get(from).await?;
        // A slip in the source's path makes no sandbox.
        check_source(&source, what).await?;
        let target = self.get(to).await?;
        let moved = transfer_observed(&source, &target, what, observer).await?;
        let kind = EventKind::Transferred {
            from: from.to_owned(),
            from_path: what.from_path.clone(),
            to_path: what.to_path.clone(),
            files: moved.files,
            bytes: moved.bytes,
        };
        let row = self.live(to).await?;
        self.inner.records.record(&row, kind, "transfer was called").await?;
        Ok(moved)
    }

    /// Opens a port of a sandbox on the host's loopback: the answer's URL leads to that port, HTTP
    /// and WebSocket alike, as long as the pool is open. The sandbox needs no network for it. The
    /// same port gives the same URL.
    pub async fn browse(&self, name: &str, port: u16) -> Result<Preview> {
        let name = self.name_of(name).await?;
        if port == 0 {
            return Err(Error::invalid("port", "must be from 1 to 65535, not 0"));
        }
        let provider = self.provider();
        provider.capabilities().require(Capability::Dial, provider.name(), "browse", &[])?;
        self.get(name.as_str()).await?;
        let (preview, is_new) = self.inner.forwards.open(self, &name, port).await?;
        if is_new {
            let kind = EventKind::PortOpened { port, url: preview.url.clone() };
            self.inner.records.record(&self.live(name.as_str()).await?, kind, "browse was called").await?;
        }
        Ok(preview)
    }

    /// Destroys every sandbox of the pool, closes its ports and forgets it. The first failure is returned once all were
    /// tried.
    pub async fn close(&self) -> Result<()> {
        let mut first = Ok(());
        let rows = self.rows().await?;
        // Nothing is removed where something could not be.
        for row in &rows {
            if let Err(refused) = require_own_provider(self.provider().as_ref(), row)
                && !self.inner.records.free_if_gone(row).await?
            {
                return Err(refused);
            }
        }
        for row in rows {
            let removed = self.remove(row.name.as_str()).await;
            if removed.as_ref().is_err_and(|error| error.kind() != ErrorKind::NotFound) && first.is_ok() {
                first = removed;
            }
        }
        first?;
        self.remove_snapshots().await?;
        let name = self.name().clone();
        self.inner.records.ask(move |store| store.remove_pool(&name)).await
    }

    /// Returns the sandbox of this name, awake, and whether it was made now.
    async fn live_sandbox(&self, name: &SandboxName, create: &PoolCreate) -> Result<(LiveSandbox, bool)> {
        for () in tries() {
            let member = self.member(name);
            let mut made = false;
            let bring_up = async {
                let (up, was_made) = self.bring_up(name, create).await?;
                made = was_made;
                Ok(up)
            };
            let up = match member.live_sandbox(bring_up).await {
                Ok(up) => up.clone(),
                // Names are the callers' to choose: none stays that came to nothing.
                Err(error) => {
                    self.forget(name, &member);
                    return Err(error);
                }
            };
            if made {
                return Ok((up, true));
            }
            match up.sandbox.exists("/").await {
                Ok(_) => return Ok((up, false)),
                Err(error) if error.is_sleeping() || is_gone(&error) => self.forget(name, &member),
                Err(error) => return Err(error),
            }
        }
        let message = format!("use sandbox `{name}`: it falls asleep, or is destroyed, again and again");
        Err(Error::new(ErrorKind::Conflict, message))
    }

    fn member(&self, name: &SandboxName) -> Arc<Member> {
        Arc::clone(self.members().entry(name.clone()).or_default())
    }

    /// Drops what is known of a sandbox, unless something newer is known.
    fn forget(&self, name: &SandboxName, member: &Arc<Member>) {
        let mut members = self.members();
        if members.get(name).is_some_and(|known| Arc::ptr_eq(known, member)) {
            members.remove(name);
        }
    }

    fn members(&self) -> MutexGuard<'_, BTreeMap<SandboxName, Arc<Member>>> {
        self.inner.members.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn rows(&self) -> Result<Vec<SandboxRow>> {
        let pool = self.name().clone();
        self.inner.records.ask(move |store| store.sandboxes(&pool)).await
    }

    async fn row(&self, name: &SandboxName) -> Result<Option<SandboxRow>> {
        let (pool, name) = (self.name().clone(), name.clone());
        self.inner.records.ask(move |store| store.sandbox_named(&pool, &name)).await
    }

    /// The row of a sandbox that is there.
    async fn live(&self, name: &str) -> Result<SandboxRow> {
        let name = self.name_of(name).await?;
        if let Some(row) = self.inner.records.unless_ended(self.row(&name).await?).await? {
            require_own_provider(self.provider().as_ref(), &row)?;
            return Ok(row);
        }
        let rows = self.rows().await?;
        let there = rows.iter().filter(|row| !row.has_ended_with_its_process());
        let there: Vec<_> = there.map(|row| format!("`{}`", row.name)).collect();
        let hint = if there.is_empty() {
            "the pool has none".to_owned()
        } else {
            format!("there are: {}", there.join(", "))
        };
        Err(Error::new(ErrorKind::NotFound, format!("there is no sandbox `{name}` in this pool"))
            .with_hint(hint))
    }
}

/// Returns whether an error says that its sandbox, or the connection to it, is gone: what is there
/// now is found by its row.
fn is_gone(error: &Error) -> bool {
    matches!(error.kind(), ErrorKind::Destroyed | ErrorKind::Unavailable | ErrorKind::NotFound)
}
