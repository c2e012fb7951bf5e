//! The owner of pools: the store that remembers their sandboxes, the event log, and the reconciler
//! that puts right what a process that was killed has left.

mod reconcile;

use std::path::Path;
use std::sync::Arc;

use eyot::{Error, ErrorKind, Result, SandboxId, SandboxImages, SandboxInfo, SandboxName, SandboxProvider};

use crate::blocking::blocking;
use crate::events::{EventLog, EventLogOptions};
use crate::pool::SandboxPool;
use crate::pool_options::PoolOptions;
use crate::records::PoolRecords;
use crate::store::{Store, lost_store_error};

pub use reconcile::Reconciled;

/// The pools of a state folder, over one provider. Several processes may have one open at a time.
/// Clones share one engine.
///
/// In the folder are `eyot.db` (the store) and `events/` (the event log). Servers of several hosts have both in a database
/// instead: [`Engine::open_shared`].
#[derive(Clone)]
pub struct Engine {
    provider: Arc<dyn SandboxProvider>,
    records: PoolRecords,
    reconciled_on_open: Arc<[Reconciled]>,
}

impl Engine {
    /// Opens the pools of a folder, which is made if need be, and reconciles: see [`Engine::reconcile`]. What that did is in
    /// the event log.
    ///
    /// `conflict`: the store is gone, and there are sandboxes of its pools. [`Store::replace_lost`] makes another.
    pub async fn open(provider: Arc<dyn SandboxProvider>, folder: &Path) -> Result<Self> {
        let engine = Self::join(provider, folder).await?;
        let reconciled_on_open = engine.reconcile().await?.into();
        Ok(Self { reconciled_on_open, ..engine })
    }

    /// Opens the pools of a folder as they are, for one call: what a killed process has left is for
    /// the next [`Engine::open`]. The rest is as there.
    pub async fn join(provider: Arc<dyn SandboxProvider>, folder: &Path) -> Result<Self> {
        let (database, log) = (folder.join("eyot.db"), folder.join("events"));
        if Store::is_missing(&database) {
            require_no_orphans(provider.as_ref()).await?;
        }
        let records = blocking(move || {
            let store = Store::open(&database)?;
            let events = EventLog::open_anchored(log, EventLogOptions::default(), Arc::clone(&store))?;
            Ok(PoolRecords { store, events: Some(events), others: None })
        });
        Ok(Self { provider, records: records.await?, reconciled_on_open: Arc::default() })
    }

    /// Opens the pools of a shared store, and reconciles. The provider's sandboxes are the same for all servers of that store.
    pub async fn open_shared(provider: Arc<dyn SandboxProvider>, store: Arc<Store>) -> Result<Self> {
        let engine = Self::join_shared(provider, store);
        if engine.pools().await?.is_empty() {
            require_no_strangers(engine.provider().as_ref()).await?;
        }
        let reconciled_on_open = engine.reconcile().await?.into();
        Ok(Self { reconciled_on_open, ..engine })
    }

    /// Opens the pools of a shared store as they are, for one call.
    pub fn join_shared(provider: Arc<dyn SandboxProvider>, store: Arc<Store>) -> Self {
        let events = EventLog::in_database(Arc::clone(&store));
        let records = PoolRecords { store, events: Some(events), others: None };
        Self { provider, records, reconciled_on_open: Arc::default() }
    }

    /// Adds the other providers of the folder. They are asked only about a name that one of their
    /// sandboxes holds: the name is free once that sandbox is gone.
    #[must_use]
    pub fn with_other_providers(
        mut self,
        find: impl Fn(&str) -> Option<Arc<dyn SandboxProvider>> + Send + Sync + 'static,
    ) -> Self {
        self.records.others = Some(Arc::new(find));
        self
    }

    /// The provider that makes the sandboxes.
    pub fn provider(&self) -> &Arc<dyn SandboxProvider> {
        &self.provider
    }

    /// Returns the images that sandboxes are made from, to list and change them. `unsupported` if the
    /// provider does not keep its images itself. Errors name sandboxes with their pools.
    pub fn images(&self) -> Result<Arc<dyn SandboxImages>> {
        self.provider.images(self.store().namer())
    }

    /// Opens the pool of this name, with these options from now on.
    pub fn pool(&self, options: PoolOptions) -> Result<SandboxPool> {
        SandboxPool::with_records(Arc::clone(&self.provider), options, self.records.clone())
    }

    /// Lists the names of the pools that have, or had, sandboxes here.
    pub async fn pools(&self) -> Result<Vec<SandboxName>> {
        let rows = self.records.ask(Store::pools).await?;
        Ok(rows.into_iter().map(|row| row.name).collect())
    }

    /// Lists what was put right when it was opened.
    pub fn reconciled_on_open(&self) -> &[Reconciled] {
        &self.reconciled_on_open
    }

    /// The store.
    pub fn store(&self) -> &Arc<Store> {
        &self.records.store
    }

    /// Finds the pool that has the sandbox of this id, if one has it.
    pub async fn pool_of(&self, id: &SandboxId) -> Result<Option<SandboxName>> {
        let id = id.clone();
        Ok(self.records.ask(move |store| store.sandbox(&id)).await?.map(|row| row.pool))
    }

    /// The event log.
    pub fn events(&self) -> Option<&Arc<EventLog>> {
        self.records.events.as_ref()
    }
}

/// Refuses to make a store while sandboxes of a lost one exist.
async fn require_no_orphans(provider: &dyn SandboxProvider) -> Result<()> {
    match sandboxes_of_pools(provider).await? {
        0 => Ok(()),
        count => Err(lost_store_error(&format!("sandboxes of its pools are here ({count})"))),
    }
}

/// Refuses a database without pools while sandboxes of pools exist: it is probably another one.
async fn require_no_strangers(provider: &dyn SandboxProvider) -> Result<()> {
    match sandboxes_of_pools(provider).await? {
        0 => Ok(()),
        count => {
            let message = format!("the database knows no pool, and sandboxes of pools are here ({count})");
            Err(Error::new(ErrorKind::Conflict, message).with_hint(
                "name the database that has them, put it back from a copy, or remove these sandboxes first",
            ))
        }
    }
}

/// Counts the sandboxes that were made in pools.
async fn sandboxes_of_pools(provider: &dyn SandboxProvider) -> Result<usize> {
    // A pool's sandbox has its name from its id, and the one that it has in its pool inside.
    let is_pools = |info: &SandboxInfo| info.spec.hostname.is_some() && info.name == info.id.default_name();
    Ok(provider.list().await?.iter().filter(|info| is_pools(info)).count())
}
