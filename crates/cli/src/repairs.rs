//! A server puts right what others have left that ended in the middle of something: runs of agents go on, and sandboxes
//! that were half made or removed are removed. Alone it does so when it starts. Of several servers that share a store, one at a time
//! does it again and again: another may have ended since.

use std::time::Duration;

use eyot_agent::Agents;
use eyot_engine::Engine;
use eyot_server::api::Api;
use tokio::time::MissedTickBehavior;
use tokio_util::task::AbortOnDropHandle;

use crate::served_agents;

/// The time between two looks of all servers together.
const BETWEEN: Duration = Duration::from_secs(30);
/// The work, as the turns of the store name it.
const WORK: &str = "repairs";

/// The repairs of a server. They end with this.
pub struct Repairs(#[allow(dead_code, reason = "it is dropped")] AbortOnDropHandle<()>);

impl Repairs {
    /// Begins with a look at the runs of agents: the engine has looked at its sandboxes when it was opened.
    pub fn begin(api: &Api, agents: Agents) -> Self {
        let engine = api.engine().clone();
        Self(AbortOnDropHandle::new(tokio::spawn(async move {
            served_agents::resume(&agents).await;
            if engine.store().is_shared() {
                repeat(&engine, &agents).await;
            }
        })))
    }
}

async fn repeat(engine: &Engine, agents: &Agents) {
    let mut due = tokio::time::interval(BETWEEN);
    due.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        due.tick().await;
        match engine.store().ask(|store| store.take_turn(WORK, BETWEEN)).await {
            Ok(true) => {}
            Ok(false) => continue,
            Err(error) => {
                tracing::warn!(%error, "what other servers have left waits");
                continue;
            }
        }
        match engine.reconcile().await {
            Ok(done) => done
                .iter()
                .for_each(|done| tracing::info!(sandbox = done.sandbox, pool = done.pool, "{}", done.what)),
            Err(error) => tracing::warn!(%error, "put right what other servers have left"),
        }
        served_agents::resume(agents).await;
    }
}
