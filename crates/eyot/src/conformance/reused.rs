//! Sandboxes that are used for one case after another, because the provider takes long to make one.

use std::future::Future;
use std::sync::{Arc, Mutex, PoisonError};

use super::Fixture;
use super::check::{Check, Disposable, Failure, in_a_sandbox, sh};
use crate::error::Result;
use crate::sandbox::Sandbox;

/// Empties the workspace, and fails where something is left.
const EMPTY: &str = "chmod -R u+rwx . 2>/dev/null; rm -rf -- ..?* .[!.]* * && test -z \"$(ls -A)\"";

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

    fn take(&self) -> Option<Disposable> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).pop()
    }

    fn give(&self, sandbox: Disposable) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(sandbox);
    }
}

/// Tries `case` in a sandbox where others may have been tried before it, with an empty workspace.
pub(super) async fn in_a_workspace<C, F>(fixture: Arc<dyn Fixture>, case: C) -> Check
where
    C: FnOnce(Sandbox) -> F,
    F: Future<Output = Check>,
{
    let Some(reused) = fixture.reused() else { return in_a_sandbox(fixture, case).await };
    let sandbox = match reused.take() {
        Some(sandbox) => sandbox,
        None => Disposable(Sandbox::create(&*fixture.provider(), fixture.spec()).await?),
    };
    let checked = case(sandbox.0.clone()).await;
    let is_sound = !matches!(checked, Err(Failure::Broken(_)));
    if is_sound && sh(&sandbox.0, EMPTY).await.is_ok_and(|emptied| emptied.success()) {
        reused.give(sandbox);
    }
    checked
}
