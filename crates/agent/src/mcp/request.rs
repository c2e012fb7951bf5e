//! A request to call a tool. If it is dropped before its answer, the server is told to cancel it.

use eyot_tools::ToolContext;
use rmcp::RoleClient;
use rmcp::model::{
    CallToolRequest, CallToolRequestParams, CancelledNotificationParam, ClientRequest, RequestId,
    ServerResult,
};
use rmcp::service::{Peer, PeerRequestOptions, ServiceError};
use tokio::runtime::Handle;

use super::progress::McpClientHandler;

/// Sends the request and waits for its answer. Progress is reported to the context.
pub(super) async fn send(
    peer: &Peer<RoleClient>,
    handler: &McpClientHandler,
    context: ToolContext,
    call: CallToolRequestParams,
) -> Result<ServerResult, ServiceError> {
    let request = ClientRequest::CallToolRequest(CallToolRequest::new(call));
    let pending = peer.send_cancellable_request(request, PeerRequestOptions::no_options()).await?;
    let mut unanswered = UnansweredRequest { peer, id: Some(pending.id.clone()) };
    let _watch = handler.watch(pending.progress_token.clone(), context);
    let answered = pending.await_response().await;
    unanswered.id = None;
    answered
}

/// A guard that cancels a request at the server when it is dropped.
struct UnansweredRequest<'a> {
    peer: &'a Peer<RoleClient>,
    id: Option<RequestId>,
}

impl Drop for UnansweredRequest<'_> {
    fn drop(&mut self) {
        let (Some(id), Ok(runtime)) = (self.id.take(), Handle::try_current()) else { return };
        let peer = self.peer.clone();
        // The task ends with the session at the latest.
        runtime.spawn(async move {
            let cancelled =
                CancelledNotificationParam::new(Some(id), Some("the call was given up".to_owned()));
            if peer.notify_cancelled(cancelled).await.is_err() {
                tracing::debug!("an MCP server could not be told that a call was given up");
            }
        });
    }
}
