//! The files of the working directory. They are in a volume that is removed with the container, or
//! in a named volume that stays.

use bollard::models::{Mount, MountType, MountVolumeOptions, Volume, VolumeCreateRequest};
use bollard::query_parameters::RemoveVolumeOptions;
use eyot::{Error, ErrorKind, Result, SandboxId, SandboxSpec, WorkspaceSpec};

use super::adopt::is_adopted;
use super::engine::{is_absent, is_conflict};
use super::host::Host;
use super::labels::{MAC, MAKING, SCHEMA, SCHEMA_VERSION, STATE, WORKSPACE};
use super::seal::Kind;
use super::state::{Notes, OpenState};

/// Returns the name of the volume of a persistent workspace.
pub(crate) fn volume_name(id: &str) -> String {
    format!("eyot-workspace-{id}")
}

/// Returns the mount at the working directory.
pub(crate) fn mount(spec: &SandboxSpec, workdir: &str) -> Mount {
    let source = match &spec.workspace {
        WorkspaceSpec::Ephemeral => None,
        WorkspaceSpec::Persistent { id, .. } => Some(volume_name(id)),
    };
    Mount { source, ..volume_at(workdir) }
}

/// Returns the mount of a nameless volume at this path, which is removed with its container. It
/// starts with the image's files at that path.
pub(crate) fn volume_at(path: &str) -> Mount {
    let labels = [(SCHEMA.to_owned(), SCHEMA_VERSION.to_owned())].into();
    Mount {
        target: Some(path.to_owned()),
        typ: Some(MountType::VOLUME),
        read_only: Some(false),
        volume_options: Some(MountVolumeOptions { labels: Some(labels), ..MountVolumeOptions::default() }),
        ..Mount::default()
    }
}

/// Makes the volume of a persistent workspace unless it exists. Returns whether it was made.
/// Refuses a volume that does not belong to this state folder: its files are somebody else's.
pub(crate) async fn claim(host: &Host, spec: &SandboxSpec) -> Result<bool> {
    let WorkspaceSpec::Persistent { id, .. } = &spec.workspace else { return Ok(false) };
    let (state, docker) = (host.state.open().await?, host.engine.client().await?);
    let name = volume_name(id);
    let making = SandboxId::generate().to_string();
    let labels = [
        (SCHEMA, SCHEMA_VERSION),
        (WORKSPACE, id),
        (STATE, state.seal().state_id()),
        (MAKING, &making),
        (MAC, &state.seal().mac(Kind::Workspace, &name, &making)),
    ];
    let volume = VolumeCreateRequest {
        name: Some(name.clone()),
        labels: Some(labels.map(|(key, value)| (key.to_owned(), value.to_owned())).into()),
        ..VolumeCreateRequest::default()
    };
    // One that is there is returned as it is.
    let volume = docker.create_volume(volume).await;
    let volume = volume
        .map_err(|error| host.engine.failed(&format!("create sandbox: make the workspace `{id}`"), error))?;
    if is_ours(state, &volume) {
        Ok(volume.labels.get(MAKING) == Some(&making))
    } else {
        let message =
            format!("create sandbox: the workspace `{id}` is another state folder's, or somebody else's");
        let hint = format!("name another workspace; or, to use it: eyot --provider docker adopt {name}");
        Err(Error::new(ErrorKind::Conflict, message).with_hint(hint))
    }
}

/// Tells whether this state folder made the volume, or has adopted it.
pub(crate) fn is_ours(state: &OpenState, volume: &Volume) -> bool {
    let verifies =
        |making: &String, mac: &String| state.seal().verifies(Kind::Workspace, &volume.name, making, mac);
    match (volume.labels.get(MAKING), volume.labels.get(MAC)) {
        (Some(making), Some(mac)) if verifies(making, mac) => true,
        _ => is_adopted(state, volume),
    }
}

/// Tells whether this state folder has a persistent workspace of this id.
pub(crate) async fn is_there(host: &Host, id: &str) -> Result<bool> {
    let (state, docker) = (host.state.open().await?, host.engine.client().await?);
    match docker.inspect_volume(&volume_name(id)).await {
        Err(error) if is_absent(&error) => Ok(false),
        Err(error) => Err(host.engine.failed(&format!("look for the workspace `{id}`"), error)),
        Ok(volume) => Ok(is_ours(state, &volume)),
    }
}

/// Removes the volume of a persistent workspace, unless another container uses it or it is not
/// ours.
pub(crate) async fn remove(host: &Host, id: &str) -> Result<()> {
    let (docker, name) = (host.engine.client().await?, volume_name(id));
    let failed = |error| host.engine.failed(&format!("remove the workspace `{id}`"), error);
    let volume = match docker.inspect_volume(&name).await {
        Err(error) if is_absent(&error) => return Ok(()),
        found => found.map_err(failed)?,
    };
    let state = host.state.open().await?;
    if !is_ours(state, &volume) {
        tracing::warn!(workspace = id, "the workspace is not of this state folder, and stays");
        return Ok(());
    }
    match docker.remove_volume(&name, None::<RemoveVolumeOptions>).await {
        Err(error) if is_conflict(&error) => Ok(()),
        Err(error) if !is_absent(&error) => Err(failed(error)),
        _ => {
            state.forget(Notes::Volumes, &name);
            Ok(())
        }
    }
}
