//! An MCP server whose tools have answers of all kinds.

use axum::Router;
use libtest_mimic::Failed;
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, ListToolsResult, PaginatedRequestParams,
    ServerCapabilities, ServerConfig,
};
use rmcp::service::RequestContext;
use rmcp::transport::StreamableHttpService;
use rmcp::transport::streamable_http_server::session::local::LocalSessionManager;
use rmcp::{ErrorData, RoleServer, ServerHandler};
use serde_json::{Value, json};
use tokio::runtime::Runtime;

use crate::runs::PIXEL;

/// The tools of the server.
#[derive(Clone)]
struct SampleTools;

/// Starts the server, which ends with the runtime. Returns its address.
pub fn serve(runtime: &Runtime) -> Result<String, Failed> {
    let listener = runtime.block_on(tokio::net::TcpListener::bind("127.0.0.1:0"))?;
    let url = format!("http://{}/mcp", listener.local_addr()?);
    let service = StreamableHttpService::new(
        || Ok(SampleTools),
        LocalSessionManager::default().into(),
        Default::default(),
    );
    let router = Router::new().nest_service("/mcp", service);
    runtime.spawn(async move { axum::serve(listener, router).await });
    Ok(url)
}

impl ServerHandler for SampleTools {
    fn get_info(&self) -> ServerConfig {
        ServerConfig::new(ServerCapabilities::builder().enable_tools().build())
    }

    async fn list_tools(
        &self,
        _page: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        Ok(read(json!({"tools": tools()})))
    }

    async fn call_tool(
        &self,
        asked: CallToolRequestParams,
        _context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        Ok(CallToolResponse::from(read::<CallToolResult>(answer(&asked.name))))
    }
}

fn read<T: serde::de::DeserializeOwned>(value: Value) -> T {
    serde_json::from_value(value).expect("a message of MCP")
}

fn tools() -> Value {
    let names = json!({"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]});
    let nothing = json!({"type": "object"});
    json!([
        {"name": "greet", "title": "Greeting", "description": "Greets somebody.", "inputSchema": names},
        {"name": "fetch.all", "description": "Fetches all.", "inputSchema": nothing},
        {"name": "fail", "inputSchema": nothing},
        {"name": "count", "annotations": {"title": "Counter"}, "inputSchema": nothing},
        {"name": "draw", "inputSchema": nothing},
        {"name": "nothing", "title": "nothing", "inputSchema": nothing},
    ])
}

/// The answer of a tool.
fn answer(tool: &str) -> Value {
    let text = |text: &str| json!({"type": "text", "text": text});
    match tool {
        "greet" => json!({"content": [text("Hello."), text("How are you?")]}),
        "fetch.all" => json!({"content": [
            {"type": "resource", "resource": {"uri": "file:///a.txt", "text": "a"}},
            {"type": "resource", "resource": {"uri": "file:///a.bin", "blob": "AAAA"}},
            {"type": "resource_link", "uri": "file:///b.txt", "name": "b", "description": "The other one"},
            {"type": "resource_link", "uri": "file:///c.txt", "name": "c"},
            {"type": "audio", "mimeType": "audio/wav", "data": "AAAA"},
        ]}),
        "fail" => json!({"isError": true, "content": [text("It failed.")]}),
        "count" => json!({"content": [text("{\"n\":3}")], "structuredContent": {"n": 3}}),
        "draw" => {
            json!({"content": [text("Here:"), {"type": "image", "mimeType": "image/png", "data": PIXEL}]})
        }
        _ => json!({"content": []}),
    }
}
