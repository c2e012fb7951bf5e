//! Sandboxes of the cases, which are gone afterwards.

use std::sync::{Mutex, PoisonError};

use tokio::task::JoinHandle;

use crate::error::Result;
use crate::sandbox::Sandbox;

/// A sandbox that is destroyed even if the case is abandoned.
pub(super) struct Disposable(pub(super) Sandbox);

impl Drop for Disposable {
    fn drop(&mut self) {
        let sandbox = self.0.clone();
        let destroying = tokio::spawn(async move {
            if let Err(error) = sandbox.destroy().await {
                tracing::warn!(%error, "a case left a sandbox behind");
            }
        });
        let mut all = DESTROYING.lock().unwrap_or_else(PoisonError::into_inner);
        all.retain(|task| !task.is_finished());
        all.push(destroying);
    }
}

/// The tasks that destroy sandboxes whose cases have ended.
static DESTROYING: Mutex<Vec<JoinHandle<()>>> = Mutex::new(Vec::new());

/// Waits until no case has a sandbox any more. To be called when all cases have ended: the end of the
/// runtime would leave what is not destroyed by then.
pub(super) async fn settle() {
    let all = std::mem::take(&mut *DESTROYING.lock().unwrap_or_else(PoisonError::into_inner));
    for task in all {
        if let Err(error) = task.await {
            tracing::warn!(%error, "a sandbox of a case was not destroyed");
        }
    }
}

/// Sandboxes with an empty workspace that wait for the next case.
#[derive(Default)]
pub struct ReusedSandboxes(Mutex<Vec<Disposable>>);

impl ReusedSandboxes {
    /// Destroys those that wait, and waits for the end of all others. To be called in a runtime when
    /// all cases have ended.
    ///
    /// # Errors
    /// The last one that could not be destroyed.
    pub async fn destroy(&self) -> Result<()> {
        let mut destroyed = Ok(());
        while let Some(Disposable(sandbox)) = self.take().as_ref() {
            destroyed = sandbox.destroy().await.and(destroyed);
        }
        settle().await;
        destroyed
    }

    pub(super) fn take(&self) -> Option<Disposable> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).pop()
    }

    pub(super) fn give(&self, sandbox: Disposable) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(sandbox);
    }
}
