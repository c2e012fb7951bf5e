//! Removing sandboxes: the container with its volumes, then the persistent workspace if the spec
//! says so.

use std::time::Duration;

use bollard::query_parameters::{RemoveContainerOptionsBuilder, WaitContainerOptionsBuilder};
use eyot::{Result, WorkspaceSpec};
use futures_util::StreamExt;

use super::engine::{Engine, is_absent, is_conflict};
use super::host::Host;
use super::labels::Record;
use super::state::Notes;
use super::workspace;

/// The longest wait for another process to remove the same container.
const PATIENCE: Duration = Duration::from_secs(30);

/// Removes a sandbox. Returns `false` if it was removed before.
pub(crate) async fn destroy(host: &Host, record: &Record, container: &str) -> Result<bool> {
    let removed = remove_container(&host.engine, container).await?;
    if let WorkspaceSpec::Persistent { id, destroy_on_session_destroy: true } = &record.spec.workspace {
        workspace::remove(host, id).await?;
    }
    host.state.open().await?.forget(Notes::Containers, container);
    Ok(removed)
}

/// Undoes a create: removes the sandbox, but keeps a persistent workspace that was not made for it.
pub(crate) async fn abandon(host: &Host, record: &Record, container: &str) -> Result<()> {
    remove_container(&host.engine, container).await?;
    match &record.spec.workspace {
        WorkspaceSpec::Persistent { id, .. } if record.made_workspace => workspace::remove(host, id).await,
        _ => Ok(()),
    }
}

async fn remove_container(engine: &Engine, container: &str) -> Result<bool> {
    let docker = engine.client().await?;
    let options = RemoveContainerOptionsBuilder::default().force(true).v(true).build();
    match docker.remove_container(container, Some(options)).await {
        Ok(()) => Ok(true),
        Err(error) if is_absent(&error) => Ok(false),
        Err(error) if is_conflict(&error) => {
            await_removal(engine, container).await?;
            Ok(false)
        }
        Err(error) => Err(engine.failed("remove the container", error)),
    }
}

/// Waits until another process has removed the container: its name is not free before.
async fn await_removal(engine: &Engine, container: &str) -> Result<()> {
    let options = WaitContainerOptionsBuilder::default().condition("removed").build();
    let mut removal = Box::pin(engine.client().await?.wait_container(container, Some(options)));
    match tokio::time::timeout(PATIENCE, removal.next()).await {
        Ok(Some(Err(error))) if is_absent(&error) => Ok(()),
        Ok(Some(Err(bollard::errors::Error::DockerContainerWaitError { .. })) | Some(Ok(_)) | None) => Ok(()),
        Ok(Some(Err(error))) => Err(engine.failed("remove the container", error)),
        Err(_) => {
            tracing::warn!(container, "somebody else's removal of a container takes long");
            Ok(())
        }
    }
}
