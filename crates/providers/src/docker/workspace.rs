//! Where the working directory's files live: a volume that goes with its container, or one of its own that stays.

use bollard::models::{Mount, MountType, MountVolumeOptions, VolumeCreateRequest};
use bollard::query_parameters::RemoveVolumeOptions;
use eyot::{Result, SandboxSpec, WorkspaceSpec};

use super::engine::{Engine, is_absent, is_conflict};
use super::labels::{SCHEMA, SCHEMA_VERSION, WORKSPACE};

/// The volume of a persistent workspace.
pub(crate) fn volume_name(id: &str) -> String {
    format!("eyot-workspace-{id}")
}

/// The mount at the working directory.
pub(crate) fn mount(spec: &SandboxSpec, workdir: &str) -> Mount {
    let source = match &spec.workspace {
        WorkspaceSpec::Ephemeral => None,
        WorkspaceSpec::Persistent { id, .. } => Some(volume_name(id)),
    };
    Mount { source, ..volume_at(workdir) }
}

/// A volume without a name at this path, which is removed with its container. It begins with what the image has there.
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

/// Makes the volume of a persistent workspace that is not there. Whether it was made.
pub(crate) async fn claim(engine: &Engine, spec: &SandboxSpec) -> Result<bool> {
    let WorkspaceSpec::Persistent { id, .. } = &spec.workspace else { return Ok(false) };
    let docker = engine.client().await?;
    let name = volume_name(id);
    let failed = |error| engine.failed(&format!("create sandbox: make the workspace `{id}`"), error);
    match docker.inspect_volume(&name).await {
        Ok(_) => return Ok(false),
        Err(error) if is_absent(&error) => {}
        Err(error) => return Err(failed(error)),
    }
    let labels =
        [(SCHEMA, SCHEMA_VERSION), (WORKSPACE, id)].map(|(key, value)| (key.to_owned(), value.to_owned()));
    let volume = VolumeCreateRequest {
        name: Some(name),
        labels: Some(labels.into()),
        ..VolumeCreateRequest::default()
    };
    docker.create_volume(volume).await.map_err(failed)?;
    Ok(true)
}

/// Removes the volume of a persistent workspace, unless another container has it: then it stays.
pub(crate) async fn remove(engine: &Engine, id: &str) -> Result<()> {
    match engine.client().await?.remove_volume(&volume_name(id), None::<RemoveVolumeOptions>).await {
        Err(error) if !is_absent(&error) && !is_conflict(&error) => {
            Err(engine.failed(&format!("remove the workspace `{id}`"), error))
        }
        _ => Ok(()),
    }
}
