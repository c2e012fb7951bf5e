//! A server built with rmcp, over streamable HTTP.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use axum::Router;
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, ContentBlock, ListToolsResult,
    PaginatedRequestParams, ServerCapabilities, ServerConfig, Tool,
};
use rmcp::service::RequestContext;
use rmcp::transport::StreamableHttpService;
use rmcp::transport::streamable_http_server::session::local::LocalSessionManager;
use rmcp::{ErrorData, RoleServer, ServerHandler};
use serde_json::json;

use super::stub::StubServer;
use super::{TRANSPORTS, call, call_in, connect, context, until};

/// Two tools: one answers, one waits until it is cancelled.
#[derive(Clone, Default)]
struct Tools {
    started: Arc<AtomicUsize>,
    cancelled: Arc<AtomicUsize>,
}

impl ServerHandler for Tools {
    fn get_info(&self) -> ServerConfig {
        ServerConfig::new(ServerCapabilities::builder().enable_tools().build())
    }

    async fn list_tools(
        &self,
        _page: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        let schema = Arc::new(json!({"type": "object"}).as_object().unwrap().clone());
        let tools = ["answer", "wait"].map(|name| Tool::new(name, "a tool", schema.clone()));
        Ok(ListToolsResult::with_all_items(tools.to_vec()))
    }

    async fn call_tool(
        &self,
        asked: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        self.started.fetch_add(1, Ordering::SeqCst);
        if asked.name == "wait" {
            context.ct.cancelled().await;
            self.cancelled.fetch_add(1, Ordering::SeqCst);
        }
        Ok(CallToolResult::success(vec![ContentBlock::text("an answer")]).into())
    }
}

impl Tools {
    fn router(&self) -> Router {
        let tools = self.clone();
        let service = StreamableHttpService::new(
            move || Ok(tools.clone()),
            LocalSessionManager::default().into(),
            Default::default(),
        );
        Router::new().nest_service("/mcp", service)
    }
}

#[tokio::test]
async fn its_tools_are_called_and_cancelled() {
    let tools = Tools::default();
    let server = StubServer::serve("127.0.0.1:0".parse().unwrap(), tools.router());
    let connection = connect(&server, TRANSPORTS[0]).await;
    assert_eq!(connection.tools().len(), 2);
    assert_eq!(call(&connection, "mcp__stub__answer", json!({})).await.as_text(), "an answer");
    let context = context();
    let waiting = call_in(&context, &connection, "mcp__stub__wait", json!({}));
    let cancelling = async {
        until(|| tools.started.load(Ordering::SeqCst) == 2).await;
        context.cancel.cancel();
    };
    let (output, ()) = tokio::join!(waiting, cancelling);
    assert!(output.is_error);
    until(|| tools.cancelled.load(Ordering::SeqCst) == 1).await;
    assert_eq!(call(&connection, "mcp__stub__answer", json!({})).await.as_text(), "an answer");
    connection.close().await;
}
