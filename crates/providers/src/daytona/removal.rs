//! Removing a sandbox that was made here, and detaching from one that was adopted.

use std::sync::Arc;

use eyot::Result;
use eyot::internal::run_detached;

use super::bring;
use super::facts::{DaytonaFacts, DaytonaPhase};
use super::guest::leave;
use super::host::DaytonaHost;
use super::toolbox::DaytonaToolbox;

/// Removes a sandbox, or detaches from it. A task of its own does it, to its end also when the caller gives up.
pub(super) async fn remove(host: &Arc<DaytonaHost>, facts: &DaytonaFacts, is_adopted: bool) -> Result<()> {
    let (host, facts) = (Arc::clone(host), facts.clone());
    run_detached(async move {
        if is_adopted {
            detach(&host, &facts).await?;
            host.adoptions.forget(&facts.id)?;
        } else {
            bring::remove(&host.client, &facts.id).await?;
        }
        host.guests.forget(&facts.id)
    })
    .await
}

/// Ends the guest in a sandbox that was handed in. One that is stopped, or gone, has none that runs.
async fn detach(host: &DaytonaHost, facts: &DaytonaFacts) -> Result<()> {
    let Some(life) = host.guests.read(&facts.id)? else { return Ok(()) };
    match host.client.get(&facts.id).await? {
        Some(now) if now.phase() == DaytonaPhase::Started => {
            let toolbox = DaytonaToolbox { address: host.client.toolbox(&now)?, client: host.client.clone() };
            leave(&toolbox, &life).await
        }
        _ => Ok(()),
    }
}
