//! One name of a pool, as this process knows it.

use eyot::{Result, Sandbox};
use tokio::sync::OnceCell;

use crate::store::SandboxRow;

/// A name's place: empty until somebody has made, found or woken its sandbox.
#[derive(Default)]
pub(super) struct Member(OnceCell<LiveSandbox>);

/// A sandbox that was up when it was last looked at.
#[derive(Debug, Clone)]
pub(super) struct LiveSandbox {
    pub sandbox: Sandbox,
    /// The store's row for it.
    pub row: SandboxRow,
}

impl Member {
    /// Returns the sandbox that is known, or runs `bring_up` to find, wake or make it. Of several
    /// callers at once, one runs it.
    pub(super) async fn live_sandbox(
        &self,
        bring_up: impl Future<Output = Result<LiveSandbox>>,
    ) -> Result<&LiveSandbox> {
        self.0.get_or_try_init(|| bring_up).await
    }
}
