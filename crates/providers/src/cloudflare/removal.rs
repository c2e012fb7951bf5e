//! Removing a sandbox, and what processes have left that are gone.

use std::sync::Arc;
use std::time::Duration;

use eyot::{Error, ErrorKind, Result};

use super::guest_place::leave;
use super::host::BridgeHost;
use super::record::{BridgeRecord, BridgeState};
use super::records::{CALLS_PATIENCE, SLOW_CALLS_PATIENCE};

/// The longest time for which a list waits for the removal of what is left.
pub(super) const LIST_PATIENCE: Duration = Duration::from_secs(3);
/// The longest time for which a create waits for it: a name may get free by that.
pub(super) const CREATE_PATIENCE: Duration = Duration::from_secs(20);

/// Removes a sandbox that was made here, and detaches from one that was adopted. Returns `false` if that was done before. A
/// task of its own does it, to its end also when the caller gives up.
pub(super) async fn remove(host: &Arc<BridgeHost>, record: &BridgeRecord) -> Result<bool> {
    let (host, record) = (Arc::clone(host), record.clone());
    let removing = tokio::spawn(async move { remove_whole(&host, &record).await });
    removing
        .await
        .map_err(|error| Error::new(ErrorKind::Internal, "a task ended early").with_source(error))?
}

async fn remove_whole(host: &Arc<BridgeHost>, record: &BridgeRecord) -> Result<bool> {
    let Some(before) = host.records.end(&record.id)? else { return Ok(false) };
    // Until it is out of the bridge the record stays, and the next list tries again.
    if host.records.removing(&before.id, CALLS_PATIENCE, remove_at_bridge(host, &before)).await? {
        host.records.forget_if_same(&before)?;
    } else {
        tokio::spawn(remove_again(Arc::clone(host), before.clone()));
    }
    Ok(before.state != BridgeState::Ending)
}

async fn remove_at_bridge(host: &BridgeHost, record: &BridgeRecord) -> Result<()> {
    if record.is_adopted { leave(host, record).await } else { host.client.delete(&record.bridge_id).await }
}

/// Removes a sandbox that is removed once more, after the calls that were under way then: the bridge makes another container for
/// one that comes late. A process that ends before leaves it to the next list.
async fn remove_again(host: Arc<BridgeHost>, record: BridgeRecord) {
    let removed = async {
        // Whoever holds it removes it.
        let Some(_held) = host.records.hold(&record.id)? else { return Ok(()) };
        if host.records.removing(&record.id, SLOW_CALLS_PATIENCE, remove_at_bridge(&host, &record)).await? {
            host.records.forget_if_same(&record)?;
        }
        Ok::<_, Error>(())
    };
    if let Err(error) = removed.await {
        tracing::warn!(sandbox = %record.id, %error, "a removal beside a slow call is not finished; the next list tries again");
    }
}

/// Removes what processes that are gone have begun to make, or to remove. A task of its own does it; it is waited for a while.
pub(super) async fn sweep(host: &Arc<BridgeHost>, patience: Duration) {
    let host = Arc::clone(host);
    let sweeping = tokio::spawn(async move {
        if let Err(error) = sweep_whole(&host).await {
            tracing::warn!(%error, "what an ended process has left at the bridge could not be removed");
        }
    });
    if tokio::time::timeout(patience, sweeping).await.is_err() {
        tracing::debug!("the bridge is slow to remove what an ended process has left");
    }
}

async fn sweep_whole(host: &Arc<BridgeHost>) -> Result<()> {
    for record in host.records.all()? {
        if record.state == BridgeState::Made {
            continue;
        }
        let Some(_held) = host.records.hold(&record.id)? else { continue };
        // It may have been finished since it was read.
        let is_left = host.records.read(&record.id)?.is_some_and(|now| now.state != BridgeState::Made);
        if is_left {
            remove(host, &record).await?;
        }
    }
    Ok(())
}
