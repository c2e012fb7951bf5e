//! Putting a sandbox to sleep: its container is asked to end, and its guest ends everything. The container keeps its
//! files; the guest's exit code says that it sleeps.

use bollard::query_parameters::StopContainerOptionsBuilder;
use eyot::Result;

use super::condition::Condition;
use super::engine::is_absent;
use super::find::find;
use super::host::Host;

/// How long the guest may take to end everything, in seconds, before the Engine kills it.
const PATIENCE_S: i32 = 10;

/// Puts a sandbox to sleep. One that sleeps is fine.
pub(crate) async fn sleep(host: &Host, id_or_name: &str) -> Result<()> {
    let engine = &host.engine;
    let found = find(host, id_or_name).await?;
    match found.condition {
        Condition::Running(_) => {}
        Condition::Sleeping | Condition::Dead => return Ok(()),
        other => return Err(other.refusal(id_or_name)),
    }
    let options = StopContainerOptionsBuilder::default().t(PATIENCE_S).build();
    match engine.client().await?.stop_container(&found.container, Some(options)).await {
        Err(error) if is_absent(&error) => Err(eyot::Error::destroyed(id_or_name)),
        stopped => {
            stopped.map_err(|error| engine.failed(&format!("put sandbox `{id_or_name}` to sleep"), error))
        }
    }
}
