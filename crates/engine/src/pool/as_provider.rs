//! A pool as a provider: its own sandboxes, by their names in it, made from whole specs. A server
//! hands it to a client that may use one pool and no other.

use std::sync::Arc;

use async_trait::async_trait;
use eyot::internal::{SandboxInternals, refuse_another_id, renamed_sleeping, run_detached};
use eyot::{
    Capabilities, Capability, Created, Error, ErrorKind, Isolation, ProviderTools, Result, Sandbox,
    SandboxCowMounts, SandboxId, SandboxImages, SandboxInfo, SandboxKeeper, SandboxName, SandboxNamer,
    SandboxOperationUnsupported, SandboxProvider, SandboxSnapshots, SandboxSpec, SandboxStatus, Usage,
    ValidSpec, WorkspaceSpec,
};
use tokio::time::Instant;

use super::apply::PoolCowMounts;
use super::keeper::PoolKeeper;
use super::make::{ClaimedReservation, NewMember, create, without_file_contents};
use super::snapshots::PoolSnapshots;
use super::{PATIENCE, SandboxPool};
use crate::events::EventKind;
use crate::records::{UNEXPECTED_END, UNREQUESTED_SLEEP, require_own_provider};
use crate::store::{NewSandbox, RowState, SandboxRow};

/// A pool as a provider. Made by [`SandboxPool::as_provider`].
///
/// A name belongs to the pool, and so does a persistent workspace: another pool may have one of the same name, and neither can
/// tell. To the provider below, each sandbox has a name made from its id, and `workspaces.rs` says which id a workspace has. The pool's quotas, its aliases of images and its default image hold; its template
/// does not, since specs are whole here.
#[derive(Clone)]
pub struct PoolProvider {
    pool: SandboxPool,
    caller: PoolCaller,
    capabilities: Capabilities,
}

/// The caller of a pool as a provider, who decides what the provider below is told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum PoolCaller {
    /// May use the pool and no other: names are made from ids.
    Tenant,
    /// Owns the state folder: names are told as they are asked for, and every workspace can be had.
    Owner,
}

impl SandboxPool {
    /// This pool as a provider.
    pub fn as_provider(&self) -> Arc<PoolProvider> {
        // Images belong to the state folder.
        let all = self.provider().capabilities();
        let capabilities = Capabilities::new(all.iter().filter(|one| *one != Capability::Commit));
        Arc::new(PoolProvider { pool: self.clone(), caller: PoolCaller::Tenant, capabilities })
    }

    /// This pool as a provider, for the owner of the state folder: the provider below is told the
    /// names as they are asked for, and persistent workspaces of every pool can be named.
    pub fn as_host_provider(&self) -> Arc<PoolProvider> {
        let capabilities = self.provider().capabilities().clone();
        Arc::new(PoolProvider { pool: self.clone(), caller: PoolCaller::Owner, capabilities })
    }
}

// A method that is added to the trait must be answered here, too.
#[deny(clippy::missing_trait_methods)]
#[async_trait]
impl SandboxProvider for PoolProvider {
    fn name(&self) -> &str {
        self.pool.provider().name()
    }

    fn capabilities(&self) -> &Capabilities {
        &self.capabilities
    }

    fn lives_with_its_process(&self) -> bool {
        self.pool.provider().lives_with_its_process()
    }

    async fn isolation(&self) -> Result<Isolation> {
        self.pool.provider().isolation().await
    }

    async fn create(&self, spec: &ValidSpec) -> Result<Created> {
        let (pool, caller, spec) = (self.pool.clone(), self.caller, spec.clone());
        // A result that nobody takes is dropped with the task, and undone.
        let made = run_detached(async move {
            pool.make_new(&spec, caller).await.map(|created| UnclaimedSandbox(Some(created)))
        });
        made.await.and_then(UnclaimedSandbox::claim)
    }

    async fn open(&self, id_or_name: &str) -> Result<Created> {
        let row = self.pool.live_row(id_or_name).await?;
        let opened = self.pool.provider().open(row.id.as_str()).await;
        let opened = self.pool.under_pool_name(&row, id_or_name, opened).await?;
        Ok(self.pool.pool_sandbox(opened, row))
    }

    async fn list(&self) -> Result<Vec<SandboxInfo>> {
        let rows = self.pool.rows().await?;
        let mut infos = self.pool.provider().list().await?;
        infos.retain_mut(|info| is_among(&rows, info));
        Ok(infos)
    }

    async fn list_with_usage(&self) -> Result<Vec<(SandboxInfo, Option<Usage>)>> {
        let rows = self.pool.rows().await?;
        let mut infos = self.pool.provider().list_with_usage().await?;
        infos.retain_mut(|(info, _)| is_among(&rows, info));
        Ok(infos)
    }

    async fn info(&self, id_or_name: &str) -> Result<SandboxInfo> {
        let row = self.pool.row_by_id_or_name(id_or_name).await?;
        let info = self.pool.provider().info(row.id.as_str()).await;
        let mut info = match row.state {
            RowState::Live => self.pool.under_pool_name(&row, id_or_name, info).await?,
            // It is not there yet, or not any more, and somebody is at work on that.
            RowState::Making | RowState::Removing => info?,
        };
        name(&mut info, &row);
        Ok(info)
    }

    async fn remove(&self, id_or_name: &str) -> Result<()> {
        let row = self.pool.row_by_id_or_name(id_or_name).await?;
        if row.state == RowState::Making {
            self.pool.wait_for_owner(&row).await?;
        }
        self.pool.remove_row(&row, "it was removed").await
    }

    async fn sleep(&self, id_or_name: &str) -> Result<()> {
        let row = self.pool.live_row(id_or_name).await?;
        let slept = self.pool.put_to_sleep(&row).await;
        self.pool.under_pool_name(&row, id_or_name, slept).await
    }

    async fn wake(&self, id_or_name: &str) -> Result<Created> {
        let row = self.pool.live_row(id_or_name).await?;
        let woken = self.pool.wake(&row).await;
        let woken = self.pool.under_pool_name(&row, id_or_name, woken).await?;
        Ok(self.pool.pool_sandbox(woken.into_created(), row))
    }

    fn images(&self, names: SandboxNamer) -> Result<Arc<dyn SandboxImages>> {
        match self.caller {
            PoolCaller::Owner => self.pool.provider().images(names),
            // Images belong to the state folder, and errors about them name sandboxes of every pool.
            PoolCaller::Tenant => Err(SandboxOperationUnsupported::new("images", self.name(), &[]).into()),
        }
    }

    fn snapshots(&self) -> Result<Arc<dyn SandboxSnapshots>> {
        let all = self.pool.provider().snapshots()?;
        let may_commit = matches!(self.caller, PoolCaller::Owner);
        Ok(Arc::new(PoolSnapshots { pool: self.pool.clone(), all, may_commit }))
    }

    fn cow_mounts(&self) -> Result<Arc<dyn SandboxCowMounts>> {
        match self.caller {
            PoolCaller::Owner => {
                let all = self.pool.provider().cow_mounts()?;
                Ok(Arc::new(PoolCowMounts { pool: self.pool.clone(), all }))
            }
            // The folders are those of the host.
            PoolCaller::Tenant => Err(SandboxOperationUnsupported::new("apply", self.name(), &[]).into()),
        }
    }

    fn tools(&self) -> Option<Arc<dyn ProviderTools>> {
        self.pool.provider().tools()
    }

    async fn has_workspace(&self, id: &str) -> Result<bool> {
        let id = self.pool.workspace_id(id, self.caller).await?;
        self.pool.provider().has_workspace(&id).await
    }
}

/// A sandbox that no caller has received yet. Dropping it undoes the create.
struct UnclaimedSandbox(Option<Created>);

impl UnclaimedSandbox {
    fn claim(mut self) -> Result<Created> {
        self.0.take().ok_or_else(|| Error::new(ErrorKind::Internal, "a sandbox was handed out twice"))
    }
}

impl Drop for UnclaimedSandbox {
    fn drop(&mut self) {
        let Some(Created { info, keeper: Some(keeper), .. }) = self.0.take() else { return };
        match tokio::runtime::Handle::try_current() {
            Ok(runtime) => drop(runtime.spawn(async move {
                if let Err(error) = keeper.abandon().await {
                    tracing::warn!(sandbox = %info.id, %error, "undo a create that nobody waits for");
                }
            })),
            Err(_) => tracing::warn!(sandbox = %info.id, "a sandbox was abandoned while it was being made"),
        }
    }
}

impl SandboxPool {
    /// Makes a sandbox under a name that is free.
    async fn make_new(&self, spec: &ValidSpec, caller: PoolCaller) -> Result<Created> {
        let inner = self.inner_spec(spec, caller).await?;
        let new = self.begin_new(spec).await?;
        let made = self.create_new(&inner, &new.row).await;
        let made = match made {
            Ok(created) => {
                new.claim.finish();
                Ok(created)
            }
            Err(error) => {
                self.take_back(new, &error).await;
                Err(error)
            }
        };
        self.inner.changed.notify_waiters();
        made
    }

    async fn create_new(&self, spec: &ValidSpec, row: &SandboxRow) -> Result<Created> {
        let created = self.provider().create(spec).await?;
        let created = self.pool_sandbox(created, SandboxRow { state: RowState::Live, ..row.clone() });
        let Err(error) = self.finish_new(row).await else { return Ok(created) };
        if let Some(keeper) = created.keeper
            && let Err(error) = keeper.abandon().await
        {
            tracing::warn!(sandbox = %row.id, %error, "undo a create that could not be noted");
        }
        Err(error)
    }

    async fn finish_new(&self, row: &SandboxRow) -> Result<()> {
        self.inner.records.record(row, EventKind::Created, "it was asked for").await?;
        let id = row.id.clone();
        self.inner.records.ask(move |store| store.finish_making(&id)).await.map(drop)
    }

    /// Reserves the name: `already_exists` if it is in use.
    async fn begin_new(&self, spec: &ValidSpec) -> Result<NewMember> {
        let lifecycle = &spec.spec().lifecycle;
        let mut recorded = without_file_contents(spec.spec().clone());
        self.options().unless_limited.fill(&mut recorded.limits);
        let new = NewSandbox {
            pool: self.name().clone(),
            name: spec.name().clone(),
            id: spec.id().clone(),
            provider: self.provider().name().to_owned(),
            lives_with_its_process: self.provider().lives_with_its_process(),
            image: self.image_of_new(spec).await?,
            spec: recorded,
            services: Vec::new(),
            sleep_after_ms: None,
            deadline_ms: super::make::deadline_ms(lifecycle),
            snapshots_mib: 0,
        };
        for () in super::tries() {
            match self.begin_row(new.clone()).await? {
                ClaimedReservation::New(new) => return Ok(*new),
                ClaimedReservation::InUse(row) if self.is_name_being_freed(&row).await? => {
                    self.wait_for_owner(&row).await?
                }
                ClaimedReservation::InUse(row) => self.refuse_unless_gone(&row).await?,
            }
        }
        let message =
            format!("create sandbox: the name `{}` appears and vanishes again and again", spec.name());
        Err(Error::new(ErrorKind::Conflict, message))
    }

    /// Returns the image of a new sandbox, as lists show it.
    async fn image_of_new(&self, spec: &ValidSpec) -> Result<Option<String>> {
        match &spec.spec().snapshot {
            Some(snapshot) => Ok(self.usable_snapshot(snapshot).await?.spec.image),
            None => Ok(spec.spec().image.clone().or_else(|| self.options().default_image.clone())),
        }
    }

    /// Returns whether a name is about to be free: its sandbox is being removed, or its maker could
    /// not go on.
    async fn is_name_being_freed(&self, row: &SandboxRow) -> Result<bool> {
        Ok(row.state == RowState::Removing || self.inner.records.is_given_up(row).await?)
    }

    /// Refuses a name that a sandbox has. `already_exists`.
    pub(super) async fn refuse_in_use(&self, name: &SandboxName) -> Result<()> {
        match self.row(name).await? {
            Some(row) if !self.is_name_being_freed(&row).await? => self.refuse_unless_gone(&row).await,
            _ => Ok(()),
        }
    }

    /// Frees the name of a sandbox that is not there any more: its ttl has passed, say.
    async fn refuse_unless_gone(&self, row: &SandboxRow) -> Result<()> {
        if require_own_provider(self.provider().as_ref(), row).is_err()
            && self.inner.records.free_if_gone(row).await?
        {
            return Ok(());
        }
        let is_gone = |error: &Error| matches!(error.kind(), ErrorKind::NotFound | ErrorKind::Destroyed);
        let found = match row.state {
            RowState::Live if require_own_provider(self.provider().as_ref(), row).is_ok() => {
                self.provider().open(row.id.as_str()).await.map(drop)
            }
            _ => Ok(()),
        };
        match found {
            Err(error) if is_gone(&error) => self.free_name(row).await,
            _ => {
                let message = format!("create sandbox: the name `{}` is in use", row.name);
                let error = Error::new(ErrorKind::AlreadyExists, message);
                match row.process.as_ref().filter(|_| row.is_in_another_process()) {
                    Some(process) => {
                        let pid = process.pid;
                        Err(error.with_hint(format!("the one of that name is in the memory of process {pid}: take another name, or use that one through its server (`--server`)")))
                    }
                    None => Err(error),
                }
            }
        }
    }

    /// The spec as the provider gets it.
    async fn inner_spec(&self, spec: &ValidSpec, caller: PoolCaller) -> Result<ValidSpec> {
        let mut inner: SandboxSpec = spec.requested();
        inner.id = Some(spec.id().clone());
        match caller {
            PoolCaller::Tenant => (inner.name, inner.hostname) = (None, Some(spec.hostname().clone())),
            PoolCaller::Owner => inner.name = Some(spec.name().clone()),
        }
        if let WorkspaceSpec::Persistent { id, .. } = &mut inner.workspace {
            *id = self.workspace_id(id, caller).await?;
        }
        self.options().unless_limited.fill(&mut inner.limits);
        if let Some(snapshot) = &inner.snapshot {
            // Of this pool, and of no other.
            self.usable_snapshot(snapshot).await?;
            return inner.validate();
        }
        let image = inner.image.or_else(|| self.options().default_image.clone());
        inner.image = image.map(|named| self.options().images.get(&named).cloned().unwrap_or(named));
        inner.validate()
    }

    /// Takes a sandbox into the pool that was made without one. Returns whether it did: the name
    /// may be taken.
    pub(crate) async fn adopt(&self, info: &SandboxInfo) -> Result<bool> {
        let new = NewSandbox {
            pool: self.name().clone(),
            name: info.name.clone(),
            id: info.id.clone(),
            provider: self.provider().name().to_owned(),
            lives_with_its_process: self.provider().lives_with_its_process(),
            image: info.spec.image.clone(),
            spec: without_file_contents(info.spec.clone()),
            services: Vec::new(),
            sleep_after_ms: None,
            deadline_ms: super::make::deadline_ms(&info.spec.lifecycle),
            snapshots_mib: 0,
        };
        let options = self.pool_metadata()?;
        self.inner.records.ask(move |store| store.adopt(&new, &options)).await
    }

    /// The row of a sandbox of this pool, by id or name.
    async fn row_by_id_or_name(&self, id_or_name: &str) -> Result<SandboxRow> {
        let row = match (SandboxId::parse(id_or_name), self.name_in_pool(id_or_name)) {
            (Ok(id), _) => self.inner.records.ask(move |store| store.sandbox(&id)).await?,
            (Err(_), Ok(name)) => self.row(&name).await?,
            (Err(_), Err(_)) => None,
        };
        let row = self.inner.records.unless_ended(row.filter(|row| row.pool == *self.name())).await?;
        let row = row.ok_or_else(|| {
            Error::new(ErrorKind::NotFound, format!("there is no sandbox `{id_or_name}` in this pool"))
        })?;
        require_own_provider(self.provider().as_ref(), &row)?;
        Ok(row)
    }

    /// Finds a row whose sandbox is neither being made nor removed.
    pub(super) async fn live_row(&self, id_or_name: &str) -> Result<SandboxRow> {
        let row = self.row_by_id_or_name(id_or_name).await?;
        match row.state {
            RowState::Live => Ok(row),
            _ if self.inner.records.is_given_up(&row).await? => match self.remove_given_up(&row).await {
                // Its maker came to the end since the row was read, or somebody else removes it.
                Err(error) if error.kind() == ErrorKind::Conflict => {
                    match self.row_by_id_or_name(id_or_name).await? {
                        row if row.state == RowState::Live => Ok(row),
                        _ => Err(Error::destroyed(id_or_name)),
                    }
                }
                Err(error) if error.kind() != ErrorKind::NotFound => Err(error),
                _ => Err(Error::destroyed(id_or_name)),
            },
            RowState::Making => {
                let message = format!("sandbox `{id_or_name}` is being made");
                Err(Error::new(ErrorKind::Unavailable, message).with_hint("try again in a moment"))
            }
            RowState::Removing => Err(Error::destroyed(id_or_name)),
        }
    }

    /// Returns what the provider says of a sandbox, with the name that was asked for in its errors.
    /// One that is gone gives its name back.
    async fn under_pool_name<T>(&self, row: &SandboxRow, asked: &str, result: Result<T>) -> Result<T> {
        let error = match result {
            Ok(value) => return Ok(value),
            Err(error) => error,
        };
        match error.kind() {
            _ if error.is_sleeping() => {
                let reason = if error.is_dead() { UNEXPECTED_END } else { UNREQUESTED_SLEEP };
                self.inner.records.record_sleep(row, reason).await?;
                Err(renamed_sleeping(&error, asked))
            }
            ErrorKind::NotFound | ErrorKind::Destroyed => {
                self.free_name(row).await?;
                Err(if row.has_expired() { Error::expired(asked) } else { error.renamed_destroyed(asked) })
            }
            _ => Err(error),
        }
    }

    /// Frees the name of a sandbox that the provider does not have. That somebody else does so is as good.
    async fn free_name(&self, row: &SandboxRow) -> Result<()> {
        match self.remove_row(row, row.why_gone()).await {
            Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::Conflict) => Ok(()),
            freed => freed,
        }
    }

    /// A sandbox of the provider as one of this pool.
    fn pool_sandbox(&self, created: Created, row: SandboxRow) -> Created {
        let Created { mut info, driver, .. } = created;
        name(&mut info, &row);
        let keeper: Arc<dyn SandboxKeeper> =
            Arc::new(PoolKeeper { pool: self.clone(), row, driver: Arc::clone(&driver) });
        Created { info, driver, keeper: Some(keeper) }
    }
}

/// Tells whether a sandbox of the provider has one of these rows, and names it as its row does.
fn is_among(rows: &[SandboxRow], info: &mut SandboxInfo) -> bool {
    let row = rows.iter().find(|row| row.id == info.id);
    row.inspect(|row| name(info, row)).is_some()
}

fn name(info: &mut SandboxInfo, row: &SandboxRow) {
    info.name = row.name.clone();
    info.pool = Some(row.pool.clone());
    info.spec.name = Some(row.name.clone());
    info.spec.workspace = row.spec.workspace.clone();
    info.spec.hostname = row.spec.hostname.clone();
    info.spec.labels = row.spec.labels.clone();
    if row.state == RowState::Making {
        info.status = SandboxStatus::Creating;
    }
}

impl PoolProvider {
    /// The pool.
    pub fn pool(&self) -> &SandboxPool {
        &self.pool
    }

    /// The id of a sandbox of the pool, by name or id. It is not woken.
    pub async fn id_of(&self, id_or_name: &str) -> Result<SandboxId> {
        Ok(self.pool.row_by_id_or_name(id_or_name).await?.id)
    }

    /// Makes a sandbox from a whole spec, as [`Sandbox::create`]; what it does is recorded.
    pub async fn make(&self, spec: SandboxSpec) -> Result<Sandbox> {
        let valid = spec.clone().validate()?;
        let spec = SandboxSpec { id: Some(valid.id().clone()), name: Some(valid.name().clone()), ..spec };
        create(self, spec, self.pool.inner.records.recorder_of(self.pool.name(), valid.name())).await
    }

    /// Makes a sandbox, or returns the one that has the name already, woken if it sleeps; `true` if
    /// it was made. A create of another process is waited for.
    pub async fn get_or_make(&self, spec: SandboxSpec) -> Result<(Sandbox, bool)> {
        let Some(name) = spec.name.clone() else { return Ok((self.make(spec).await?, true)) };
        for () in super::tries() {
            match self.make(spec.clone()).await {
                Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
                made => return Ok((made?, true)),
            }
            match self.pool.row(&name).await? {
                Some(row) if row.state != RowState::Live => self.pool.wait_for_owner(&row).await?,
                _ => match self.find_awake(name.as_str()).await {
                    Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::Destroyed) => {}
                    found => return Ok((refuse_another_id(found?, &spec)?, false)),
                },
            }
        }
        let message = format!("create sandbox: the name `{name}` appears and vanishes again and again");
        Err(Error::new(ErrorKind::Conflict, message))
    }

    /// Finds a sandbox that runs, by id or name, as [`Sandbox::open`]; what it does is recorded.
    pub async fn find(&self, id_or_name: &str) -> Result<Sandbox> {
        let created = self.open(id_or_name).await?;
        let recorder = self.pool.inner.records.recorder_of(self.pool.name(), &created.info.name);
        Ok(Sandbox::from_created(created, recorder))
    }

    /// Finds a sandbox and wakes it if it sleeps or is dead, again if another caller puts it to
    /// sleep meanwhile.
    pub async fn find_awake(&self, id_or_name: &str) -> Result<Sandbox> {
        let given_up = Instant::now() + PATIENCE;
        loop {
            match self.find_or_wake(id_or_name).await {
                Err(error) if error.is_sleeping() && Instant::now() < given_up => {}
                found => return found,
            }
        }
    }

    async fn find_or_wake(&self, id_or_name: &str) -> Result<Sandbox> {
        match self.find(id_or_name).await {
            Err(error) if error.is_sleeping() => {}
            found => return found,
        }
        let created = self.wake(id_or_name).await?;
        let recorder = self.pool.inner.records.recorder_of(self.pool.name(), &created.info.name);
        Ok(Sandbox::from_created(created, recorder))
    }
}
