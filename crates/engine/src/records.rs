//! The records of pools: what their sandboxes are, and what happened to them. A removal goes through here, whoever asks for it.

use std::sync::Arc;

use eyot::{Error, ErrorKind, Observer, Result, SandboxName, SandboxProvider, SnapshotInfo};

use crate::events::{EventKind, EventLog, EventRecorder, NewEvent};
use crate::store::{Claim, ENDED_WITH_ITS_PROCESS, FOUND_GONE, RowState, SandboxRow, Store};

/// The records of pools: the store, the event log, and the other providers of the folder.
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

/// The reason for the sleep of a sandbox that was not put to sleep. It is not known which of these
/// it was.
pub(crate) const UNREQUESTED_SLEEP: &str =
    "nobody used it for its time, its host was restarted, or its guest ended unexpectedly";

/// The same, where the sandbox is known to be dead.
pub(crate) const UNEXPECTED_END: &str = "its guest ended unexpectedly, or its host was restarted";

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
        self.store.ask(move |store| question(store)).await
    }

    /// Tells whether somebody has begun to make or remove this sandbox who can't go on.
    pub(crate) async fn is_given_up(&self, row: &SandboxRow) -> Result<bool> {
        if row.owner.is_none() {
            return Ok(false);
        }
        let row = row.clone();
        self.ask(move |store| store.is_given_up(&row)).await
    }

    /// Frees the name of a sandbox that another provider made, if that provider says that it is
    /// gone: its deadline may have passed while that provider was not asked. `false`: it is there,
    /// or that is not known.
    pub(crate) async fn free_if_gone(&self, row: &SandboxRow) -> Result<bool> {
        if row.is_in_another_process() {
            return Ok(false);
        }
        if row.has_ended_with_its_process() && row.state == RowState::Live {
            let claim = self.begin_removing(row).await?;
            return self.finish_removing(row, claim, ENDED_WITH_ITS_PROCESS).await.map(|()| true);
        }
        let maker = self.others.as_ref().and_then(|find| find(&row.provider));
        let Some(maker) = maker.filter(|_| row.state == RowState::Live) else { return Ok(false) };
        if !is_gone(maker.as_ref(), row).await {
            return Ok(false);
        }
        let reason = format!("{FOUND_GONE} when another provider was asked for its name");
        self.remove(maker.as_ref(), row, reason).await.map(|()| true)
    }

    /// Returns a row, unless its sandbox has ended with its process: then its name is freed, whoever the provider is.
    pub(crate) async fn unless_ended(&self, row: Option<SandboxRow>) -> Result<Option<SandboxRow>> {
        match row {
            Some(row) if row.has_ended_with_its_process() && self.free_if_gone(&row).await? => Ok(None),
            row => Ok(row),
        }
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

    /// Records that a snapshot was removed, whose sandbox may be gone.
    pub(crate) async fn record_removal(&self, pool: &SandboxName, snapshot: &SnapshotInfo) -> Result<()> {
        let Some(events) = &self.events else { return Ok(()) };
        let kind = EventKind::SnapshotRemoved { snapshot: snapshot.id.to_string() };
        let event = NewEvent::new(kind, "it was asked for").in_pool(pool.to_string());
        let event = event.of_sandbox(snapshot.sandbox_name.to_string(), snapshot.sandbox.to_string());
        events.record(event).await.map(drop)
    }

    /// Records that the sandbox sleeps, if that was not recorded yet.
    pub(crate) async fn record_sleep(&self, row: &SandboxRow, reason: &str) -> Result<()> {
        let id = row.id.clone();
        if self.ask(move |store| store.mark_asleep(&id, true)).await? {
            self.record(row, EventKind::Slept, reason).await
        } else {
            Ok(())
        }
    }

    /// Records that the sandbox was woken, and before that its sleep, if that was not recorded yet.
    pub(crate) async fn record_wake(&self, row: &SandboxRow, reason: &str) -> Result<()> {
        self.record_sleep(row, UNREQUESTED_SLEEP).await?;
        let id = row.id.clone();
        self.ask(move |store| store.mark_asleep(&id, false)).await?;
        self.record(row, EventKind::Woke, reason).await
    }

    /// Returns the observer that records what a sandbox does.
    pub(crate) fn recorder(&self, row: &SandboxRow) -> Option<Arc<dyn Observer>> {
        self.recorder_of(&row.pool, &row.name)
    }

    /// Returns the observer for a sandbox by pool and name.
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
        self.remove_claimed(provider, row, claim, reason).await
    }

    /// Removes the row of a sandbox that its provider has never begun to make.
    pub(crate) async fn forget(&self, row: &SandboxRow, reason: impl Into<String>) -> Result<()> {
        let claim = self.begin_removing(row).await?;
        self.finish_removing(row, claim, reason).await
    }

    /// Removes a sandbox whose maker or remover can't go on. `conflict` if that is not so, or not any more.
    pub(crate) async fn remove_given_up(
        &self,
        provider: &dyn SandboxProvider,
        row: &SandboxRow,
        reason: impl Into<String>,
    ) -> Result<()> {
        require_own_provider(provider, row)?;
        let id = row.id.clone();
        let claim = self.store.ask(move |store| {
            let claim = store.claim(&id);
            store.begin_removing_given_up(&id).map(|_| claim)
        });
        self.remove_claimed(provider, row, claim.await?, reason).await
    }

    async fn remove_claimed(
        &self,
        provider: &dyn SandboxProvider,
        row: &SandboxRow,
        claim: Claim,
        reason: impl Into<String>,
    ) -> Result<()> {
        match provider.remove(row.id.as_str()).await {
            Err(error) if !matches!(error.kind(), ErrorKind::NotFound | ErrorKind::Destroyed) => Err(error),
            _ => self.finish_removing(row, claim, reason).await,
        }
    }

    /// Marks the row as being removed by this process, until the claim is dropped.
    pub(crate) async fn begin_removing(&self, row: &SandboxRow) -> Result<Claim> {
        let id = row.id.clone();
        let claimed = self.store.ask(move |store| {
            let claim = store.claim(&id);
            store.begin_removing(&id).map(|_| claim)
        });
        claimed.await
    }

    /// Records that the sandbox is gone, and removes its row.
    pub(crate) async fn finish_removing(
        &self,
        row: &SandboxRow,
        claim: Claim,
        reason: impl Into<String>,
    ) -> Result<()> {
        let reason = reason.into();
        match self.record(row, EventKind::Destroyed, reason.clone()).await {
            // The disk is full, and this removal is to make room.
            Err(error) if error.kind() == ErrorKind::Quota && self.store.give_up_spare() => {
                self.record(row, EventKind::Destroyed, reason).await?;
            }
            recorded => recorded?,
        }
        let id = row.id.clone();
        self.ask(move |store| store.finish_removing(&id)).await?;
        claim.finish();
        Ok(())
    }
}

/// Returns whether the provider says so when it is asked for that very sandbox.
pub(crate) async fn is_gone(provider: &dyn SandboxProvider, row: &SandboxRow) -> bool {
    let opened = provider.open(row.id.as_str()).await;
    opened.is_err_and(|error| matches!(error.kind(), ErrorKind::NotFound | ErrorKind::Destroyed))
}

/// Tells whether a sandbox is this provider's, in this process.
pub(crate) fn is_own(provider: &dyn SandboxProvider, row: &SandboxRow) -> bool {
    row.provider == provider.name() && !row.is_in_another_process()
}

/// Refuses a sandbox that another provider made, or that is in another process. This one would take it for gone, and
/// its name for free.
pub(crate) fn require_own_provider(provider: &dyn SandboxProvider, row: &SandboxRow) -> Result<()> {
    if is_own(provider, row) {
        return Ok(());
    }
    let SandboxRow { name, pool, provider: maker, .. } = row;
    if let Some(process) = row.process.as_ref().filter(|_| row.is_in_another_process()) {
        let message =
            format!("use sandbox `{name}` of pool `{pool}`: it is in the memory of process {}", process.pid);
        let hint = "use it through that process, which may be a server (`--server`), or use another pool";
        return Err(Error::new(ErrorKind::Conflict, message).with_hint(hint));
    }
    let message =
        format!("use sandbox `{name}` of pool `{pool}`: {maker} made it, and this is {}", provider.name());
    let hint = format!("use it with `--provider {maker}`, or use another pool");
    Err(Error::new(ErrorKind::Conflict, message).with_hint(hint))
}
