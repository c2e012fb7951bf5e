//! Putting a sandbox to sleep. Its container is stopped, and its guest ends everything. The
//! container keeps its files; the guest's exit code says that the sandbox sleeps.

use bollard::query_parameters::StopContainerOptionsBuilder;
use eyot::Result;

use super::condition::Condition;
use super::engine::is_absent;
use super::find::find;
use super::host::Host;

/// The time that the guest has to end everything before the Engine kills it, in seconds.
const PATIENCE_S: i32 = 10;

/// Puts a sandbox to sleep. A sandbox that sleeps is no error.
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
