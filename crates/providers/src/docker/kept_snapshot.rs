//! The snapshots of a state folder. Each is an image of the Engine, and a note in the state folder that says which: only those
//! with a note are there. The note has the spec with its variables, which would be open to all in the labels of an image.
//!
//! A note is written before the Engine is asked for the image, and names the image afterwards. So the next change of the
//! snapshots finds what a killed process has left.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

use bollard::models::ImageSummary;
use bollard::query_parameters::ListContainersOptionsBuilder;
use eyot::internal::now_ms;
use eyot::{
    Error, ErrorKind, NewSnapshot, Result, SandboxPath, SandboxSpec, SnapshotId, SnapshotInfo, WorkspaceSpec,
};
use eyot_image::FileLock;
use serde::{Deserialize, Serialize};
use tokio::sync::OwnedSemaphorePermit;

use super::engine::is_absent;
use super::host::Host;
use super::labels::{SNAPSHOT, STATE};
use super::state::{Notes, OpenState, lock};
use super::{helper, image, successor};

/// The longest wait for the Engine to write an image. It copies every file that was changed.
pub(crate) const COMMIT_PATIENCE: Duration = Duration::from_secs(1800);
/// The name of all images of snapshots. Each has its id as the tag.
pub(crate) const REPOSITORY: &str = "eyot-snapshot";

/// A snapshot.
#[derive(Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct SnapshotNote {
    pub info: SnapshotInfo,
    /// The Engine's id of its image. `None`: it is being taken.
    pub image: Option<String>,
    /// The Engine's id of the image below all snapshots.
    pub root_image: String,
    /// The name of that image.
    pub image_name: String,
    /// The working directory, if the image has the files of it.
    pub workdir: Option<SandboxPath>,
    /// The container that it was taken of, if the sandbox did not move above it.
    pub stayed: Option<String>,
    /// It is not listed, and goes once nothing lies above it.
    pub hidden: bool,
    /// Sandboxes are made from it though it is hidden.
    pub for_forks: bool,
}

/// The right to change snapshots, which one process at a time has.
pub(crate) struct SnapshotLock {
    _file: FileLock,
    _turn: OwnedSemaphorePermit,
}

impl SnapshotLock {
    /// Waits for it.
    pub(crate) async fn wait(host: &Host) -> Result<Self> {
        let failed = || Error::new(ErrorKind::Internal, "lock the snapshots");
        let turn = Arc::clone(&host.snapshot_turn).acquire_owned().await;
        let turn = turn.map_err(|error| failed().with_source(error))?;
        let place = host.state.open().await?.snapshots_lock();
        let locked = tokio::task::spawn_blocking(move || lock(&place, true)).await;
        let file = locked.map_err(|error| failed().with_source(error))??;
        file.map(|file| Self { _file: file, _turn: turn }).ok_or_else(failed)
    }

    /// Takes it unless somebody has it.
    async fn now(host: &Host) -> Result<Option<Self>> {
        let Ok(turn) = Arc::clone(&host.snapshot_turn).try_acquire_owned() else { return Ok(None) };
        let file = lock(&host.state.open().await?.snapshots_lock(), false)?;
        Ok(file.map(|file| Self { _file: file, _turn: turn }))
    }
}

impl SnapshotNote {
    /// Writes the note.
    pub(crate) fn write(&self, state: &OpenState) -> Result<()> {
        let text = serde_json::to_string(self)
            .map_err(|error| Error::new(ErrorKind::Internal, "write a snapshot's note").with_source(error))?;
        state.note(Notes::Snapshots, self.info.id.as_str(), &text)
    }

    /// Tells whether a container of this spec has the files of the working directory among its own.
    pub(crate) fn gives_workdir_to(&self, spec: &SandboxSpec) -> bool {
        let is_the_same = self.workdir.is_some() && self.workdir == spec.workdir;
        is_the_same && spec.workspace == WorkspaceSpec::Ephemeral && !spec.security.readonly_rootfs
    }

    /// Returns the name that its image has on the Engine.
    fn name_of_image(&self) -> String {
        format!("{REPOSITORY}:{}", self.info.id)
    }

    /// Finds the images with its label: those with another name, and those that go with it. Of these there may be two: the one
    /// that was committed first lies below. What somebody has built upon it later has its labels, too.
    fn images_among<'a>(&self, images: &'a [ImageSummary]) -> (Vec<&'a ImageSummary>, Vec<&'a ImageSummary>) {
        let is_its = |image: &&ImageSummary| {
            image.labels.get(SNAPSHOT).map(String::as_str) == Some(self.info.id.as_str())
        };
        let own_name = self.name_of_image();
        let is_named_otherwise = |image: &ImageSummary| {
            image.repo_tags.iter().any(|tag| *tag != own_name && tag != "<none>:<none>")
        };
        let (named, mut own): (Vec<_>, Vec<_>) =
            images.iter().filter(is_its).partition(|image| is_named_otherwise(image));
        let made =
            images.iter().find(|image| Some(&image.id) == self.image.as_ref()).map(|image| image.created);
        own.retain(|image| made.is_none_or(|made| image.created <= made));
        (named, own)
    }

    fn has_image(&self, there: &HashSet<String>) -> bool {
        self.image.as_ref().is_some_and(|image| there.contains(image))
    }

    fn is_usable(&self) -> bool {
        self.image.is_some() && (!self.hidden || self.for_forks)
    }
}

/// Reads the note of a snapshot.
pub(crate) fn read(state: &OpenState, id: &SnapshotId) -> Option<SnapshotNote> {
    let text = state.noted(Notes::Snapshots, id.as_str())?;
    let kept = serde_json::from_str(&text);
    kept.inspect_err(|error| tracing::warn!(%id, %error, "a snapshot's note can't be read")).ok()
}

/// Reads all notes, the oldest first.
pub(crate) fn all(state: &OpenState) -> Vec<SnapshotNote> {
    let ids = state.names(Notes::Snapshots).into_iter().filter_map(|name| SnapshotId::parse(&name).ok());
    let mut all: Vec<SnapshotNote> = ids.filter_map(|id| read(state, &id)).collect();
    all.sort_by(|one, other| {
        (one.info.created_ms, &one.info.id).cmp(&(other.info.created_ms, &other.info.id))
    });
    all
}

/// Returns the snapshot of this id, if a sandbox can be made from it.
pub(crate) async fn usable(host: &Host, id: &SnapshotId) -> Result<SnapshotNote> {
    let kept = read(host.state.open().await?, id).filter(SnapshotNote::is_usable);
    kept.ok_or_else(|| not_found(id))
}

/// Makes the error for a snapshot that is not there.
pub(crate) fn not_found(id: &SnapshotId) -> Error {
    Error::new(ErrorKind::NotFound, format!("there is no snapshot `{id}`"))
}

/// Refuses the id or the name of another snapshot. `all` are those that are noted. One whose image was removed from the Engine
/// is listed nowhere, so its name is free.
pub(crate) fn refuse_in_use(all: &[SnapshotNote], new: &NewSnapshot, there: &HashSet<String>) -> Result<()> {
    let in_use = |what: String, hint: &str| {
        let message = format!("take a snapshot: the {what} is in use");
        Err(Error::new(ErrorKind::AlreadyExists, message).with_hint(hint))
    };
    if all.iter().any(|kept| kept.info.id == new.id) {
        return in_use(format!("id `{}`", new.id), "leave the id out");
    }
    // One without an image was begun by a process that is gone.
    let listed = |kept: &&SnapshotNote| !kept.hidden && kept.has_image(there) && kept.info.pool == new.pool;
    match &new.name {
        Some(name) if all.iter().filter(listed).any(|kept| kept.info.name.as_ref() == Some(name)) => {
            in_use(format!("name `{name}`"), "take another name, or remove that snapshot")
        }
        _ => Ok(()),
    }
}

/// Returns the time of a snapshot that is taken now. Each is later than all before it.
pub(crate) fn next_ms(all: &[SnapshotNote]) -> i64 {
    let last = all.iter().map(|kept| kept.info.created_ms).max();
    last.map_or(i64::MIN, |last| last.saturating_add(1)).max(now_ms())
}

/// Lists the snapshots whose images are there, the oldest first.
pub(crate) async fn list(host: &Host) -> Result<Vec<SnapshotInfo>> {
    let listed: Vec<SnapshotNote> =
        all(host.state.open().await?).into_iter().filter(|kept| !kept.hidden).collect();
    if listed.is_empty() {
        return Ok(Vec::new());
    }
    let there = there(host).await?;
    Ok(listed.into_iter().filter(|kept| kept.has_image(&there)).map(|kept| kept.info).collect())
}

/// Returns the Engine's ids of the images of snapshots that are there.
pub(crate) async fn there(host: &Host) -> Result<HashSet<String>> {
    let images = image::labelled(&host.engine, &[SNAPSHOT]).await?;
    Ok(images.into_iter().map(|image| image.id).collect())
}

/// Finds a snapshot that a sandbox can be made from. One for forks counts as long as a container lies above it.
pub(crate) async fn find(host: &Host, id: &SnapshotId) -> Result<Option<SnapshotInfo>> {
    let Some(kept) = read(host.state.open().await?, id).filter(SnapshotNote::is_usable) else {
        return Ok(None);
    };
    let image = kept.image.clone().unwrap_or_default();
    let is_there =
        if kept.hidden { has_containers(host, &image).await? } else { has_image(host, &image).await? };
    Ok(is_there.then_some(kept.info))
}

async fn has_image(host: &Host, image: &str) -> Result<bool> {
    match host.engine.client().await?.inspect_image(image).await {
        Err(error) if is_absent(&error) => Ok(false),
        found => found.map(|_| true).map_err(|error| host.engine.failed("look at a snapshot", error)),
    }
}

async fn has_containers(host: &Host, image: &str) -> Result<bool> {
    let filters: HashMap<&str, Vec<&str>> = HashMap::from([("ancestor", vec![image])]);
    let options = ListContainersOptionsBuilder::default().all(true).filters(&filters).build();
    match host.engine.client().await?.list_containers(Some(options)).await {
        Err(error) if is_absent(&error) => Ok(false),
        listed => listed
            .map(|containers| !containers.is_empty())
            .map_err(|error| host.engine.failed("look at a snapshot", error)),
    }
}

/// Removes the snapshots that are hidden and that nothing lies above, and what processes have left that were killed while they
/// took one. The latest are tried first, as others may lie below them.
pub(crate) async fn collect(host: &Host, _: &SnapshotLock) -> Result<()> {
    // What can't be removed now keeps nobody from a snapshot.
    if let Err(error) = helper::remove_left_over(host).await {
        tracing::warn!(%error, "containers that gave access to files stay");
    }
    successor::settle(host).await?;
    let state = host.state.open().await?;
    let of_state = format!("{STATE}={}", state.seal().state_id());
    let mut unneeded: Vec<SnapshotNote> = all(state);
    unneeded.retain(|kept| kept.hidden || kept.image.is_none());
    if unneeded.is_empty() {
        return Ok(());
    }
    let images = image::labelled(&host.engine, &[SNAPSHOT, &of_state]).await?;
    for kept in unneeded.iter().rev() {
        let own_name = kept.name_of_image();
        let (named, mut left) = kept.images_among(&images);
        // An image that somebody made of it loses the snapshot's name alone. The note stays until it is gone, too: then it may be
        // an image without any name.
        if named.iter().any(|image| image.repo_tags.contains(&own_name)) {
            removed(host, &own_name).await;
        }
        // Twice: of two that were made in one second the lower one may come first.
        for _ in 0..2 {
            let mut still = Vec::new();
            for image in left {
                if !removed(host, &image.id).await {
                    still.push(image);
                }
            }
            left = still;
        }
        let mut is_gone = left.is_empty() && named.is_empty();
        // The Engine may be writing the image for a process that was killed.
        let age_ms = now_ms().saturating_sub(kept.info.created_ms);
        let may_come = kept.image.is_none() && age_ms < COMMIT_PATIENCE.as_millis() as i64;
        is_gone &= !may_come;
        if is_gone {
            state.forget(Notes::Snapshots, kept.info.id.as_str());
        }
    }
    Ok(())
}

/// Removes an image unless something lies above it. Returns whether it is gone.
async fn removed(host: &Host, image: &str) -> bool {
    let removed = image::remove(&host.engine, image).await;
    removed
        .inspect_err(|error| tracing::warn!(%error, image, "an image of a snapshot stays"))
        .unwrap_or(false)
}

/// Collects as [`collect`] does, unless somebody changes snapshots just now: the next change of them does it then.
pub(crate) async fn collect_if_free(host: &Host) {
    let collected = async {
        if !host.state.open().await?.had_snapshots() {
            return Ok(());
        }
        match SnapshotLock::now(host).await? {
            Some(lock) => collect(host, &lock).await,
            None => Ok(()),
        }
    };
    if let Err(error) = collected.await {
        tracing::warn!(%error, "remove the snapshots that nobody needs; a later removal tries again");
    }
}
