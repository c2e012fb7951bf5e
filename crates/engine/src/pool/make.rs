//! Bringing a sandbox up: it is made if its name is free, found if it runs, woken if it sleeps.
//!
//! The store decides which process may make it. That one does so in a task of its own, which a
//! caller that stops waiting cannot interrupt halfway.

use std::sync::Arc;

use eyot::internal::{SandboxInternals, now_ms, run_detached};
use eyot::{
    Error, ErrorKind, Lifecycle, Observer, Result, Sandbox, SandboxId, SandboxName, SandboxProvider,
    SandboxSpec,
};
use futures_util::StreamExt;
use serde::{Deserialize, Serialize};

use super::member::LiveSandbox;
use super::wake::start_services;
use super::{LOOK_AGAIN, PATIENCE, SandboxPool, tries};
use crate::events::EventKind;
use crate::pool_options::{PoolCreate, PoolOptions};
use crate::records::require_own_provider;
use crate::store::{Claim, NameReservation, NewSandbox, Owner, RowState, SandboxRow};

/// The part of a pool that the store keeps as JSON.
#[derive(Serialize, Deserialize)]
pub(crate) struct PoolMetadata {
    options: PoolOptions,
    /// The process whose session it is.
    pub owner: Option<Owner>,
}

impl SandboxPool {
    /// Finds, wakes or makes the sandbox of this name, and returns whether it was made now.
    pub(super) async fn bring_up(
        &self,
        name: &SandboxName,
        create: &PoolCreate,
    ) -> Result<(LiveSandbox, bool)> {
        let (pool, name, create) = (self.clone(), name.clone(), create.clone());
        run_detached(async move { pool.bring_up_inline(&name, &create).await }).await
    }

    async fn bring_up_inline(&self, name: &SandboxName, create: &PoolCreate) -> Result<(LiveSandbox, bool)> {
        for () in tries() {
            let id = SandboxId::generate();
            let spec = self.spec(id.clone(), name, create)?;
            let row = match self.begin(name, id, &spec, create).await? {
                ClaimedReservation::New(new) => return Ok((self.make(*new, spec).await?, true)),
                ClaimedReservation::InUse(row) => *row,
            };
            if let Err(refused) = require_own_provider(self.provider().as_ref(), &row) {
                if self.inner.records.free_if_gone(&row).await? { continue } else { return Err(refused) }
            }
            if row.state != RowState::Live {
                self.wait_for_owner(&row).await?;
            } else if let Some(sandbox) = self.find(&row).await? {
                return Ok((LiveSandbox { sandbox, row }, false));
            } else {
                self.inner.records.remove(self.provider().as_ref(), &row, row.why_gone()).await?;
            }
        }
        let message = format!("use sandbox `{name}`: it appears and vanishes again and again");
        Err(Error::new(ErrorKind::Conflict, message))
    }

    /// Takes the name, if it is free.
    async fn begin(
        &self,
        name: &SandboxName,
        id: SandboxId,
        spec: &SandboxSpec,
        create: &PoolCreate,
    ) -> Result<ClaimedReservation> {
        spec.clone().validate()?;
        let new = NewSandbox {
            pool: self.name().clone(),
            name: name.clone(),
            id,
            provider: self.provider().name().to_owned(),
            lives_with_its_process: self.provider().lives_with_its_process(),
            image: self.image(create),
            spec: without_file_contents(spec.clone()),
            services: create.services.clone(),
            sleep_after_ms: self.sleep_after_ms(create),
            deadline_ms: deadline_ms(&spec.lifecycle),
            snapshots_mib: 0,
        };
        self.begin_row(new).await
    }

    /// Takes a name, if it is free; the pool is noted with its first sandbox.
    pub(super) async fn begin_row(&self, new: NewSandbox) -> Result<ClaimedReservation> {
        let quotas = self.options().quotas;
        // One that is there already counts as it did when it was made.
        let is_there = quotas.disk_mib.is_some() && self.row(&new.name).await?.is_some();
        let snapshots_mib = if is_there { 0 } else { self.mib_of_snapshots().await? };
        let new = NewSandbox { snapshots_mib, ..new };
        let options = self.pool_metadata()?;
        let begun = self.inner.records.store.ask(move |store| {
            let claim = store.claim(&new.id);
            let (begun, with_pool) = match store.begin_making(&new, &quotas) {
                Err(error) if error.kind() == ErrorKind::NotFound => {
                    (store.begin_making_in_new_pool(&new, &quotas, &options), true)
                }
                begun => (begun, false),
            };
            match begun? {
                NameReservation::New(row) => {
                    Ok(ClaimedReservation::New(Box::new(NewMember { row: *row, claim, with_pool })))
                }
                NameReservation::InUse(row) => {
                    // Nothing was begun.
                    claim.finish();
                    Ok(ClaimedReservation::InUse(row))
                }
            }
        });
        begun.await
    }

    /// Returns what the store keeps of the pool: its options and, for a session's pool, the process
    /// that it belongs to.
    pub(super) fn pool_metadata(&self) -> Result<serde_json::Value> {
        let owner = self.options().session.then(|| self.inner.records.store.owner()).transpose()?;
        let noted = serde_json::to_value(PoolMetadata { options: self.options().clone(), owner });
        noted.map_err(|error| {
            Error::new(ErrorKind::Internal, "write a pool's options down").with_source(error)
        })
    }

    /// Makes the sandbox of a row that is this process's to make. A failure frees the name.
    async fn make(&self, new: NewMember, spec: SandboxSpec) -> Result<LiveSandbox> {
        let made = self.make_and_start(&new.row, spec).await;
        let what = format!("make sandbox `{}` of pool `{}`", new.row.name, new.row.pool);
        match &made {
            Ok(_) => new.claim.finish(),
            Err(error) => self.take_back(new, error).await,
        }
        self.inner.changed.notify_waiters();
        made.map_err(|error| error.context(what))
    }

    /// Takes back what was begun for a sandbox that could not be made: its name, and the pool if it was noted for it.
    pub(super) async fn take_back(&self, new: NewMember, error: &Error) {
        let NewMember { row, claim, with_pool } = new;
        let reason = format!("it could not be made: {error}");
        let removed = if error.had_no_effect() {
            self.inner.records.forget(&row, reason).await
        } else {
            self.inner.records.remove(self.provider().as_ref(), &row, reason).await
        };
        match removed {
            // It is free already: another server took this one for ended, and may have looked before there was a sandbox.
            Err(gone) if gone.kind() == ErrorKind::NotFound => self.remove_unnamed(&row.id, error).await,
            Err(error) => {
                tracing::warn!(%error, sandbox = %row.id, "free the name of a sandbox that could not be made");
            }
            Ok(()) => {}
        }
        drop(claim);
        if !with_pool {
            return;
        }
        let removed = self.inner.records.ask(move |store| store.remove_pool(&row.pool)).await;
        match removed {
            // Somebody has made another sandbox in it meanwhile.
            Err(error) if error.kind() == ErrorKind::Conflict => {}
            Err(error) => tracing::warn!(%error, pool = %self.name(), "forget a pool without sandboxes"),
            Ok(()) => {}
        }
    }

    /// Removes a sandbox that has no row any more, unless its create had no effect.
    async fn remove_unnamed(&self, id: &SandboxId, error: &Error) {
        if error.had_no_effect() {
            return;
        }
        match self.provider().remove(id.as_str()).await {
            Err(error) if !matches!(error.kind(), ErrorKind::NotFound | ErrorKind::Destroyed) => {
                tracing::warn!(%error, sandbox = %id, "remove a sandbox that lost its name while it was made");
            }
            _ => {}
        }
    }

    async fn make_and_start(&self, row: &SandboxRow, spec: SandboxSpec) -> Result<LiveSandbox> {
        let recorder = self.inner.records.recorder(row);
        let sandbox = create(self.provider().as_ref(), spec, recorder).await?;
        start_services(&sandbox, &row.services).await?;
        self.inner.records.record(row, EventKind::Created, "its name was used for the first time").await?;
        let id = row.id.clone();
        let row = self.inner.records.ask(move |store| store.finish_making(&id)).await?;
        Ok(LiveSandbox { sandbox, row })
    }

    /// The sandbox of a row, woken if it sleeps; `None` if it is gone.
    async fn find(&self, row: &SandboxRow) -> Result<Option<Sandbox>> {
        let recorder = self.inner.records.recorder(row);
        match self.provider().open(row.id.as_str()).await {
            Ok(created) => Ok(Some(Sandbox::from_created(created, recorder))),
            Err(error) if error.is_sleeping() => self.wake(row).await.map(Some),
            Err(error) if matches!(error.kind(), ErrorKind::Destroyed | ErrorKind::NotFound) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Waits until no process works on this row any more. If its owner ended in the middle of the
    /// work, this process finishes it.
    pub(super) async fn wait_for_owner(&self, row: &SandboxRow) -> Result<()> {
        let given_up = tokio::time::Instant::now() + PATIENCE;
        loop {
            let changed = self.inner.changed.notified();
            let recorded = self.next_event(row).await?;
            match self.row(&row.name).await? {
                Some(now) if now.id == row.id && now.state != RowState::Live => {
                    if self.inner.records.is_given_up(&now).await? {
                        require_own_provider(self.provider().as_ref(), &now)?;
                        self.finish_abandoned(&now).await?;
                        continue;
                    }
                }
                _ => return Ok(()),
            }
            if tokio::time::Instant::now() > given_up {
                let message =
                    format!("use sandbox `{}`: somebody has been at work on it for too long", row.name);
                return Err(Error::new(ErrorKind::Unavailable, message));
            }
            tokio::select! {
                () = changed => {}
                () = recorded => {}
                // A process that is killed sends no notice.
                () = tokio::time::sleep(LOOK_AGAIN) => {}
            }
        }
    }

    /// Returns a future that is ready once any process records an event of this sandbox.
    pub(super) async fn next_event(&self, row: &SandboxRow) -> Result<impl Future<Output = ()> + use<>> {
        let events = self.inner.records.events.clone();
        let log = events.clone();
        let last_seq = self.inner.records.ask(move |_| log.map_or(Ok(0), |log| log.last_seq())).await?;
        let id = row.id.to_string();
        Ok(async move {
            let Some(events) = events else { return std::future::pending().await };
            let mut followed = std::pin::pin!(events.follow(last_seq + 1));
            while let Some(Ok(event)) = followed.next().await {
                if event.sandbox_id.as_ref() == Some(&id) {
                    return;
                }
            }
            std::future::pending().await
        })
    }

    /// Removes a sandbox whose maker or remover can't go on.
    async fn finish_abandoned(&self, row: &SandboxRow) -> Result<()> {
        match self.remove_given_up(row).await {
            // Somebody else did, or does.
            Err(error) if matches!(error.kind(), ErrorKind::Conflict | ErrorKind::NotFound) => Ok(()),
            removed => removed,
        }
    }
}

/// Makes a sandbox, with the observer that records what it does if there is one.
pub(super) async fn create(
    provider: &dyn SandboxProvider,
    spec: SandboxSpec,
    recorder: Option<Arc<dyn Observer>>,
) -> Result<Sandbox> {
    match recorder {
        Some(recorder) => Sandbox::create_observed(provider, spec, recorder).await,
        None => Sandbox::create(provider, spec).await,
    }
}

/// A sandbox that this task is about to make.
pub(super) struct NewMember {
    pub row: SandboxRow,
    pub claim: Claim,
    /// The pool was noted for it.
    pub with_pool: bool,
}

/// The result of asking for a name, with the claim on it; see [`NameReservation`].
pub(super) enum ClaimedReservation {
    /// It is this task's to make.
    New(Box<NewMember>),
    /// The name is taken.
    InUse(Box<SandboxRow>),
}

/// Returns the time at which a sandbox that is made now ends, in milliseconds since 1970 (UTC).
pub(super) fn deadline_ms(lifecycle: &Lifecycle) -> Option<i64> {
    let ttl_ms = lifecycle.ttl_ms.filter(|_| lifecycle.auto_destroy)?;
    Some(now_ms().saturating_add(i64::try_from(ttl_ms).unwrap_or(i64::MAX)))
}

/// Returns a spec without the contents of files, as the store keeps it: the files are in the
/// sandbox.
pub(super) fn without_file_contents(mut spec: SandboxSpec) -> SandboxSpec {
    spec.manifest.files.clear();
    spec
}
