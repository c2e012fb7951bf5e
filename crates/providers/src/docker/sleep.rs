//! Putting a sandbox to sleep. Its container is stopped, and its guest ends everything. The
//! container keeps its files; the guest's exit code says that the sandbox sleeps.

use bollard::query_parameters::StopContainerOptionsBuilder;
use eyot::{Error, ErrorKind, Result};

use super::condition::Condition;
use super::engine::is_absent;
use super::find::{Found, find};
use super::host::Host;

/// The time that the guest has to end everything before the Engine kills it, in seconds.
const PATIENCE_S: i32 = 10;

/// Puts a sandbox to sleep. A sandbox that sleeps is no error.
pub(crate) async fn sleep(host: &Host, id_or_name: &str) -> Result<()> {
    if stop(host, &find(host, id_or_name).await?, id_or_name).await? {
        return Ok(());
    }
    // Destroyed, or another process has put it to sleep and replaced its container.
    match find(host, id_or_name).await {
        Err(error) if error.kind() == ErrorKind::NotFound => Err(Error::destroyed(id_or_name)),
        found => {
            let is_stopped = stop(host, &found?, id_or_name).await?;
            if is_stopped { Ok(()) } else { Err(Error::destroyed(id_or_name)) }
        }
    }
}

/// Stops the container of a sandbox. Returns `false` if it is gone.
async fn stop(host: &Host, found: &Found, id_or_name: &str) -> Result<bool> {
    let engine = &host.engine;
    match &found.condition {
        Condition::Running(_) => {}
        Condition::Sleeping | Condition::Dead => return Ok(true),
        other => return Err(other.refusal(id_or_name)),
    }
    let options = StopContainerOptionsBuilder::default().t(PATIENCE_S).build();
    match engine.client().await?.stop_container(&found.container, Some(options)).await {
        Err(error) if is_absent(&error) => Ok(false),
        stopped => stopped
            .map(|()| true)
            .map_err(|error| engine.failed(&format!("put sandbox `{id_or_name}` to sleep"), error)),
    }
}
