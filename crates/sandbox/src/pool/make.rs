//! Bringing a sandbox up: it is made if its name is free, found if it runs, woken if it sleeps.
//!
//! Who may make it is the store's to say; whoever it is does so in a task of its own, which nobody who loses patience can
//! interrupt halfway.

use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt;
use serde::{Deserialize, Serialize};

use super::member::Up;
use super::wake::start_services;
use super::{PoolCreate, PoolOptions, SandboxPool, TRIES};
use crate::blocking::blocking;
use crate::engine::refuse_anothers;
use crate::error::{Error, ErrorKind, Result};
use crate::events::EventKind;
use crate::sandbox::Sandbox;
use crate::spec::{Lifecycle, SandboxId, SandboxName, SandboxSpec};
use crate::store::{Begun, Claim, NewSandbox, Owner, RowState, SandboxRow};
use crate::tasks::to_the_end;

/// How long somebody else's making or removing is waited for, and after how long it is looked whether they still live.
pub(super) const PATIENCE: Duration = Duration::from_secs(60);
pub(super) const LOOK_AGAIN: Duration = Duration::from_secs(1);

/// What the store notes of a pool.
#[derive(Serialize, Deserialize)]
pub(crate) struct Noted {
    options: PoolOptions,
    /// The process whose session it is.
    pub owner: Option<Owner>,
}

impl SandboxPool {
    /// The sandbox of this name, up, and whether it was made for that.
    pub(super) async fn bring_up(&self, name: &SandboxName, create: &PoolCreate) -> Result<(Up, bool)> {
        let (pool, name, create) = (self.clone(), name.clone(), create.clone());
        to_the_end(async move { pool.bring_up_here(&name, &create).await }).await
    }

    async fn bring_up_here(&self, name: &SandboxName, create: &PoolCreate) -> Result<(Up, bool)> {
        for _ in 0..TRIES {
            let id = SandboxId::generate();
            let spec = self.spec(id.clone(), name, create)?;
            let row = match self.begin(name, id, &spec, create).await? {
                BegunHere::Making(row, claim) => return Ok((self.make(*row, claim, spec).await?, true)),
                BegunHere::There(row) => *row,
            };
            if let Err(refused) = refuse_anothers(self.provider().as_ref(), &row) {
                match self.inner.books.free_if_gone(&row).await? {
                    true => continue,
                    false => return Err(refused),
                }
            }
            if row.state != RowState::Live {
                self.wait_for_others(&row).await?;
            } else if let Some(sandbox) = self.find(&row).await? {
                return Ok((Up { sandbox, row }, false));
            } else {
                let reason = "it was found to be gone: its ttl had passed, or it was removed by other means";
                self.inner.books.remove(self.provider().as_ref(), &row, reason).await?;
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
    ) -> Result<BegunHere> {
        spec.clone().validate()?;
        let new = NewSandbox {
            pool: self.name().clone(),
            name: name.clone(),
            id,
            provider: self.provider().name().to_owned(),
            image: self.image(create),
            spec: without_contents(spec.clone()),
            services: create.services.clone(),
            sleep_after_ms: self.sleep_after_ms(create),
            deadline_ms: deadline_ms(&spec.lifecycle),
        };
        self.begin_row(new).await
    }

    /// Takes a name, if it is free; the pool is noted with its first sandbox.
    pub(super) async fn begin_row(&self, new: NewSandbox) -> Result<BegunHere> {
        let (quotas, pool) = (self.options().quotas, self.name().clone());
        let (store, options) = (Arc::clone(&self.inner.books.store), self.noted()?);
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
                Begun::Making(row) => Ok(BegunHere::Making(row, claim)),
                Begun::There(row) => {
                    // Nothing was begun.
                    claim.finish();
                    Ok(BegunHere::There(row))
                }
            }
        })
        .await
    }

    /// What the store notes of the pool: its options; and of a session's, whose it is.
    fn noted(&self) -> Result<serde_json::Value> {
        let owner = self.options().session.then(Owner::this_process).transpose()?;
        let noted = serde_json::to_value(Noted { options: self.options().clone(), owner });
        noted.map_err(|error| {
            Error::new(ErrorKind::Internal, "write a pool's options down").with_source(error)
        })
    }

    /// Makes the sandbox of a row that is this process's to make. A failure frees the name.
    async fn make(&self, row: SandboxRow, claim: Claim, spec: SandboxSpec) -> Result<Up> {
        let made = self.make_and_start(&row, spec).await;
        if made.is_ok() {
            claim.finish();
        }
        if let Err(error) = &made {
            let reason = format!("it could not be made: {error}");
            if let Err(error) = self.inner.books.remove(self.provider().as_ref(), &row, reason).await {
                tracing::warn!(%error, sandbox = %row.id, "free the name of a sandbox that could not be made");
            }
        }
        self.inner.changed.notify_waiters();
        made.map_err(|error| error.context(format!("make sandbox `{}` of pool `{}`", row.name, row.pool)))
    }

    async fn make_and_start(&self, row: &SandboxRow, spec: SandboxSpec) -> Result<Up> {
        let recorder = self.inner.books.recorder(row);
        let sandbox = Sandbox::create_with(self.provider().as_ref(), spec, recorder).await?;
        start_services(&sandbox, &row.services).await?;
        self.inner.books.record(row, EventKind::Created, "its name was used for the first time").await?;
        let id = row.id.clone();
        let row = self.inner.books.ask(move |store| store.finish_making(&id)).await?;
        Ok(Up { sandbox, row })
    }

    /// The sandbox of a row, woken if it sleeps; `None` if it is gone.
    async fn find(&self, row: &SandboxRow) -> Result<Option<Sandbox>> {
        let recorder = self.inner.books.recorder(row);
        match Sandbox::open_with(self.provider().as_ref(), row.id.as_str(), recorder).await {
            Ok(sandbox) => Ok(Some(sandbox)),
            Err(error) if error.is_sleeping() => self.wake(row).await.map(Some),
            Err(error) if matches!(error.kind(), ErrorKind::Destroyed | ErrorKind::NotFound) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Waits until nobody is at work on this row any more. Who has ended in the middle of it is followed by this process.
    pub(super) async fn wait_for_others(&self, row: &SandboxRow) -> Result<()> {
        let given_up = tokio::time::Instant::now() + PATIENCE;
        loop {
            let changed = self.inner.changed.notified();
            let recorded = self.next_event_of(row).await?;
            match self.row(&row.name).await? {
                Some(now) if now.id == row.id && now.state != RowState::Live => {
                    if self.inner.books.store.is_given_up(&now) {
                        self.finish_for_others(&now).await?;
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
    pub(super) async fn next_event_of(&self, row: &SandboxRow) -> Result<impl Future<Output = ()> + use<>> {
        let events = self.inner.books.events.clone();
        let log = events.clone();
        let last_seq = self.inner.books.ask(move |_| log.map_or(Ok(0), |log| log.last_seq())).await?;
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
    async fn finish_for_others(&self, row: &SandboxRow) -> Result<()> {
        match self.remove_row(row, "whoever was making or removing it could not go on").await {
            // Somebody else did, or does.
            Err(error) if matches!(error.kind(), ErrorKind::Conflict | ErrorKind::NotFound) => Ok(()),
            removed => removed,
        }
    }
}

/// What came of asking for a name; see [`Begun`].
pub(super) enum BegunHere {
    /// It is this task's to make.
    Making(Box<SandboxRow>, Claim),
    /// The name is taken.
    There(Box<SandboxRow>),
}

/// When a sandbox that is made now ends, in milliseconds since 1970 (UTC).
pub(super) fn deadline_ms(lifecycle: &Lifecycle) -> Option<i64> {
    let ttl_ms = lifecycle.ttl_ms.filter(|_| lifecycle.auto_destroy)?;
    Some(crate::now::now_ms().saturating_add(i64::try_from(ttl_ms).unwrap_or(i64::MAX)))
}

/// What the store keeps of a spec: what was put into the sandbox is in the sandbox.
pub(super) fn without_contents(mut spec: SandboxSpec) -> SandboxSpec {
    spec.manifest.files.clear();
    spec
}
