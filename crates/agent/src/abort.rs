//! The end of a call, or of a run, from outside.

use std::sync::{Arc, OnceLock};

use tokio_util::sync::CancellationToken;

use crate::failure::{AgentError, AgentResult};

/// Ends a call, or a run, from outside. Clones are one.
#[derive(Debug, Clone, Default)]
pub(crate) struct AbortSwitch {
    token: CancellationToken,
    reason: Arc<OnceLock<String>>,
}

impl AbortSwitch {
    pub(crate) fn abort(&self, reason: &str) {
        // The first reason counts.
        if self.reason.set(reason.to_owned()).is_ok() {
            self.token.cancel();
        }
    }

    pub(crate) fn token(&self) -> &CancellationToken {
        &self.token
    }

    /// An error once it was aborted.
    pub(crate) fn check(&self) -> AgentResult<()> {
        if self.token.is_cancelled() { Err(self.error()) } else { Ok(()) }
    }

    pub(crate) fn error(&self) -> AgentError {
        AgentError::Aborted(self.reason().to_owned())
    }

    /// The reason for which it was aborted.
    pub(crate) fn reason(&self) -> &str {
        self.reason.get().map_or("", String::as_str)
    }

    /// Waits until it is aborted.
    pub(crate) async fn aborted(&self) {
        self.token.cancelled().await;
    }
}
