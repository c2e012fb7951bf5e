//! Sandboxes of the cases, which are gone afterwards.

use std::sync::{Mutex, PoisonError};

use crate::error::Result;
use crate::sandbox::Sandbox;

/// A sandbox that is destroyed even if the case is abandoned.
pub(super) struct Disposable(pub(super) Sandbox);

impl Drop for Disposable {
    fn drop(&mut self) {
        let sandbox = self.0.clone();
        tokio::spawn(async move {
            if let Err(error) = sandbox.destroy().await {
                tracing::warn!(%error, "a case left a sandbox behind");
            }
        });
    }
}

/// Sandboxes with an empty workspace that wait for the next case.
#[derive(Default)]
pub struct ReusedSandboxes(Mutex<Vec<Disposable>>);

impl ReusedSandboxes {
    /// Destroys those that wait. To be called in a runtime when all cases have ended.
    ///
    /// # Errors
    /// The last one that could not be destroyed.
    pub async fn destroy(&self) -> Result<()> {
        let mut destroyed = Ok(());
        while let Some(Disposable(sandbox)) = self.take().as_ref() {
            destroyed = sandbox.destroy().await.and(destroyed);
        }
        destroyed
    }

    pub(super) fn take(&self) -> Option<Disposable> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).pop()
    }

    pub(super) fn give(&self, sandbox: Disposable) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(sandbox);
    }
}
