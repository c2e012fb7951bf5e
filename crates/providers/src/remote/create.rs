//! A create over HTTP that its caller may give up at any moment. The request runs to its end in a
//! task of its own, because only the answer says whether there is a sandbox. If no caller takes the
//! sandbox, it is abandoned.

use std::sync::Arc;

use eyot::wire::SandboxAnswer;
use eyot::{Capabilities, Created, Error, ErrorKind, Result, SandboxDriver};
use reqwest::RequestBuilder;
use tokio::sync::oneshot;

use super::driver::RemoteDriver;
use super::http::ServerClient;

/// A sandbox that no caller has taken yet. Dropping it abandons the sandbox.
struct Untaken(Option<Created>);

impl Untaken {
    fn take(mut self) -> Option<Created> {
        self.0.take()
    }
}

impl Drop for Untaken {
    fn drop(&mut self) {
        let (Some(created), Ok(runtime)) = (self.0.take(), tokio::runtime::Handle::try_current()) else {
            return;
        };
        runtime.spawn(async move {
            if let Err(error) = created.driver.abandon().await {
                tracing::warn!(%error, sandbox = %created.info.id, "abandon a sandbox that nobody waited for");
            }
        });
    }
}

/// Sends the request and returns the sandbox that it made.
pub(super) async fn create(
    server: ServerClient,
    capabilities: Capabilities,
    request: RequestBuilder,
) -> Result<Created> {
    let (sender, receiver) = oneshot::channel::<Result<Untaken>>();
    tokio::spawn(async move {
        let made = async {
            let answer: SandboxAnswer = server.json(server.ask(request).await?).await?;
            Ok(Untaken(Some(created(server, capabilities, answer))))
        };
        // What nobody receives is dropped, and abandons itself.
        drop(sender.send(made.await));
    });
    let lost = || Error::new(ErrorKind::Internal, "the task of a create ended early");
    receiver.await.map_err(|_| lost())??.take().ok_or_else(lost)
}

/// Builds the parts of a handle from an answer.
pub(super) fn created(server: ServerClient, capabilities: Capabilities, answer: SandboxAnswer) -> Created {
    let info = answer.info();
    let driver: Arc<dyn SandboxDriver> = Arc::new(RemoteDriver::new(server, &info, capabilities));
    Created { info, driver, keeper: None }
}
