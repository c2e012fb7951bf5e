//! What owns pools: the store that remembers their sandboxes, the event log, and the reconciler that puts right what a
//! process that was killed has left.

mod reconcile;

use std::path::Path;
use std::sync::Arc;

use crate::blocking::blocking;
use crate::error::{Error, ErrorKind, Result};
use crate::events::{EventKind, EventLog, EventLogOptions, EventRecorder, NewEvent};
use crate::observer::Observer;
use crate::pool::{PoolOptions, SandboxPool};
use crate::provider::{SandboxInfo, SandboxProvider};
use crate::spec::{SandboxId, SandboxName};
use crate::store::{Claim, RowState, SandboxRow, Store, lost_store_error};

pub use reconcile::Reconciled;

/// The pools of a state folder, over one provider. Several processes may have one open at a time. Clones are the same.
///
/// In the folder are `eyot.db` (the store) and `events/` (the event log).
#[derive(Clone)]
pub struct Engine {
    provider: Arc<dyn SandboxProvider>,
    records: PoolRecords,
    reconciled_on_open: Arc<[Reconciled]>,
}

/// What is written down about sandboxes, and where.
#[derive(Clone)]
pub(crate) struct PoolRecords {
    pub store: Arc<Store>,
    /// `None`: nothing is recorded.
    pub events: Option<Arc<EventLog>>,
    /// Finds the provider that made a sandbox, where that is not the pool's own.
    pub others: Option<Arc<FindProvider>>,
}

/// Gives the provider of this name over the same state folder, if there is one.
pub type FindProvider = dyn Fn(&str) -> Option<Arc<dyn SandboxProvider>> + Send + Sync;

/// Why a sandbox sleeps that nobody put to sleep. Which of the two it was is not known when it is noticed.
pub(crate) const UNREQUESTED_SLEEP: &str =
    "nobody used it for its time, its host was restarted, or its guest ended unexpectedly";

impl Engine {
    /// Opens the pools of a folder, which is made if need be, and reconciles: see [`Engine::reconcile`]. What that did is in
    /// the event log.
    ///
    /// `conflict`: the store is gone, and there are sandboxes of its pools. [`Store::replace_lost`] makes another.
    pub async fn open(provider: Arc<dyn SandboxProvider>, folder: &Path) -> Result<Self> {
        let (database, log) = (folder.join("eyot.db"), folder.join("events"));
        if Store::is_missing(&database) {
            require_no_orphans(provider.as_ref()).await?;
        }
        let records = blocking(move || {
            let store = Store::open(&database)?;
            let events = EventLog::open(log, EventLogOptions::default())?;
            Ok(PoolRecords { store, events: Some(events), others: None })
        });
        let engine = Self { provider, records: records.await?, reconciled_on_open: Arc::default() };
        let reconciled_on_open = engine.reconcile().await?.into();
        Ok(Self { reconciled_on_open, ..engine })
    }

    /// The same, with the other providers of the folder. They are asked about nothing but a name that one of their sandboxes
    /// holds: it is free once that sandbox is gone.
    #[must_use]
    pub fn with_other_providers(
        mut self,
        find: impl Fn(&str) -> Option<Arc<dyn SandboxProvider>> + Send + Sync + 'static,
    ) -> Self {
        self.records.others = Some(Arc::new(find));
        self
    }

    /// The pool of this name, with these options from now on.
    pub fn pool(&self, options: PoolOptions) -> Result<SandboxPool> {
        SandboxPool::with_records(Arc::clone(&self.provider), options, self.records.clone())
    }

    /// The names of the pools that have, or had, sandboxes here.
    pub async fn pools(&self) -> Result<Vec<SandboxName>> {
        let store = Arc::clone(&self.records.store);
        let rows = blocking(move || store.pools()).await?;
        Ok(rows.into_iter().map(|row| row.name).collect())
    }

    /// What was put right when it was opened.
    pub fn reconciled_on_open(&self) -> &[Reconciled] {
        &self.reconciled_on_open
    }

    /// What is remembered.
    pub fn store(&self) -> &Arc<Store> {
        &self.records.store
    }

    /// The pool that has the sandbox of this id, if one has it.
    pub async fn pool_of(&self, id: &SandboxId) -> Result<Option<SandboxName>> {
        let id = id.clone();
        Ok(self.records.ask(move |store| store.sandbox(&id)).await?.map(|row| row.pool))
    }

    /// What happened.
    pub fn events(&self) -> Option<&Arc<EventLog>> {
        self.records.events.as_ref()
    }
}

impl PoolRecords {
    /// Records that are forgotten with the process.
    pub(crate) fn in_memory() -> Result<Self> {
        Ok(Self { store: Store::in_memory()?, events: None, others: None })
    }

    /// Asks the store, on a thread that may block.
    pub(crate) async fn ask<T: Send + 'static>(
        &self,
        question: impl FnOnce(&Store) -> Result<T> + Send + 'static,
    ) -> Result<T> {
        let store = Arc::clone(&self.store);
        blocking(move || question(&store)).await
    }

    /// Frees the name of a sandbox that another provider made, if that provider says that it is gone: its deadline may have
    /// passed while nobody asked that provider. `false`: it is there, or nobody can tell.
    pub(crate) async fn free_if_gone(&self, row: &SandboxRow) -> Result<bool> {
        let maker = self.others.as_ref().and_then(|find| find(&row.provider));
        let Some(maker) = maker.filter(|_| row.state == RowState::Live) else { return Ok(false) };
        if !is_gone(maker.as_ref(), row).await {
            return Ok(false);
        }
        let reason = "it was found to be gone when another provider was asked for its name";
        self.remove(maker.as_ref(), row, reason).await.map(|()| true)
    }

    /// Records what happened to a sandbox.
    pub(crate) async fn record(
        &self,
        row: &SandboxRow,
        kind: EventKind,
        reason: impl Into<String>,
    ) -> Result<()> {
        let Some(events) = &self.events else { return Ok(()) };
        let event = NewEvent {
            pool: Some(row.pool.to_string()),
            sandbox: Some(row.name.to_string()),
            sandbox_id: Some(row.id.to_string()),
            reason: reason.into(),
            kind,
        };
        events.record(event).await.map(drop)
    }

    /// The sandbox was seen asleep: an event, if that is news.
    pub(crate) async fn record_sleep(&self, row: &SandboxRow, reason: &str) -> Result<()> {
        let id = row.id.clone();
        match self.ask(move |store| store.mark_asleep(&id, true)).await? {
            true => self.record(row, EventKind::Slept, reason).await,
            false => Ok(()),
        }
    }

    /// The sandbox was woken, which is an event; that it had fallen asleep by itself is one as well.
    pub(crate) async fn record_wake(&self, row: &SandboxRow, reason: &str) -> Result<()> {
        self.record_sleep(row, UNREQUESTED_SLEEP).await?;
        let id = row.id.clone();
        self.ask(move |store| store.mark_asleep(&id, false)).await?;
        self.record(row, EventKind::Woke, reason).await
    }

    /// Who records what a sandbox does.
    pub(crate) fn recorder(&self, row: &SandboxRow) -> Option<Arc<dyn Observer>> {
        self.recorder_of(&row.pool, &row.name)
    }

    /// The same by pool and name.
    pub(crate) fn recorder_of(&self, pool: &SandboxName, name: &SandboxName) -> Option<Arc<dyn Observer>> {
        let events = Arc::clone(self.events.as_ref()?);
        Some(Arc::new(EventRecorder::new(events, Some(pool.to_string()), Some(name.to_string()))))
    }

    /// Destroys a sandbox and frees its name. One that the provider does not have any more is fine.
    pub(crate) async fn remove(
        &self,
        provider: &dyn SandboxProvider,
        row: &SandboxRow,
        reason: impl Into<String>,
    ) -> Result<()> {
        require_own_provider(provider, row)?;
        let claim = self.begin_removing(row).await?;
        match provider.remove(row.id.as_str()).await {
            Err(error) if !matches!(error.kind(), ErrorKind::NotFound | ErrorKind::Destroyed) => Err(error),
            _ => self.finish_removing(row, claim, reason).await,
        }
    }

    /// The row says that this process removes the sandbox, until the claim is dropped.
    pub(crate) async fn begin_removing(&self, row: &SandboxRow) -> Result<Claim> {
        let (store, id) = (Arc::clone(&self.store), row.id.clone());
        blocking(move || {
            let claim = store.claim(&id);
            store.begin_removing(&id).map(|_| claim)
        })
        .await
    }

    /// The sandbox is gone: that is recorded, and its row goes.
    pub(crate) async fn finish_removing(
        &self,
        row: &SandboxRow,
        claim: Claim,
        reason: impl Into<String>,
    ) -> Result<()> {
        self.record(row, EventKind::Destroyed, reason).await?;
        let id = row.id.clone();
        self.ask(move |store| store.finish_removing(&id)).await?;
        claim.finish();
        Ok(())
    }
}

/// Refuses to begin a store beside sandboxes that were in one.
async fn require_no_orphans(provider: &dyn SandboxProvider) -> Result<()> {
    // A pool's sandbox has its name from its id, and the one that it has in its pool inside.
    let is_pools = |info: &SandboxInfo| info.spec.hostname.is_some() && info.name == info.id.default_name();
    match provider.list().await?.iter().filter(|info| is_pools(info)).count() {
        0 => Ok(()),
        count => Err(lost_store_error(&format!("sandboxes of its pools are here ({count})"))),
    }
}

/// Whether the provider says so when it is asked for that very sandbox.
pub(crate) async fn is_gone(provider: &dyn SandboxProvider, row: &SandboxRow) -> bool {
    let opened = provider.open(row.id.as_str()).await;
    opened.is_err_and(|error| matches!(error.kind(), ErrorKind::NotFound | ErrorKind::Destroyed))
}

/// Refuses a sandbox that another provider made. This one would take it for gone, and its name for free.
pub(crate) fn require_own_provider(provider: &dyn SandboxProvider, row: &SandboxRow) -> Result<()> {
    if row.provider == provider.name() {
        return Ok(());
    }
    let SandboxRow { name, pool, provider: maker, .. } = row;
    let message =
        format!("use sandbox `{name}` of pool `{pool}`: {maker} made it, and this is {}", provider.name());
    let hint = format!("use it with `--provider {maker}`, or use another pool");
    Err(Error::new(ErrorKind::Conflict, message).with_hint(hint))
}
