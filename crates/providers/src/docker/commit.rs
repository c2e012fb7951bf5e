//! The image of a container's files, as the Engine's `commit` makes it.

use std::collections::HashMap;
use std::future::ready;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use bollard::body_try_stream;
use bollard::models::{ContainerConfig, ContainerInspectResponse, ImageConfig};
use bollard::query_parameters::{
    CommitContainerOptionsBuilder, DownloadFromContainerOptionsBuilder, UploadToContainerOptionsBuilder,
};
use eyot::{Error, ErrorKind, Result, SandboxPath, SnapshotInfo, WorkspaceSpec};
use eyot_guest::protocol::container::GUEST_DIR;
use futures_util::TryStreamExt;

use super::accounts;
use super::archive::names_below;
use super::engine::{is_absent, is_too_deep};
use super::helper::{HelperContainer, HelperUse};
use super::host::Host;
use super::kept_snapshot::{COMMIT_PATIENCE, REPOSITORY};
use super::labels::{COMPARED, PREFIX, Record, SNAPSHOT, STATE};

/// The most bytes that a sandbox may have written for the Engine to commit them: 32 GiB. A commit writes all of it, holes of files
/// included, so a sandbox could fill the Engine's disk by a file that takes no room itself.
const MAX_COMMITTED_BYTES: u64 = 32 << 30;

/// The first version of the API whose images do not describe the container that they were committed from.
const FIRST_WITHOUT_CONTAINER: (usize, usize) = (1, 45);

/// An image that containers are committed above.
pub(crate) struct LowerImage {
    /// The Engine's id.
    pub id: String,
    /// The bytes of its layers.
    pub bytes: u64,
    /// The number of its layers.
    pub layers: usize,
    /// The time at which it was made (RFC 3339).
    pub created: Option<String>,
    config: ImageConfig,
}

/// Looks at an image.
pub(crate) async fn look_at_image(host: &Host, id: &str) -> Result<LowerImage> {
    let found = host.engine.client().await?.inspect_image(id).await;
    let found = found.map_err(|error| {
        if is_absent(&error) {
            let message = format!("the Engine does not have the sandbox's image {id} any more");
            return Error::new(ErrorKind::Conflict, message);
        }
        host.engine.failed("look at the sandbox's image", error)
    })?;
    Ok(LowerImage {
        id: found.id.unwrap_or_else(|| id.to_owned()),
        bytes: found.size.and_then(|size| u64::try_from(size).ok()).unwrap_or(0),
        layers: found.root_fs.and_then(|files| files.layers).map_or(0, |layers| layers.len()),
        created: found.created.map(|time| time.to_string()),
        config: found.config.unwrap_or_default(),
    })
}

/// Refuses a container with files of its own in volumes, which no image has, but for the volume of its working directory.
/// Returns whether it has that one.
pub(crate) fn check_volumes(
    record: &Record,
    container: &ContainerInspectResponse,
    what: &str,
) -> Result<bool> {
    let mut has_workdir_volume = false;
    let workdir = record.workdir();
    for mount in container.mounts.iter().flatten() {
        let target = mount.destination.as_deref().unwrap_or_default();
        match target {
            GUEST_DIR => {}
            _ if mount.typ.as_deref() != Some("volume") => {}
            _ if target == workdir.as_str() => {
                has_workdir_volume = record.spec.workspace == WorkspaceSpec::Ephemeral;
            }
            _ => return Err(in_volume(target, what)),
        }
    }
    Ok(has_workdir_volume)
}

fn in_volume(target: &str, what: &str) -> Error {
    let message = format!("{what}: the sandbox keeps its files below `{target}` in a volume");
    let hint = "make it without --read-only, and from an image that declares no volumes";
    Error::new(ErrorKind::Unsupported, message).with_hint(hint)
}

/// Refuses a container that has written too much to be committed.
async fn check_written(host: &Host, container: &str) -> Result<()> {
    let found = host.engine.inspected_with_size(container).await?;
    let written = found.and_then(|found| found.size_rw).and_then(|bytes| u64::try_from(bytes).ok());
    check_bytes(written.unwrap_or(0))
}

fn check_bytes(bytes: u64) -> Result<()> {
    if bytes <= MAX_COMMITTED_BYTES {
        return Ok(());
    }
    let message = format!("take a snapshot: the sandbox has written more than {MAX_COMMITTED_BYTES} bytes");
    let hint = "remove what is not needed; a file with holes counts with all of its size";
    Err(Error::new(ErrorKind::TooLarge, message).with_hint(hint))
}

/// Makes the image of a snapshot. With `workdir` the files of the volume there are put into it.
pub(crate) async fn commit(
    host: &Arc<Host>,
    container: &ContainerInspectResponse,
    lower: &LowerImage,
    info: &SnapshotInfo,
    workdir: Option<&SandboxPath>,
) -> Result<String> {
    let id = container.id.as_deref().unwrap_or_default();
    check_written(host, id).await?;
    let inherited = container.config.as_ref().and_then(|config| config.labels.as_ref());
    let config = config(lower, labels(host, info, inherited).await?);
    if workdir.is_none() && !describes_container(host).await? {
        return commit_one(host, id, Some(info), config).await;
    }
    let below = commit_one(host, id, None, config.clone()).await?;
    let helper = HelperContainer::make(host, HelperUse::Written, &below, None).await?;
    let made = async {
        if let Some(workdir) = workdir {
            accounts::make_harmless(&host.engine, id).await?;
            copy_files(host, (id, helper.id()), workdir).await?;
        }
        commit_one(host, helper.id(), Some(info), config).await
    };
    let made = made.await;
    if let Err(error) = helper.remove().await {
        tracing::warn!(%error, "a helper container stays until snapshots are changed next");
    }
    made
}

/// Makes an image of the present files of a container, which may run, to compare them. No archive is asked of the container
/// itself: an Engine that writes one opens files that the sandbox can change, and holds the container's lock.
pub(crate) async fn commit_to_compare(host: &Host, container: &ContainerInspectResponse) -> Result<String> {
    let inherited = container.config.as_ref().and_then(|config| config.labels.as_ref());
    let mut labels: HashMap<String, String> = emptied(inherited);
    labels.insert(COMPARED.to_owned(), host.state.open().await?.seal().state_id().to_owned());
    let config = ContainerConfig { labels: Some(labels), ..ContainerConfig::default() };
    check_written(host, container.id.as_deref().unwrap_or_default()).await?;
    commit_one(host, container.id.as_deref().unwrap_or_default(), None, config).await
}

/// Tells whether the Engine describes the committed container in the image, with its labels, and so with the variables of the
/// sandbox. Then the container that is committed last is a helper, which has none.
async fn describes_container(host: &Host) -> Result<bool> {
    let version = host.engine.client().await?.client_version();
    Ok((version.major_version, version.minor_version) < FIRST_WITHOUT_CONTAINER)
}

async fn commit_one(
    host: &Host,
    container: &str,
    named: Option<&SnapshotInfo>,
    config: ContainerConfig,
) -> Result<String> {
    let mut options = CommitContainerOptionsBuilder::default().container(container).pause(false);
    if let Some(info) = named {
        options = options.repo(REPOSITORY).tag(info.id.as_str());
    }
    let docker = host.engine.client().await?.clone().with_timeout(COMMIT_PATIENCE);
    let made = docker.commit_container(options.build(), config).await;
    made.map(|made| made.id).map_err(|error| {
        if is_too_deep(&error) {
            let message = "take a snapshot: the Engine puts no more layers on one another";
            return Error::new(ErrorKind::Quota, message)
                .with_hint("roll it back to an earlier one, or make a new sandbox of its files");
        }
        host.engine.failed("take a snapshot: commit the container", error)
    })
}

/// Returns the configuration of the image: that of the image below, which the container's would otherwise replace. For an
/// entrypoint that is not given the Engine takes the container's, which is the guest; for a command as well, if there is neither.
fn config(lower: &LowerImage, labels: HashMap<String, String>) -> ContainerConfig {
    let ImageConfig { user, env, cmd, working_dir, entrypoint, .. } = lower.config.clone();
    let entrypoint = entrypoint.unwrap_or_default();
    let needs_command = entrypoint.is_empty() && cmd.as_ref().is_none_or(Vec::is_empty);
    ContainerConfig {
        user: user.filter(|user| !user.is_empty()).or_else(|| Some("0".to_owned())),
        env,
        cmd: if needs_command { Some(vec!["/bin/sh".to_owned()]) } else { cmd },
        working_dir,
        entrypoint: Some(entrypoint),
        labels: Some(labels),
        ..ContainerConfig::default()
    }
}

/// Empties the labels of Eyot's that a container has: the Engine would add them to the image, and they have the variables of the
/// sandbox.
fn emptied(inherited: Option<&HashMap<String, String>>) -> HashMap<String, String> {
    let ours = inherited.into_iter().flat_map(HashMap::keys).filter(|key| key.starts_with(PREFIX));
    ours.map(|key| (key.clone(), String::new())).collect()
}

/// Returns the labels of the image of a snapshot.
async fn labels(
    host: &Host,
    info: &SnapshotInfo,
    inherited: Option<&HashMap<String, String>>,
) -> Result<HashMap<String, String>> {
    let mut labels = emptied(inherited);
    let mut add = |key: &str, value: String| labels.insert(key.to_owned(), value);
    add(SNAPSHOT, info.id.to_string());
    add(STATE, host.state.open().await?.seal().state_id().to_owned());
    add("dev.eyot.sandbox", info.sandbox.to_string());
    add("dev.eyot.created_ms", info.created_ms.to_string());
    for (key, value) in [
        ("dev.eyot.name", info.name.as_ref().map(ToString::to_string)),
        ("dev.eyot.pool", info.pool.as_ref().map(ToString::to_string)),
        ("dev.eyot.parent", info.parent.as_ref().map(ToString::to_string)),
    ] {
        add(key, value.unwrap_or_default());
    }
    Ok(labels)
}

/// Copies the files of a directory from one container into another, whose directory has the image's files at most.
async fn copy_files(host: &Host, (from, to): (&str, &str), directory: &SandboxPath) -> Result<()> {
    let failed = |error| host.engine.failed("take a snapshot: copy the working directory", error);
    let already = names_below(host, to, directory).await?;
    let docker = host.engine.client().await?.clone().with_timeout(COMMIT_PATIENCE);
    let options = DownloadFromContainerOptionsBuilder::default().path(directory.as_str()).build();
    let copied = Arc::new(AtomicU64::new(0));
    let counted = Arc::clone(&copied);
    let archive = docker.download_from_container(from, Some(options)).map_err(io::Error::other);
    let archive = archive.and_then(move |piece| {
        let before = counted.fetch_add(piece.len() as u64, Ordering::Relaxed);
        ready(check_bytes(before + piece.len() as u64).map(|()| piece).map_err(io::Error::other))
    });
    let options = UploadToContainerOptionsBuilder::default().path(directory.parent().as_str()).build();
    let uploaded = docker.upload_to_container(to, Some(options), body_try_stream(archive)).await;
    check_bytes(copied.load(Ordering::Relaxed))?;
    uploaded.map_err(failed)?;
    if already.len() <= 1 {
        return Ok(());
    }
    // What was removed since can't be removed from an image this way.
    let now = names_below(host, from, directory).await?;
    match already.difference(&now).next() {
        None => Ok(()),
        Some(removed) => {
            let removed = String::from_utf8_lossy(removed);
            let message = format!(
                "take a snapshot: the sandbox has removed `{removed}`, which is the image's, from its working directory"
            );
            let hint = "make the sandbox with a working directory that its image does not have: --workdir";
            Err(Error::new(ErrorKind::Unsupported, message).with_hint(hint))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_sandbox_has_written_is_committed_up_to_the_limit() {
        assert!(check_bytes(MAX_COMMITTED_BYTES).is_ok());
        let refused = check_bytes(MAX_COMMITTED_BYTES + 1).unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::TooLarge);
        assert!(refused.hint().unwrap().contains("holes"));
    }
}
