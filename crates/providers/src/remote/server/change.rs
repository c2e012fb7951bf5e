//! Changes of a sandbox of a server.

use eyot::wire::PatchSandbox;
use eyot::{Result, SandboxId};
use reqwest::Method;

use super::{RemoteServer, with_json};

impl RemoteServer {
    /// Changes the labels, deadlines or egress rules of a sandbox.
    pub async fn change(&self, sandbox: &SandboxId, patch: &PatchSandbox) -> Result<()> {
        let request = self.request(Method::PATCH, &["v1", "sandboxes", sandbox.as_str()], &[])?;
        self.server().ask(with_json(request, patch)?).await.map(drop)
    }
}
