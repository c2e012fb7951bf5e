//! A switch that aborts a call or a run from outside.

use std::sync::{Arc, OnceLock};

use tokio_util::sync::CancellationToken;

use crate::failure::{AgentError, AgentResult};

/// A switch that aborts a call or a run. Clones share its state.
#[derive(Debug, Clone, Default)]
pub(crate) struct AbortSwitch {
    token: CancellationToken,
    reason: Arc<OnceLock<String>>,
}

impl AbortSwitch {
    pub(crate) fn abort(&self, reason: &str) {
        // The first reason is kept.
        if self.reason.set(reason.to_owned()).is_ok() {
            self.token.cancel();
        }
    }

    pub(crate) fn token(&self) -> &CancellationToken {
        &self.token
    }

    /// Returns an error if the switch was aborted.
    pub(crate) fn check(&self) -> AgentResult<()> {
        if self.token.is_cancelled() { Err(self.error()) } else { Ok(()) }
    }

    pub(crate) fn error(&self) -> AgentError {
        AgentError::Aborted(self.reason().to_owned())
    }

    /// Returns the reason of the abort, or an empty text if there was none.
    pub(crate) fn reason(&self) -> &str {
        self.reason.get().map_or("", String::as_str)
    }

    /// Waits for an abort.
    pub(crate) async fn aborted(&self) {
        self.token.cancelled().await;
    }
}
