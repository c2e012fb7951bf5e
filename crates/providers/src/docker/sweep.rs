//! What nobody owns: sandboxes whose deadline fired while nobody looked, and containers whose maker was killed before it
//! started them.

use bollard::models::{ContainerSummary, ContainerSummaryStateEnum as State};
use eyot::{Error, ErrorKind, Result, SandboxInfo};

use super::condition::Condition;
use super::destroy::destroy;
use super::find::{Found, all, believed, find, inspect, listed_name};
use super::host::Host;
use super::isolation;
use super::labels::now_ms;
use super::state::{Notes, Opened};

/// How old a container may become without ever being started, in milliseconds: its maker is gone then.
const MAKING_PATIENCE_MS: i64 = 10 * 60 * 1000;

/// Every sandbox there is, oldest first, after what is over was removed.
pub(crate) async fn list(host: &Host) -> Result<Vec<SandboxInfo>> {
    let facts = host.engine.facts().await?;
    let mut infos = Vec::new();
    let containers = all(host).await?;
    forget_removed(host.state.open().await?, &containers);
    for container in containers {
        if let Some(found) = looked_at(host, container).await?
            && !removed(host, &found).await
        {
            let isolation = isolation::declared(&found.record.spec, facts);
            infos.push(found.record.info(&found.condition, isolation));
        }
    }
    infos.sort_by(|one, other| (one.created_ms, &one.id).cmp(&(other.created_ms, &other.id)));
    Ok(infos)
}

/// One of them, by id or name; what is over is removed, and gone.
pub(crate) async fn info(host: &Host, id_or_name: &str) -> Result<SandboxInfo> {
    let found = find(host, id_or_name).await?;
    if removed(host, &found).await {
        return Err(Error::destroyed(id_or_name));
    }
    let isolation = isolation::declared(&found.record.spec, host.engine.facts().await?);
    Ok(found.record.info(&found.condition, isolation))
}

/// Forgets adopted containers that are gone.
fn forget_removed(state: &Opened, containers: &[ContainerSummary]) {
    let is_there = |id: &str| containers.iter().any(|container| container.id.as_deref() == Some(id));
    for id in state.names(Notes::Containers).iter().filter(|id| !is_there(id)) {
        state.forget(Notes::Containers, id);
    }
}

/// One that runs is known well enough by the list; of any other, the container says more.
async fn looked_at(host: &Host, container: ContainerSummary) -> Result<Option<Found>> {
    let id = container.id.clone().unwrap_or_default();
    if container.state == Some(State::RUNNING)
        && let Some(mounts) = container.mounts.as_deref().filter(|mounts| !mounts.is_empty())
    {
        let labels = container.labels.as_ref();
        let labels =
            labels.ok_or_else(|| Error::new(ErrorKind::Internal, "a listed container has no labels"))?;
        let record = believed(host.state.open().await?, &id, listed_name(&container), labels, mounts);
        let condition = Condition::Running(super::life::Life(String::new()));
        return Ok(record.map(|record| Found { record, container: id, condition, made_at: String::new() }));
    }
    inspect(host, &id).await
}

/// Removes it if it is over. What can't be removed now is tried again with the next look.
async fn removed(host: &Host, found: &Found) -> bool {
    let is_abandoned = found.condition == Condition::Making
        && now_ms().saturating_sub(found.record.created_ms) > MAKING_PATIENCE_MS;
    match found.condition {
        Condition::Going => true,
        Condition::Over => sweep(host, found).await,
        Condition::Making if is_abandoned => sweep(host, found).await,
        _ => false,
    }
}

async fn sweep(host: &Host, found: &Found) -> bool {
    if let Err(error) = destroy(host, &found.record, &found.container).await {
        tracing::warn!(sandbox = %found.record.id, %error, "a sandbox that is over could not be removed");
    }
    true
}
