//! What nobody owns: sandboxes whose deadline fired while nobody looked, and containers whose maker was killed before it
//! started them.

use bollard::models::{ContainerSummary, ContainerSummaryStateEnum as State};
use eyot::{Error, Result, SandboxInfo};

use super::condition::Condition;
use super::destroy::destroy;
use super::engine::Engine;
use super::find::{Found, all, find, inspect};
use super::isolation;
use super::labels::{Record, now_ms};

/// How old a container may become without ever being started, in milliseconds: its maker is gone then.
const MAKING_PATIENCE_MS: i64 = 10 * 60 * 1000;

/// Every sandbox there is, oldest first, after what is over was removed.
pub(crate) async fn list(engine: &Engine) -> Result<Vec<SandboxInfo>> {
    let facts = engine.facts().await?;
    let mut infos = Vec::new();
    for container in all(engine).await? {
        if let Some(found) = looked_at(engine, container).await?
            && !removed(engine, &found).await
        {
            let isolation = isolation::declared(&found.record.spec, facts);
            infos.push(found.record.info(&found.condition, isolation));
        }
    }
    infos.sort_by(|one, other| (one.created_ms, &one.id).cmp(&(other.created_ms, &other.id)));
    Ok(infos)
}

/// One of them, by id or name; what is over is removed, and gone.
pub(crate) async fn info(engine: &Engine, id_or_name: &str) -> Result<SandboxInfo> {
    let found = find(engine, id_or_name).await?;
    if removed(engine, &found).await {
        return Err(Error::destroyed(id_or_name));
    }
    let isolation = isolation::declared(&found.record.spec, engine.facts().await?);
    Ok(found.record.info(&found.condition, isolation))
}

/// One that runs is known well enough by the list; of any other, the container says more.
async fn looked_at(engine: &Engine, container: ContainerSummary) -> Result<Option<Found>> {
    let (id, labels) = (container.id.unwrap_or_default(), container.labels.unwrap_or_default());
    let Some(record) = Record::of(&labels) else { return Ok(None) };
    match container.state {
        Some(State::RUNNING) => {
            let condition = Condition::Running(super::life::Life(String::new()));
            Ok(Some(Found { record, container: id, condition, made_at: String::new() }))
        }
        _ => inspect(engine, &id).await,
    }
}

/// Removes it if it is over. What can't be removed now is tried again with the next look.
async fn removed(engine: &Engine, found: &Found) -> bool {
    let is_abandoned = found.condition == Condition::Making
        && now_ms().saturating_sub(found.record.created_ms) > MAKING_PATIENCE_MS;
    match found.condition {
        Condition::Going => true,
        Condition::Over => sweep(engine, found).await,
        Condition::Making if is_abandoned => sweep(engine, found).await,
        _ => false,
    }
}

async fn sweep(engine: &Engine, found: &Found) -> bool {
    if let Err(error) = destroy(engine, &found.record, &found.container).await {
        tracing::warn!(sandbox = %found.record.id, %error, "a sandbox that is over could not be removed");
    }
    true
}
