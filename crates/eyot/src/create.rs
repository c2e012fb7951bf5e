//! Making a handle: create with its manifest, open, or whichever of the two applies. A create that
//! fails after the backend made something destroys it again.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use tokio::time::Instant;

use crate::capabilities::Capability;
use crate::created::SandboxStatus;
use crate::error::{Error, ErrorKind, Result};
use crate::files::{CreateDirOptions, WriteOptions};
use crate::observer::Observer;
use crate::path::{ConfinedPath, WorkspacePath};
use crate::provider::SandboxProvider;
use crate::sandbox::{Content, Sandbox};
use crate::spec::{IdleAction, Manifest, SandboxSpec, ValidSpec};

/// The time that a get-or-create waits for another create of the same name, and the time between
/// two checks.
const CREATE_PATIENCE: Duration = Duration::from_secs(10);
const CREATE_LOOK: Duration = Duration::from_millis(5);

impl Sandbox {
    /// Makes a sandbox from a spec, with its manifest applied. `invalid` before anything exists if
    /// the spec is wrong; `already_exists` if the id or the name is taken, whose holder is not
    /// harmed; any failure leaves nothing behind.
    pub async fn create(provider: &dyn SandboxProvider, spec: SandboxSpec) -> Result<Self> {
        Self::create_with(provider, spec, None).await
    }

    /// Creates a sandbox with an observer. It hears first of the manifest's writes, then of the
    /// creation. An error of the observer undoes the create.
    pub async fn create_observed(
        provider: &dyn SandboxProvider,
        spec: SandboxSpec,
        observer: Arc<dyn Observer>,
    ) -> Result<Self> {
        Self::create_with(provider, spec, Some(observer)).await
    }

    /// Finds a running sandbox by id or name: `not_found`, or `destroyed` if it is known to have been; `unavailable` if
    /// it sleeps ([`Error::is_sleeping`]).
    pub async fn open(provider: &dyn SandboxProvider, id_or_name: &str) -> Result<Self> {
        Ok(Self::new(provider.open(id_or_name).await?, None, 0))
    }

    /// Opens a sandbox with an observer; opening itself is not an event.
    pub async fn open_observed(
        provider: &dyn SandboxProvider,
        id_or_name: &str,
        observer: Arc<dyn Observer>,
    ) -> Result<Self> {
        Ok(Self::new(provider.open(id_or_name).await?, Some(observer), 0))
    }

    /// Wakes a sandbox that sleeps, by id or name; one that runs is opened. See [`SandboxProvider::wake`].
    pub async fn wake(provider: &dyn SandboxProvider, id_or_name: &str) -> Result<Self> {
        Ok(Self::new(provider.wake(id_or_name).await?, None, 0))
    }

    /// Wakes a sandbox with an observer; waking itself is not an event.
    pub async fn wake_observed(
        provider: &dyn SandboxProvider,
        id_or_name: &str,
        observer: Arc<dyn Observer>,
    ) -> Result<Self> {
        Ok(Self::new(provider.wake(id_or_name).await?, Some(observer), 0))
    }

    /// The sandbox of the spec's name (or id, if it has no name), and whether it was made now. A sandbox that exists is
    /// returned as it is, woken if it sleeps: the rest of the spec is for a new one. A spec with neither always makes a new one. With both, a
    /// name that belongs to another id is `already_exists`.
    pub async fn get_or_create(provider: &dyn SandboxProvider, spec: SandboxSpec) -> Result<(Self, bool)> {
        spec.clone().validate()?;
        let name = spec.name.as_ref().map(ToString::to_string);
        let Some(key) = name.or_else(|| spec.id.as_ref().map(ToString::to_string)) else {
            return Ok((Self::create(provider, spec).await?, true));
        };
        let given_up = Instant::now() + CREATE_PATIENCE;
        while Instant::now() < given_up {
            if let Some(found) = find_when_made(provider, &key, &spec).await? {
                return Ok((found, false));
            }
            match Self::create(provider, spec.clone()).await {
                // Somebody else was faster; an engine knows a name as taken before it shows what has it.
                Err(error) if error.kind() == ErrorKind::AlreadyExists => {
                    if has_foreign_id(provider, &spec).await {
                        return Err(error);
                    }
                    tokio::time::sleep(CREATE_LOOK).await
                }
                created => return Ok((created?, true)),
            }
        }
        let message = format!("get or create sandbox `{key}`: it keeps appearing and vanishing");
        Err(Error::new(ErrorKind::Conflict, message))
    }

    /// Does the same with an optional observer.
    async fn create_with(
        provider: &dyn SandboxProvider,
        spec: SandboxSpec,
        observer: Option<Arc<dyn Observer>>,
    ) -> Result<Self> {
        let spec = spec.validate()?;
        refuse_idle_sleep(provider, &spec)?;
        refuse_snapshot(provider, &spec)?;
        refuse_cow(provider, &spec)?;
        let created = provider.create(&spec).await?;
        let unfinished = PendingCreate { sandbox: Self::new(created, observer, usize::MAX), armed: true };
        // The caller's manifest: a provider need not keep the contents of files in what it knows of a sandbox.
        match unfinished.sandbox.apply_manifest(&spec.spec().manifest).await {
            Ok(()) => Ok(unfinished.finish()),
            Err(error) => {
                unfinished.undo().await;
                Err(error)
            }
        }
    }

    /// Applies the manifest, directories first, and says that the sandbox is there.
    async fn apply_manifest(&self, manifest: &Manifest) -> Result<()> {
        for path in &manifest.directories {
            let place = self.manifest_path(&WorkspacePath::parse_directory(path)?)?;
            let made = self.driver().create_dir(&place, CreateDirOptions { recursive: true }).await;
            made.map_err(self.failed("create directory", path))?;
        }
        for (path, content) in &manifest.files {
            self.write_manifest_file(&WorkspacePath::parse(path)?, content.clone()).await?;
        }
        match self.observer() {
            Some(observer) => observer.sandbox_created(self.event()).await,
            None => Ok(()),
        }
    }

    async fn write_manifest_file(&self, path: &WorkspacePath, content: Bytes) -> Result<()> {
        let place = self.manifest_path(path)?;
        self.write_at(&place, path.as_str(), Content::Bytes(content), WriteOptions::default()).await?;
        Ok(())
    }

    /// A manifest's path, held beneath the working directory where the driver can: a shared, persistent workspace may
    /// have links in it.
    fn manifest_path(&self, path: &WorkspacePath) -> Result<ConfinedPath> {
        let place = path.place(self.cwd())?;
        if self.capabilities().has(Capability::Beneath) { Ok(place) } else { Ok(place.path.into()) }
    }
}

/// Refuses to make a sandbox that is to sleep when it is idle, where nothing sleeps.
fn refuse_snapshot(provider: &dyn SandboxProvider, spec: &ValidSpec) -> Result<()> {
    match spec.spec().snapshot {
        None => Ok(()),
        Some(_) => {
            provider.capabilities().require(Capability::Snapshots, provider.name(), "create", &["snapshot"])
        }
    }
}

/// Refuses a copy of a folder where sandboxes have none.
fn refuse_cow(provider: &dyn SandboxProvider, spec: &ValidSpec) -> Result<()> {
    if spec.spec().mounts.iter().any(|mount| mount.cow) {
        provider.capabilities().require(Capability::CowMounts, provider.name(), "create", &["mounts.cow"])
    } else {
        Ok(())
    }
}

fn refuse_idle_sleep(provider: &dyn SandboxProvider, spec: &ValidSpec) -> Result<()> {
    match spec.spec().lifecycle.on_idle {
        IdleAction::Destroy => Ok(()),
        IdleAction::Sleep => {
            let (capabilities, options) = (provider.capabilities(), ["lifecycle.on_idle: sleep"]);
            capabilities.require(Capability::Sleep, provider.name(), "create", &options)
        }
    }
}

/// Does the same as [`find`], once that sandbox is no longer being made.
async fn find_when_made(
    provider: &dyn SandboxProvider,
    key: &str,
    spec: &SandboxSpec,
) -> Result<Option<Sandbox>> {
    let given_up = Instant::now() + CREATE_PATIENCE;
    loop {
        match find(provider, key, spec).await {
            Err(error) if error.kind() == ErrorKind::Unavailable && Instant::now() < given_up => {
                if is_dead(provider, key).await? {
                    return Err(error);
                }
                tokio::time::sleep(CREATE_LOOK).await;
            }
            found => return found,
        }
    }
}

/// Returns whether the spec's id is of a sandbox by another name, or of one that is gone: neither
/// ever gets the spec's name.
async fn has_foreign_id(provider: &dyn SandboxProvider, spec: &SandboxSpec) -> bool {
    let (Some(id), Some(name)) = (&spec.id, &spec.name) else { return false };
    match provider.info(id.as_str()).await {
        Ok(info) => info.name != *name,
        Err(error) => error.kind() == ErrorKind::Destroyed,
    }
}

/// Returns whether a sandbox that does not answer never will.
async fn is_dead(provider: &dyn SandboxProvider, key: &str) -> Result<bool> {
    match provider.info(key).await {
        Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::Destroyed) => Ok(false),
        info => Ok(info?.status == SandboxStatus::Dead),
    }
}

/// Opens `key`, or says that it is free. A name is used again after a destroy; an id never is.
async fn find(provider: &dyn SandboxProvider, key: &str, spec: &SandboxSpec) -> Result<Option<Sandbox>> {
    let found = match Sandbox::open(provider, key).await {
        Err(error) if error.is_sleeping() => Sandbox::wake(provider, key).await?,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        Err(error) if error.kind() == ErrorKind::Destroyed && spec.name.is_some() => return Ok(None),
        found => found?,
    };
    refuse_another_id(found, spec).map(Some)
}

/// Refuses a sandbox with another id than the one that the spec names.
pub fn refuse_another_id(found: Sandbox, spec: &SandboxSpec) -> Result<Sandbox> {
    match spec.id.as_ref().filter(|id| *id != found.id()) {
        Some(_) => {
            let message = format!("create sandbox: the name `{}` is in use by another id", found.name());
            Err(Error::new(ErrorKind::AlreadyExists, message))
        }
        None => Ok(found),
    }
}

/// A sandbox that no caller has received yet. Dropping it armed (the caller stopped waiting)
/// destroys the sandbox.
struct PendingCreate {
    sandbox: Sandbox,
    armed: bool,
}

impl PendingCreate {
    fn finish(mut self) -> Sandbox {
        self.armed = false;
        self.sandbox.clone()
    }

    async fn undo(mut self) {
        undo(&self.sandbox).await;
        self.armed = false;
    }
}

impl Drop for PendingCreate {
    fn drop(&mut self) {
        if !self.armed {
            return;
        }
        let sandbox = self.sandbox.clone();
        match tokio::runtime::Handle::try_current() {
            Ok(runtime) => drop(runtime.spawn(async move { undo(&sandbox).await })),
            Err(_) => {
                tracing::warn!(sandbox = %sandbox.id(), "a sandbox was abandoned while it was being made")
            }
        }
    }
}

/// Destroys the sandbox without telling the observer, which was never told of its creation.
async fn undo(sandbox: &Sandbox) {
    if let Err(error) = sandbox.abandon().await {
        tracing::warn!(sandbox = %sandbox.id(), %error, "a sandbox whose create failed could not be destroyed");
    }
}
