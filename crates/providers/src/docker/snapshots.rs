//! Snapshots of sandboxes on a Docker Engine: each is an image that the sandbox's container was committed to, and the sandbox
//! goes on in a container above it.

use std::sync::Arc;

use async_trait::async_trait;
use bollard::models::{ContainerInspectResponse, MountPoint};
use eyot::internal::{different_images, of_another_image, run_detached};
use eyot::{
    BranchPoint, CompareOptions, Error, ErrorKind, FileChanges, ImageInfo, NewImage, NewSnapshot, Result,
    SandboxId, SandboxSnapshots, SnapshotId, SnapshotInfo, WorkspaceSpec,
};

use super::commit::{LowerImage, check_volumes, commit, commit_to_compare, look_at_image};
use super::compared::{self, ComparedContainer};
use super::condition::Condition;
use super::find::{self, Found};
use super::helper::{HelperContainer, HelperUse};
use super::host::Host;
use super::image;
use super::kept_snapshot::{
    self, SnapshotLock, SnapshotNote, all, collect, next_ms, not_found, refuse_in_use, there, usable,
};
use super::labels::{LowerSnapshot, Record};
use super::replace::{make_successor, replace};
use super::{successor, tagged};

/// The most layers below a sandbox that goes on above its snapshot: an Engine puts some 125 on one another. A sandbox with more
/// stays where it is, and its snapshots hold all that was changed since.
const DEEPEST: usize = 100;

/// The snapshots of a provider.
pub(crate) struct DockerSnapshots(pub Arc<Host>);

#[async_trait]
impl SandboxSnapshots for DockerSnapshots {
    async fn check_still(&self, sandbox: &SandboxId, what: &str) -> Result<()> {
        let found = find::find(&self.0, sandbox.as_str()).await?;
        match self.0.engine.inspected(&found.container).await? {
            Some(container) => check_volumes(&found.record, &container, what).map(drop),
            None => Ok(()),
        }
    }

    async fn take(&self, sandbox: &SandboxId, new: NewSnapshot) -> Result<SnapshotInfo> {
        let (host, sandbox) = (Arc::clone(&self.0), sandbox.clone());
        run_detached(async move { take(&host, &sandbox, new).await }).await
    }

    async fn roll_back(&self, sandbox: &SandboxId, snapshot: &SnapshotId) -> Result<()> {
        let (host, sandbox, snapshot) = (Arc::clone(&self.0), sandbox.clone(), snapshot.clone());
        run_detached(async move { roll_back(&host, &sandbox, &snapshot).await }).await
    }

    async fn list(&self) -> Result<Vec<SnapshotInfo>> {
        kept_snapshot::list(&self.0).await
    }

    /// The Engine tells the sizes when a snapshot is taken.
    async fn list_with_sizes(&self) -> Result<Vec<SnapshotInfo>> {
        self.list().await
    }

    async fn find(&self, snapshot: &SnapshotId) -> Result<Option<SnapshotInfo>> {
        kept_snapshot::find(&self.0, snapshot).await
    }

    async fn remove(&self, snapshot: &SnapshotId) -> Result<()> {
        let (host, snapshot) = (Arc::clone(&self.0), snapshot.clone());
        run_detached(async move { remove(&host, &snapshot).await }).await
    }

    async fn compare(
        &self,
        from: &BranchPoint,
        to: &BranchPoint,
        options: &CompareOptions,
    ) -> Result<FileChanges> {
        // A killed process may leave what it compares.
        self.0.state.open().await?.note_snapshots()?;
        let (from, to) = (side(&self.0, from).await?, side(&self.0, to).await?);
        if from.root_image != to.root_image {
            return Err(different_images());
        }
        let compared = compared::compare(&self.0, [&from.container, &to.container], options).await;
        for helper in [from.helper, to.helper] {
            helper.remove().await?;
        }
        compared
    }

    async fn check_commit(&self, point: &BranchPoint, image: &NewImage) -> Result<()> {
        let name = tagged::new_name(&image.reference)?;
        let checked = async {
            tagged::refuse_others_name(&self.0, &name).await?;
            match point {
                BranchPoint::Snapshot(id) => {
                    tagged::check_bytes(&self.0, &usable(&self.0, id).await?, image).await
                }
                BranchPoint::Sandbox(id) | BranchPoint::Base(id) => {
                    find::find(&self.0, id.as_str()).await.map(drop)
                }
            }
        };
        checked.await.map_err(|error| error.context(format!("commit `{}`", name.short())))
    }

    async fn commit(&self, snapshot: &SnapshotId, image: &NewImage) -> Result<ImageInfo> {
        tagged::tag(&self.0, snapshot, image).await
    }
}

async fn take(host: &Arc<Host>, sandbox: &SandboxId, new: NewSnapshot) -> Result<SnapshotInfo> {
    let lock = SnapshotLock::wait(host).await?;
    collect(host, &lock).await?;
    let (found, container) = still(host, sandbox, "take a snapshot").await?;
    let state = host.state.open().await?;
    let all = all(state);
    refuse_in_use(&all, &new, &there(host).await?)?;
    let has_volume = check_volumes(&found.record, &container, "take a snapshot")?;
    let lower = look_at_image(host, container.image.as_deref().unwrap_or_default()).await?;
    let kept = described(host, &found, &lower, &all, new, has_volume);
    kept.write(state)?;
    let snapshot = kept.info.id.clone();
    let taken = keep(host, &found, &container, &lower, kept, has_volume).await;
    if taken.is_err() {
        give_up(host, &found, &snapshot, &lock).await;
    }
    taken
}

/// Describes a snapshot that is to be taken.
fn described(
    host: &Host,
    found: &Found,
    lower: &LowerImage,
    all: &[SnapshotNote],
    new: NewSnapshot,
    has_volume: bool,
) -> SnapshotNote {
    let record = &found.record;
    let stays = lower.layers >= DEEPEST && !new.for_forks;
    let root_image = root_image(record, &lower.id);
    let image_name = record.spec.image.clone().unwrap_or_else(|| host.default_image.clone());
    let info = SnapshotInfo {
        id: new.id,
        name: new.name,
        pool: new.pool,
        sandbox: record.id.clone(),
        sandbox_name: new.sandbox_name,
        parent: last_taken(all, found)
            .map(|kept| kept.info.id.clone())
            .or_else(|| record.base.as_ref().map(|base| base.snapshot.clone())),
        labels: new.labels,
        created_ms: next_ms(all),
        own_bytes: None,
        shared_bytes: None,
        spec: Record::recorded(&new.spec),
    };
    SnapshotNote {
        info,
        image: None,
        root_image,
        image_name,
        workdir: (has_volume || record.has_own_workdir()).then(|| record.workdir()),
        stayed: stays.then(|| found.container.clone()),
        hidden: new.for_forks,
        for_forks: new.for_forks,
    }
}

fn root_image(record: &Record, image: &str) -> String {
    record.base.as_ref().map_or_else(|| image.to_owned(), |base| base.root_image.clone())
}

/// Returns the latest snapshot of a container that stayed where it is.
fn last_taken<'a>(all: &'a [SnapshotNote], found: &Found) -> Option<&'a SnapshotNote> {
    all.iter().rfind(|kept| kept.image.is_some() && kept.stayed.as_ref() == Some(&found.container))
}

/// Makes the image, notes it, and moves the sandbox above it.
async fn keep(
    host: &Arc<Host>,
    found: &Found,
    container: &ContainerInspectResponse,
    lower: &LowerImage,
    mut kept: SnapshotNote,
    has_volume: bool,
) -> Result<SnapshotInfo> {
    let workdir = kept.workdir.as_ref().filter(|_| has_volume);
    let image = commit(host, container, lower, &kept.info, workdir).await?;
    let below =
        if kept.root_image == lower.id { Some(lower.bytes) } else { bytes_of(host, &kept.root_image).await };
    kept.info.own_bytes = bytes_of(host, &image).await.map(|bytes| bytes.saturating_sub(lower.bytes));
    kept.info.shared_bytes = below.map(|below| lower.bytes.saturating_sub(below));
    let successor = if kept.stayed.is_some() {
        None
    } else {
        Some(make_successor(host, found, base_of(&kept, &found.record), &image).await?)
    };
    refuse_woken(host, container).await?;
    kept.image = Some(image);
    kept.write(host.state.open().await?)?;
    if let Some(successor) = successor {
        replace(host, found, &successor).await?;
    }
    Ok(kept.info)
}

async fn bytes_of(host: &Host, image: &str) -> Option<u64> {
    look_at_image(host, image).await.ok().map(|image| image.bytes)
}

fn base_of(kept: &SnapshotNote, record: &Record) -> LowerSnapshot {
    LowerSnapshot {
        snapshot: kept.info.id.clone(),
        root_image: kept.root_image.clone(),
        has_workdir: kept.gives_workdir_to(&record.spec),
        replaces: true,
        follows: None,
    }
}

/// Refuses a sandbox that somebody has woken while its files were kept.
async fn refuse_woken(host: &Host, container: &ContainerInspectResponse) -> Result<()> {
    let started = |container: &ContainerInspectResponse| {
        container.state.as_ref().and_then(|state| state.started_at.clone())
    };
    let id = container.id.as_deref().unwrap_or_default();
    let now = host.engine.inspected(id).await?;
    if now.is_some_and(|now| started(&now) == started(container)) {
        return Ok(());
    }
    let message = "take a snapshot: the sandbox was woken or destroyed meanwhile";
    Err(Error::new(ErrorKind::Conflict, message).with_hint("put it to sleep first"))
}

/// Removes what a failed snapshot has left. What can't be removed now goes with a later change.
async fn give_up(host: &Arc<Host>, found: &Found, snapshot: &SnapshotId, lock: &SnapshotLock) {
    let undone = async {
        let state = host.state.open().await?;
        if successor::is_whole(host, &found.container).await? {
            successor::remove(host, &found.record).await?;
        }
        if let Some(mut kept) = kept_snapshot::read(state, snapshot) {
            (kept.hidden, kept.for_forks) = (true, false);
            kept.write(state)?;
        }
        collect(host, lock).await
    };
    if let Err(error) = undone.await {
        tracing::warn!(%snapshot, %error, "a snapshot that failed could not be removed");
    }
}

/// Finds a sandbox that sleeps.
async fn still(host: &Host, sandbox: &SandboxId, what: &str) -> Result<(Found, ContainerInspectResponse)> {
    let found = find::find(host, sandbox.as_str()).await?;
    match &found.condition {
        Condition::Sleeping | Condition::Dead => {}
        Condition::Running(_) => {
            let message = format!("{what}: the sandbox does not sleep");
            return Err(Error::new(ErrorKind::Conflict, message).with_hint("put it to sleep first"));
        }
        other => return Err(other.refusal(found.record.name.as_str())),
    }
    let container = host.engine.inspected(&found.container).await?;
    let container = container.ok_or_else(|| Error::destroyed(&found.record.name))?;
    Ok((found, container))
}

async fn roll_back(host: &Arc<Host>, sandbox: &SandboxId, snapshot: &SnapshotId) -> Result<()> {
    let lock = SnapshotLock::wait(host).await?;
    // What a destroy that failed has noted would be the end of the container that is made here.
    successor::settle(host).await?;
    let (found, container) = still(host, sandbox, "roll back").await?;
    let kept = usable(host, snapshot).await?;
    if kept.root_image != root_image(&found.record, container.image.as_deref().unwrap_or_default()) {
        return Err(of_another_image(snapshot));
    }
    let image = kept.image.as_deref().unwrap_or_default();
    let successor = make_successor(host, &found, base_of(&kept, &found.record), image).await?;
    replace(host, &found, &successor).await?;
    collect(host, &lock).await
}

async fn remove(host: &Arc<Host>, snapshot: &SnapshotId) -> Result<()> {
    let lock = SnapshotLock::wait(host).await?;
    collect(host, &lock).await?;
    let state = host.state.open().await?;
    let kept = kept_snapshot::read(state, snapshot).filter(|kept| !kept.hidden && kept.image.is_some());
    let mut kept = kept.ok_or_else(|| not_found(snapshot))?;
    kept.hidden = true;
    kept.write(state)?;
    collect(host, &lock).await
}

/// One side of a comparison.
struct OpenedSide {
    container: ComparedContainer,
    root_image: String,
    helper: HelperContainer,
}

impl OpenedSide {
    async fn of_image(host: &Arc<Host>, image: &str, root_image: String) -> Result<Self> {
        let helper = HelperContainer::make(host, HelperUse::Read, image, None).await?;
        let container = ComparedContainer { id: helper.id().to_owned(), mounted: Vec::new() };
        Ok(Self { container, root_image, helper })
    }
}

async fn side(host: &Arc<Host>, point: &BranchPoint) -> Result<OpenedSide> {
    let (id, is_present) = match point {
        BranchPoint::Sandbox(id) => (id, true),
        BranchPoint::Base(id) => (id, false),
        BranchPoint::Snapshot(id) => {
            let kept = usable(host, id).await?;
            return OpenedSide::of_image(host, &kept.image.unwrap_or_default(), kept.root_image).await;
        }
    };
    let found = find::find(host, id.as_str()).await?;
    let container = host.engine.inspected(&found.container).await?;
    let container = container.ok_or_else(|| Error::destroyed(&found.record.name))?;
    let image = container.image.clone().unwrap_or_default();
    let root_image = root_image(&found.record, &image);
    if is_present {
        return present(host, &found.record, &container, root_image).await;
    }
    let last = last_taken(&all(host.state.open().await?), &found).and_then(|kept| kept.image.clone());
    OpenedSide::of_image(host, &last.unwrap_or(image), root_image).await
}

/// Opens the present files of a sandbox: a copy of those of its container, and the volume of its working directory.
async fn present(
    host: &Arc<Host>,
    record: &Record,
    container: &ContainerInspectResponse,
    root_image: String,
) -> Result<OpenedSide> {
    let workdir = record.workdir().to_string();
    let is_it = |mount: &&MountPoint| {
        mount.typ.as_deref() == Some("volume") && mount.destination.as_deref() == Some(workdir.as_str())
    };
    let is_own = record.spec.workspace == WorkspaceSpec::Ephemeral;
    let volume = container.mounts.iter().flatten().find(is_it).filter(|_| is_own);
    let volume = volume.and_then(|mount| mount.name.clone()).map(|name| (name, workdir.clone()));
    if volume.is_some() && workdir == "/etc" {
        let message = "compare files: the working directory has the files that the Engine itself reads";
        return Err(Error::new(ErrorKind::Unsupported, message));
    }
    let image = commit_to_compare(host, container).await?;
    let helper = match HelperContainer::make(host, HelperUse::Read, &image, volume).await {
        Ok(helper) => helper.with_image(image),
        Err(error) => {
            image::remove(&host.engine, &image).await?;
            return Err(error);
        }
    };
    let container = ComparedContainer { mounted: mounted(record), id: helper.id().to_owned() };
    Ok(OpenedSide { container, root_image, helper })
}

/// Lists the paths at which something is mounted that is no part of a snapshot.
fn mounted(record: &Record) -> Vec<String> {
    let memory = record.spec.container.tmpfs_mib.keys().map(ToString::to_string);
    let workspace = matches!(record.spec.workspace, WorkspaceSpec::Persistent { .. });
    memory.chain(workspace.then(|| record.workdir().to_string())).collect()
}
