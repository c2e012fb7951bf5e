//! MCP servers of all kinds: good ones over both transports, and those that die, forget sessions, refuse or are hostile.

#![allow(clippy::unwrap_used)]

mod calls;
mod connecting;
mod hostile;
mod leaks;
mod lists;
mod lost;
mod rmcp_server;
mod secret;
mod stub;

use std::sync::Arc;
use std::time::{Duration, Instant};

use eyot_agent::{McpConnection, McpServerOptions, McpTransport, connect_mcp_server};
use eyot_engine::{PoolOptions, SandboxPool};
use eyot_providers::memory::MemoryProvider;
use eyot_tools::{ToolContext, ToolOutput, Toolset, handle_tool_call};
use serde_json::Value;
use stub::StubServer;

/// The time after which a wait counts as hanging.
const HANG: Duration = Duration::from_secs(30);

/// Both transports, with the path at which the stub speaks them.
const TRANSPORTS: [(McpTransport, &str); 2] =
    [(McpTransport::StreamableHttp, "/mcp"), (McpTransport::Sse, "/sse")];

fn context() -> ToolContext {
    let provider = Arc::new(MemoryProvider::default());
    ToolContext::new(SandboxPool::open(provider, PoolOptions::default()).unwrap())
}

fn options(server: &StubServer, (transport, path): (McpTransport, &str)) -> McpServerOptions {
    McpServerOptions { transport, ..McpServerOptions::new(server.url(path)) }
}

async fn connect(server: &StubServer, spoken: (McpTransport, &str)) -> McpConnection {
    connect_mcp_server("stub", options(server, spoken)).await.unwrap()
}

/// Calls a tool by the name that a model uses.
async fn call(connection: &McpConnection, name: &str, input: Value) -> ToolOutput {
    call_in(&context(), connection, name, input).await
}

async fn call_in(context: &ToolContext, connection: &McpConnection, name: &str, input: Value) -> ToolOutput {
    let tools = Toolset::new("mcp", connection.tools().to_vec()).unwrap();
    handle_tool_call(context, &tools, name, input).await
}

/// Waits until the condition holds.
async fn until(mut condition: impl FnMut() -> bool) {
    let began = Instant::now();
    while !condition() {
        assert!(began.elapsed() < HANG, "it does not happen");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}
