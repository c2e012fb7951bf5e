//! Bringing a sandbox up: it is made if its name is free, found if it runs, woken if it sleeps.
//!
//! Who may make it is the store's to say; whoever it is does so in a task of its own, which nobody who loses patience can
//! interrupt halfway.

use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt;
use serde::{Deserialize, Serialize};

use super::member::LiveSandbox;
use super::wake::start_services;
use super::{PoolCreate, PoolOptions, SandboxPool, TRIES};
use crate::blocking::blocking;
use crate::engine::require_own_provider;
use crate::error::{Error, ErrorKind, Result};
use crate::events::EventKind;
use crate::sandbox::Sandbox;
use crate::spec::{Lifecycle, SandboxId, SandboxName, SandboxSpec};
use crate::store::{Claim, NameReservation, NewSandbox, Owner, RowState, SandboxRow};
use crate::tasks::run_detached;

/// How long somebody else's making or removing is waited for, and after how long it is looked whether they still live.
pub(super) const PATIENCE: Duration = Duration::from_secs(60);
pub(super) const LOOK_AGAIN: Duration = Duration::from_secs(1);

/// What the store notes of a pool.
#[derive(Serialize, Deserialize)]
pub(crate) struct PoolMetadata {
    options: PoolOptions,
    /// The process whose session it is.
    pub owner: Option<Owner>,
}

impl SandboxPool {
    /// The sandbox of this name, up, and whether it was made for that.
    pub(super) async fn bring_up(
        &self,
        name: &SandboxName,
        create: &PoolCreate,
    ) -> Result<(LiveSandbox, bool)> {
        let (pool, name, create) = (self.clone(), name.clone(), create.clone());
        run_detached(async move { pool.bring_up_inline(&name, &create).await }).await
    }

    async fn bring_up_inline(&self, name: &SandboxName, create: &PoolCreate) -> Result<(LiveSandbox, bool)> {
        for _ in 0..TRIES {
            let id = SandboxId::generate();
            let spec = self.spec(id.clone(), name, create)?;
            let row = match self.begin(name, id, &spec, create).await? {
                ClaimedReservation::New(row, claim) => {
                    return Ok((self.make(*row, claim, spec).await?, true));
                }
                ClaimedReservation::InUse(row) => *row,
            };
            if let Err(refused) = require_own_provider(self.provider().as_ref(), &row) {
                match self.inner.records.free_if_gone(&row).await? {
                    true => continue,
                    false => return Err(refused),
                }
            }
            if row.state != RowState::Live {
                self.wait_for_owner(&row).await?;
            } else if let Some(sandbox) = self.find(&row).await? {
                return Ok((LiveSandbox { sandbox, row }, false));
            } else {
                let reason = "it was found to be gone: its ttl had passed, or it was removed by other means";
                self.inner.records.remove(self.provider().as_ref(), &row, reason).await?;
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
            image: self.image(create),
            spec: without_file_contents(spec.clone()),
            services: create.services.clone(),
            sleep_after_ms: self.sleep_after_ms(create),
            deadline_ms: deadline_ms(&spec.lifecycle),
        };
        self.begin_row(new).await
    }

    /// Takes a name, if it is free; the pool is noted with its first sandbox.
    pub(super) async fn begin_row(&self, new: NewSandbox) -> Result<ClaimedReservation> {
        let (quotas, pool) = (self.options().quotas, self.name().clone());
        let (store, options) = (Arc::clone(&self.inner.records.store), self.pool_metadata()?);
        blocking(move || {
            let claim = store.claim(&new.id);
            let begun = match store.begin_making(&new, &quotas) {
                Err(error) if error.kind() == ErrorKind::NotFound => {
                    store.put_pool(&pool, &options)?;
                    store.begin_making(&new, &quotas)
                }
                begun => begun,
            };
            match begun? {
                NameReservation::New(row) => Ok(ClaimedReservation::New(row, claim)),
                NameReservation::InUse(row) => {
                    // Nothing was begun.
                    claim.finish();
                    Ok(ClaimedReservation::InUse(row))
                }
            }
        })
        .await
    }

    /// What the store notes of the pool: its options; and of a session's, whose it is.
    fn pool_metadata(&self) -> Result<serde_json::Value> {
        let owner = self.options().session.then(Owner::this_process).transpose()?;
        let noted = serde_json::to_value(PoolMetadata { options: self.options().clone(), owner });
        noted.map_err(|error| {
            Error::new(ErrorKind::Internal, "write a pool's options down").with_source(error)
        })
    }

    /// Makes the sandbox of a row that is this process's to make. A failure frees the name.
    async fn make(&self, row: SandboxRow, claim: Claim, spec: SandboxSpec) -> Result<LiveSandbox> {
        let made = self.make_and_start(&row, spec).await;
        if made.is_ok() {
            claim.finish();
        }
        if let Err(error) = &made {
            let reason = format!("it could not be made: {error}");
            if let Err(error) = self.inner.records.remove(self.provider().as_ref(), &row, reason).await {
                tracing::warn!(%error, sandbox = %row.id, "free the name of a sandbox that could not be made");
            }
        }
        self.inner.changed.notify_waiters();
        made.map_err(|error| error.context(format!("make sandbox `{}` of pool `{}`", row.name, row.pool)))
    }

    async fn make_and_start(&self, row: &SandboxRow, spec: SandboxSpec) -> Result<LiveSandbox> {
        let recorder = self.inner.records.recorder(row);
        let sandbox = Sandbox::create_with(self.provider().as_ref(), spec, recorder).await?;
        start_services(&sandbox, &row.services).await?;
        self.inner.records.record(row, EventKind::Created, "its name was used for the first time").await?;
        let id = row.id.clone();
        let row = self.inner.records.ask(move |store| store.finish_making(&id)).await?;
        Ok(LiveSandbox { sandbox, row })
    }

    /// The sandbox of a row, woken if it sleeps; `None` if it is gone.
    async fn find(&self, row: &SandboxRow) -> Result<Option<Sandbox>> {
        let recorder = self.inner.records.recorder(row);
        match Sandbox::open_with(self.provider().as_ref(), row.id.as_str(), recorder).await {
            Ok(sandbox) => Ok(Some(sandbox)),
            Err(error) if error.is_sleeping() => self.wake(row).await.map(Some),
            Err(error) if matches!(error.kind(), ErrorKind::Destroyed | ErrorKind::NotFound) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Waits until nobody is at work on this row any more. Who has ended in the middle of it is followed by this process.
    pub(super) async fn wait_for_owner(&self, row: &SandboxRow) -> Result<()> {
        let given_up = tokio::time::Instant::now() + PATIENCE;
        loop {
            let changed = self.inner.changed.notified();
            let recorded = self.next_event(row).await?;
            match self.row(&row.name).await? {
                Some(now) if now.id == row.id && now.state != RowState::Live => {
                    if self.inner.records.store.is_given_up(&now) {
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
                // Whoever is killed tells nobody.
                () = tokio::time::sleep(LOOK_AGAIN) => {}
            }
        }
    }

    /// Ready when something is recorded of this sandbox from now on, by whatever process.
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

    /// Removes what somebody was making or removing who can't go on.
    async fn finish_abandoned(&self, row: &SandboxRow) -> Result<()> {
        match self.remove_row(row, "whoever was making or removing it could not go on").await {
            // Somebody else did, or does.
            Err(error) if matches!(error.kind(), ErrorKind::Conflict | ErrorKind::NotFound) => Ok(()),
            removed => removed,
        }
    }
}

/// What came of asking for a name; see [`NameReservation`].
pub(super) enum ClaimedReservation {
    /// It is this task's to make.
    New(Box<SandboxRow>, Claim),
    /// The name is taken.
    InUse(Box<SandboxRow>),
}

/// When a sandbox that is made now ends, in milliseconds since 1970 (UTC).
pub(super) fn deadline_ms(lifecycle: &Lifecycle) -> Option<i64> {
    let ttl_ms = lifecycle.ttl_ms.filter(|_| lifecycle.auto_destroy)?;
    Some(crate::now::now_ms().saturating_add(i64::try_from(ttl_ms).unwrap_or(i64::MAX)))
}

/// What the store keeps of a spec: what was put into the sandbox is in the sandbox.
pub(super) fn without_file_contents(mut spec: SandboxSpec) -> SandboxSpec {
    spec.manifest.files.clear();
    spec
}
