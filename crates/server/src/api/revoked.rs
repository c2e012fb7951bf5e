//! Ends everything that a revoked key began: its requests under way, and its previews. Other
//! processes revoke keys, in the store, which tells that it was changed.

use std::time::Duration;

use eyot::{Error, Result};
use eyot_engine::ChangeWatch;

use super::state::Api;

/// The least time between two look-ups: a busy server's store changes all the time.
const BETWEEN: Duration = Duration::from_millis(250);

/// A watch for revoked keys.
pub(super) struct Revoked {
    api: Api,
    /// `None`: no other process can change the store.
    changes: Option<ChangeWatch>,
}

impl Revoked {
    /// Starts the watch.
    pub async fn watch(api: Api) -> Result<Self> {
        let changes = api.keys().changes().await?;
        Ok(Self { api, changes })
    }

    /// Ends what revoked keys began, for as long as the future is polled. Returns only when
    /// watching fails.
    pub async fn end_theirs(mut self) -> Error {
        loop {
            let Some(changes) = &mut self.changes else { return std::future::pending().await };
            changes.mark_seen();
            let looked = end_all(&self.api).await;
            tokio::time::sleep(BETWEEN).await;
            let changed = match looked {
                Ok(()) => changes.changed().await,
                // A new request by a revoked key fails likewise, so nothing is open meanwhile that was not before.
                Err(error) => {
                    tracing::warn!(%error, "what revoked keys began goes on until they can be looked up");
                    Ok(())
                }
            };
            if let Err(error) = changed {
                return error;
            }
        }
    }
}

async fn end_all(api: &Api) -> Result<()> {
    for key in api.keys().list().await?.iter().filter(|key| key.revoked_ms.is_some()) {
        api.turns().end(&key.id);
        api.grants().revoke_key(&key.id);
    }
    Ok(())
}
