//! The list of sandboxes, and the removal of those without an owner: sandboxes whose deadline fired
//! while no process watched, and containers whose maker was killed before it started them.

use bollard::models::{ContainerSummary, ContainerSummaryStateEnum as State};
use eyot::internal::now_ms;
use eyot::{Error, ErrorKind, Result, SandboxId, SandboxInfo};

use super::condition::Condition;
use super::destroy::destroy;
use super::find::{Found, all, believed, find, inspect, listed_name};
use super::host::Host;
use super::isolation;
use super::labels::ID;
use super::state::{Notes, OpenState};

/// The age, in milliseconds, at which a container that was never started counts as abandoned.
const MAKING_PATIENCE_MS: i64 = 10 * 60 * 1000;

/// Lists every sandbox, oldest first. Removes those whose time is over first.
pub(crate) async fn list(host: &Host) -> Result<Vec<SandboxInfo>> {
    let facts = host.engine.facts().await?;
    let mut infos = Vec::new();
    let containers = all(host).await?;
    let state = host.state.open().await?;
    forget_removed(state, &containers);
    for container in containers {
        let id = container.labels.as_ref().and_then(|labels| labels.get(ID)).cloned();
        let mut looked = looked_at(host, container).await?;
        if looked.is_none() && state.had_snapshots() {
            looked = moved(host, id.as_deref().unwrap_or_default()).await?;
        }
        if let Some(found) = looked
            && infos.iter().all(|info: &SandboxInfo| info.id != found.record.id)
            && !removed(host, &found).await
        {
            let isolation = isolation::declared(&found.record.spec, facts);
            infos.push(found.record.info(&found.condition, isolation));
        }
    }
    infos.sort_by(|one, other| (one.created_ms, &one.id).cmp(&(other.created_ms, &other.id)));
    Ok(infos)
}

/// Describes one sandbox, by id or name. A sandbox whose time is over is removed and counts as
/// destroyed.
pub(crate) async fn info(host: &Host, id_or_name: &str) -> Result<SandboxInfo> {
    let found = find(host, id_or_name).await?;
    if removed(host, &found).await {
        return Err(Error::destroyed(id_or_name));
    }
    let isolation = isolation::declared(&found.record.spec, host.engine.facts().await?);
    Ok(found.record.info(&found.condition, isolation))
}

/// Removes the notes of adopted containers that no longer exist.
fn forget_removed(state: &OpenState, containers: &[ContainerSummary]) {
    let is_there = |id: &str| containers.iter().any(|container| container.id.as_deref() == Some(id));
    for id in state.names(Notes::Containers).iter().filter(|id| !is_there(id)) {
        state.forget(Notes::Containers, id);
    }
}

/// Reads a sandbox from the list if it runs. The list does not say enough of any other, so its
/// container is inspected.
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

/// Finds a sandbox whose container was just replaced by another one.
async fn moved(host: &Host, id: &str) -> Result<Option<Found>> {
    if SandboxId::parse(id).is_err() {
        return Ok(None);
    }
    match find(host, id).await {
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        // One that can't be given its name, since another container has that, keeps nobody from the others.
        Err(error) if matches!(error.kind(), ErrorKind::Conflict | ErrorKind::AlreadyExists) => {
            tracing::warn!(sandbox = id, %error, "a sandbox between two containers is not listed");
            Ok(None)
        }
        found => found.map(Some),
    }
}

/// Removes a sandbox whose time is over. Returns whether it is over; if the removal fails, the next
/// look tries again.
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
