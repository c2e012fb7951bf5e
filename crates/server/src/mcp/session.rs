//! One MCP session: it introduces the server, lists the tools and answers calls. It is dropped when
//! its last call has ended, and then destroys its pool.

use std::borrow::Cow;
use std::sync::OnceLock;

use axum::http::request::Parts;
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, Implementation, InitializeRequestParams, InitializeResult,
    ListToolsResult, PaginatedRequestParams, ProtocolVersion, ServerCapabilities, ServerConfig, Tool,
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

/// The transport of a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Reached {
    /// Standard input and output: the process is the session.
    Stdio,
    /// HTTP: `initialize` opens a session.
    Http,
}

/// The token that is cancelled when a session is over. The transport adds it to the request that
/// opens the session.
#[derive(Debug, Clone)]
pub(super) struct SessionEnd(pub CancellationToken);

/// One MCP session.
pub(super) struct McpSession {
    server: McpServer,
    reached: Reached,
    pool: SessionPool,
    end: OnceLock<SessionEnd>,
    calls: Semaphore,
    /// Keeps the server from ending before the pool is destroyed.
    open: TaskTrackerToken,
}

impl McpSession {
    /// Makes the session that a client opens by HTTP, with `initialize`.
    pub(super) fn over_http(server: &McpServer) -> Self {
        Self::new(server, Reached::Http, OnceLock::new())
    }

    /// Makes the one session of this process, which is over at `end`.
    pub(super) fn over_stdio(server: &McpServer, end: SessionEnd) -> Self {
        Self::new(server, Reached::Stdio, OnceLock::from(end))
    }

    fn new(server: &McpServer, reached: Reached, end: OnceLock<SessionEnd>) -> Self {
        let (pool, calls) = (SessionPool::default(), Semaphore::new(MAX_CALLS));
        Self { server: server.clone(), reached, pool, end, calls, open: server.inner.sessions.token() }
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
        let Some(SessionEnd(ended)) = self.end.get() else {
            return Err(ErrorData::invalid_request(
                "this server needs a session: send `initialize` first",
                None,
            ));
        };
        let Ok(_running) = self.calls.try_acquire() else {
            let message = format!("{MAX_CALLS} calls of this session are running; wait for one to end");
            return Ok(super::call::refused(message));
        };
        let pool = match self.pool.get(&self.server.inner.pools).await {
            Ok(pool) => pool,
            Err(error) => return Ok(super::call::refused(error.to_string())),
        };
        let call = McpCall { tools, pool, request, context, ended };
        Ok(call.run().await)
    }
}

impl ServerHandler for McpSession {
    fn get_info(&self) -> ServerConfig {
        ServerConfig::new(ServerCapabilities::builder().enable_tools().build())
            .with_server_info(Implementation::new("eyot", env!("CARGO_PKG_VERSION")).with_title("Eyot"))
            .with_instructions(INSTRUCTIONS)
    }

    /// Returns the revisions that have sessions, if over HTTP: without a session there is nothing
    /// that sandboxes could belong to.
    fn supported_protocol_versions(&self) -> Cow<'static, [ProtocolVersion]> {
        Cow::Borrowed(match self.reached {
            Reached::Stdio => ProtocolVersion::KNOWN_VERSIONS,
            Reached::Http => ProtocolVersion::known_up_to(&ProtocolVersion::V_2025_11_25),
        })
    }

    async fn initialize(
        &self,
        request: InitializeRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<InitializeResult, ErrorData> {
        let came_with = context.extensions.get::<Parts>().map(|parts| &parts.extensions);
        if let Some(pool) = came_with.and_then(|extensions| extensions.get::<CallersPool>()) {
            self.pool.is_of(pool);
        }
        if let Some(end) = came_with.and_then(|extensions| extensions.get::<SessionEnd>()) {
            // A second `initialize` changes nothing: the session is what the first one opened.
            self.end.get_or_init(|| end.clone());
        }
        context.peer.set_peer_info(request.clone());
        self.negotiate_initialize(&request)
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
}

impl Drop for McpSession {
    fn drop(&mut self) {
        if let Some(SessionEnd(ended)) = self.end.get() {
            ended.cancel();
        }
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
