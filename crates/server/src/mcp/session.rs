//! One MCP session: it introduces the server, lists the tools and answers calls. It is dropped when
//! its last call has ended, and then destroys its pool. Requests of a revision without sessions share
//! the state that a session would have with the others of their client.

use std::sync::{Arc, OnceLock};

use axum::http::Extensions;
use axum::http::request::Parts;
use eyot::{Mount, NetworkMode, SandboxSpec, WorkspaceSpec};
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CompleteRequestMethod, CompleteRequestParams, CompleteResult,
    ConstString, CustomRequest, CustomResult, DiscoverResult, ErrorCode, Implementation,
    InitializeRequestParams, InitializeResult, ListPromptsRequestMethod, ListPromptsResult,
    ListResourceTemplatesRequestMethod, ListResourceTemplatesResult, ListResourcesRequestMethod,
    ListResourcesResult, ListToolsResult, PaginatedRequestParams, ServerCapabilities, ServerConfig, Tool,
};
use rmcp::service::RequestContext;
use rmcp::{ErrorData, RoleServer, ServerHandler};
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;
use tokio_util::task::task_tracker::TaskTrackerToken;

use super::call::McpCall;
use super::pools::{CallersPool, SessionPool};
use super::{MAX_CALLS, McpServer};

const INSTRUCTIONS: &str = "The tools act inside sandboxes: private Linux machines that cannot touch the host. A \
sandbox is made when it is first named and keeps its files and processes between calls.";

/// The token that is cancelled when a session is over. The transport adds it to the request that
/// opens the session.
#[derive(Debug, Clone)]
pub(super) struct SessionEnd(pub CancellationToken);

/// The state that the calls of a session share. Dropping it ends the session and destroys its pool.
pub(super) struct SessionState {
    pool: SessionPool,
    end: SessionEnd,
    calls: Semaphore,
    /// Keeps the server from ending before the pool is destroyed.
    open: TaskTrackerToken,
}

impl SessionState {
    /// Begins a session that is over at `end`, in the pool of this caller if there is one.
    pub(super) fn new(server: &McpServer, end: SessionEnd, caller: Option<&CallersPool>) -> Self {
        let pool = SessionPool::default();
        caller.into_iter().for_each(|caller| pool.is_of(caller));
        Self { pool, end, calls: Semaphore::new(MAX_CALLS), open: server.inner.sessions.token() }
    }
}

impl Drop for SessionState {
    fn drop(&mut self) {
        self.end.0.cancel();
        let Some(pool) = self.pool.take() else { return };
        let open = self.open.clone();
        // Without a runtime the process is at its end, and the next one sweeps.
        let Ok(runtime) = tokio::runtime::Handle::try_current() else { return };
        runtime.spawn(async move {
            if let Err(error) = pool.close().await {
                tracing::error!(%error, "a session's sandboxes could not all be destroyed");
            }
            drop(open);
        });
    }
}

/// One MCP session, or one request of a revision that has none.
pub(super) struct McpSession {
    server: McpServer,
    state: OnceLock<Arc<SessionState>>,
}

impl McpSession {
    /// Makes the session that a client opens by HTTP with `initialize`, or answers a request that
    /// needs none.
    pub(super) fn over_http(server: &McpServer) -> Self {
        Self { server: server.clone(), state: OnceLock::new() }
    }

    /// Makes the one session of this process, which is over at `end`.
    pub(super) fn over_stdio(server: &McpServer, end: SessionEnd) -> Self {
        let state = Arc::new(SessionState::new(server, end, None));
        Self { server: server.clone(), state: OnceLock::from(state) }
    }

    /// Returns the state of the session, or of the requests without one that a request belongs to.
    fn state(&self, context: &RequestContext<RoleServer>) -> Option<Arc<SessionState>> {
        self.state.get().cloned().or_else(|| came_with(context)?.get::<Arc<SessionState>>().cloned())
    }

    fn info(&self, state: Option<&SessionState>) -> ServerConfig {
        let callers = state.and_then(|state| state.pool.callers());
        let template = callers.map(|pool| &pool.options().template).or(self.server.inner.template.get());
        ServerConfig::new(ServerCapabilities::builder().enable_tools().build())
            .with_server_info(Implementation::new("eyot", env!("CARGO_PKG_VERSION")).with_title("Eyot"))
            .with_instructions(instructions(template))
    }

    async fn answer(
        &self,
        request: CallToolRequestParams,
        context: &RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let tools = &self.server.inner.tools;
        if tools.get(&request.name).is_none() {
            let names = tools.names().join(", ");
            let message = format!("Unknown tool: {}; there are: {names}", request.name);
            return Err(ErrorData::invalid_params(message, None));
        }
        let Some(state) = self.state(context) else {
            return Err(ErrorData::invalid_request(
                "this server needs a session: send `initialize` first",
                None,
            ));
        };
        let Ok(_running) = state.calls.try_acquire() else {
            let message = format!("{MAX_CALLS} calls of this session are running; wait for one to end");
            return Ok(super::call::refused(message));
        };
        let pool = match state.pool.get(&self.server.inner.pools).await {
            Ok(pool) => pool,
            Err(error) => return Ok(super::call::refused(error.to_string())),
        };
        let call = McpCall { tools, pool, request, context, ended: &state.end.0 };
        Ok(call.run().await)
    }
}

/// Returns what the layers above the protocol noted on a request.
fn came_with(context: &RequestContext<RoleServer>) -> Option<&Extensions> {
    context.extensions.get::<Parts>().map(|parts| &parts.extensions)
}

/// Tells a model about sandboxes that are made from this template.
fn instructions(template: Option<&SandboxSpec>) -> String {
    let Some(template) = template else { return INSTRUCTIONS.to_owned() };
    let network = match template.network {
        NetworkMode::None => {
            "They have no network: nothing can be downloaded, cloned or installed from the internet."
        }
        NetworkMode::Egress => {
            "They reach the internet by the proxy in their environment, as far as its rules allow."
        }
        NetworkMode::Bridge | NetworkMode::Host => "They have a network.",
    };
    let told = |mount: &Mount| {
        let limit = match (mount.writable, mount.cow) {
            (_, true) => " (copies: the user's own folder stays as it is)",
            (true, false) => "",
            (false, false) => " (which they can't write to)",
        };
        format!("{}{limit}", mount.target)
    };
    let targets: Vec<_> = template.mounts.iter().map(told).collect();
    let files = if !targets.is_empty() {
        format!("Folders of the user are at {}.", targets.join(", "))
    } else if template.manifest.files.is_empty() && template.workspace == WorkspaceSpec::default() {
        "A new one is empty: it has none of the user's files until a tool writes them.".to_owned()
    } else {
        "A new one has the files that whoever set it up put there.".to_owned()
    };
    format!("{INSTRUCTIONS} {network} {files}")
}

impl ServerHandler for McpSession {
    fn get_info(&self) -> ServerConfig {
        self.info(self.state.get().map(Arc::as_ref))
    }

    async fn initialize(
        &self,
        request: InitializeRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<InitializeResult, ErrorData> {
        let came_with = came_with(&context);
        if let Some(end) = came_with.and_then(|extensions| extensions.get::<SessionEnd>()) {
            let caller = came_with.and_then(|extensions| extensions.get::<CallersPool>());
            // A second `initialize` changes nothing: the session is what the first one opened.
            self.state.get_or_init(|| Arc::new(SessionState::new(&self.server, end.clone(), caller)));
        }
        context.peer.set_peer_info(request.clone());
        self.negotiate_initialize(&request)
    }

    async fn discover(&self, context: RequestContext<RoleServer>) -> Result<DiscoverResult, ErrorData> {
        let versions = self.supported_protocol_versions().into_owned();
        Ok(DiscoverResult::from_server_info(versions, self.info(self.state(&context).as_deref())))
    }

    fn get_tool(&self, name: &str) -> Option<Tool> {
        self.server.inner.listing.iter().find(|tool| tool.name == name).cloned()
    }

    async fn list_tools(
        &self,
        _request: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        Ok(ListToolsResult::with_all_items(self.server.inner.listing.clone()))
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        self.answer(request, &context).await
    }

    async fn list_resources(
        &self,
        _request: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListResourcesResult, ErrorData> {
        Err(no_method(ListResourcesRequestMethod::VALUE))
    }

    async fn list_resource_templates(
        &self,
        _request: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListResourceTemplatesResult, ErrorData> {
        Err(no_method(ListResourceTemplatesRequestMethod::VALUE))
    }

    async fn list_prompts(
        &self,
        _request: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListPromptsResult, ErrorData> {
        Err(no_method(ListPromptsRequestMethod::VALUE))
    }

    async fn complete(
        &self,
        _request: CompleteRequestParams,
        _context: RequestContext<RoleServer>,
    ) -> Result<CompleteResult, ErrorData> {
        Err(no_method(CompleteRequestMethod::VALUE))
    }

    async fn on_custom_request(
        &self,
        request: CustomRequest,
        _context: RequestContext<RoleServer>,
    ) -> Result<CustomResult, ErrorData> {
        Err(no_method(&request.method))
    }
}

/// The error about a method that this server does not have.
fn no_method(method: &str) -> ErrorData {
    let message =
        format!("there is no method `{method}` here: this server has tools, by tools/list and tools/call");
    ErrorData::new(ErrorCode::METHOD_NOT_FOUND, message, None)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_model_is_told_what_its_sandboxes_reach_and_hold() {
        let text = instructions(Some(&SandboxSpec::default()));
        assert!(text.contains("no network") && text.contains("is empty"), "{text}");
        let spec: SandboxSpec = serde_json::from_str(
            r#"{"network": "egress", "mounts": [{"source": "/srv/code", "target": "/workspace", "writable": true},
                {"source": "/srv/data", "target": "/data"}]}"#,
        )
        .unwrap();
        let text = instructions(Some(&spec));
        assert!(
            text.contains("the internet by the proxy")
                && text.contains("at /workspace, /data (which they can't write to)."),
            "{text}"
        );
        assert!(!text.contains("/srv/"), "{text}");
        assert_eq!(instructions(None), INSTRUCTIONS);
    }
}
