//! The removal of containers by the Engine.

use std::time::Duration;

use bollard::query_parameters::{RemoveContainerOptionsBuilder, WaitContainerOptionsBuilder};
use eyot::Result;
use futures_util::StreamExt;

use super::engine::{Engine, is_absent, is_conflict};

/// The longest wait for another process to remove the same container.
const PATIENCE: Duration = Duration::from_secs(30);

/// Removes a container, one that runs too, with its nameless volumes. Returns `false` if it is gone, or goes.
pub(crate) async fn remove_container(engine: &Engine, container: &str) -> Result<bool> {
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
pub(crate) async fn await_removal(engine: &Engine, container: &str) -> Result<()> {
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

/// Removes a container that does not run, with its nameless volumes. Returns `false` if it is gone.
pub(crate) async fn remove_stopped(engine: &Engine, container: &str) -> Result<bool> {
    let options = RemoveContainerOptionsBuilder::default().v(true).build();
    match engine.client().await?.remove_container(container, Some(options)).await {
        Ok(()) => Ok(true),
        Err(error) if is_absent(&error) => Ok(false),
        Err(error) => Err(engine.failed("remove the container", error)),
    }
}
