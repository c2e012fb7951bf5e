//! One name of a pool, as this process knows it.

use tokio::sync::OnceCell;

use crate::error::Result;
use crate::sandbox::Sandbox;
use crate::store::SandboxRow;

/// A name's place: empty until somebody has made, found or woken its sandbox.
#[derive(Default)]
pub(super) struct Member(OnceCell<LiveSandbox>);

/// A sandbox that was up when it was last looked at.
#[derive(Debug, Clone)]
pub(super) struct LiveSandbox {
    pub sandbox: Sandbox,
    /// What the store knows of it.
    pub row: SandboxRow,
}

impl Member {
    /// What is there; else what `bring_up` finds, wakes or makes, whoever asks. Of several who ask at once one does it.
    pub(super) async fn live_sandbox(
        &self,
        bring_up: impl Future<Output = Result<LiveSandbox>>,
    ) -> Result<&LiveSandbox> {
        self.0.get_or_try_init(|| bring_up).await
    }
}
