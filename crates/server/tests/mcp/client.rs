//! rmcp's client, which records the server's notifications.

use std::sync::{Arc, Mutex};

use eyot::CancellationToken;
use eyot_server::mcp::{HttpOptions, McpServer, Tokens, serve_http, serve_stdio};
use rmcp::model::{CallToolRequestParams, CallToolResult, ClientConfig, ProgressNotificationParam};
use rmcp::service::{NotificationContext, RoleClient, RunningService, ServiceError, ServiceExt};
use rmcp::transport::StreamableHttpClientTransport;
use rmcp::transport::streamable_http_client::StreamableHttpClientTransportConfig;
use rmcp::{ClientHandler, model};
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::sync::Notify;
use tokio::task::JoinHandle;

pub const TOKEN: &str = "a-token-of-the-tests";
pub const OTHER_TOKEN: &str = "another-token-of-the-tests";

/// The notifications that a client received.
#[derive(Clone, Default)]
pub struct Heard {
    pub progress: Arc<Mutex<Vec<ProgressNotificationParam>>>,
    pub news: Arc<Notify>,
}

impl ClientHandler for Heard {
    fn get_info(&self) -> ClientConfig {
        ClientConfig::default()
    }

    async fn on_progress(&self, told: ProgressNotificationParam, _: NotificationContext<RoleClient>) {
        self.progress.lock().unwrap().push(told);
        self.news.notify_one();
    }
}

pub type Client = RunningService<RoleClient, Heard>;

/// Opens a session by a pair of pipes. The server ends with it.
pub async fn by_pipes(server: &McpServer) -> (Client, JoinHandle<eyot::Result<()>>) {
    let (ours, theirs) = tokio::io::duplex(64 << 10);
    let (read, write) = tokio::io::split(theirs);
    let server = server.clone();
    let serving =
        tokio::spawn(async move { serve_stdio(&server, read, write, CancellationToken::new()).await });
    (Heard::default().serve(ours).await.unwrap(), serving)
}

/// A server by HTTP.
pub struct Http {
    pub address: String,
    pub stop: CancellationToken,
    pub serving: JoinHandle<eyot::Result<()>>,
}

impl Http {
    pub async fn start(server: &McpServer, change: impl FnOnce(&mut HttpOptions)) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let mut options = HttpOptions::new(Tokens::new(&[TOKEN, OTHER_TOKEN]).unwrap());
        change(&mut options);
        let (stop, server) = (CancellationToken::new(), server.clone());
        let stopped = stop.clone();
        let serving = tokio::spawn(async move { serve_http(&server, listener, options, stopped).await });
        Self { address, stop, serving }
    }

    pub fn url(&self) -> String {
        format!("http://{}/mcp", self.address)
    }

    pub async fn connect(&self, token: &str) -> Client {
        let config = StreamableHttpClientTransportConfig::with_uri(self.url()).auth_header(token);
        let transport = StreamableHttpClientTransport::from_config(config);
        Heard::default().serve(transport).await.unwrap()
    }
}

pub fn request(tool: &str, arguments: Value) -> CallToolRequestParams {
    let Value::Object(arguments) = arguments else { panic!("arguments are an object") };
    let mut request = CallToolRequestParams::new(tool.to_owned());
    request.arguments = Some(arguments);
    request
}

pub async fn call(client: &Client, tool: &str, arguments: Value) -> Result<CallToolResult, ServiceError> {
    client.call_tool(request(tool, arguments)).await
}

/// Returns the output of a shell command in the session's default sandbox. It must succeed.
pub async fn shell(client: &Client, line: &str) -> String {
    let answer = call(client, "shell", json!({ "command": line })).await.unwrap();
    assert_ne!(answer.is_error, Some(true), "{answer:?}");
    answer.structured_content.unwrap()["stdout"].as_str().unwrap().to_owned()
}

pub fn text(answer: &CallToolResult) -> String {
    let pieces = answer.content.iter().filter_map(|piece| match piece {
        model::ContentBlock::Text(text) => Some(text.text.clone()),
        _ => None,
    });
    pieces.collect()
}

/// Returns arguments for each tool of `pool`, in an order in which all calls succeed.
pub fn each_tool() -> Vec<(&'static str, Value)> {
    vec![
        ("sandbox_create", json!({ "sandbox": "other" })),
        ("write_file", json!({ "path": "a/b.txt", "content": "hello" })),
        ("read_file", json!({ "path": "a/b.txt" })),
        ("glob", json!({ "pattern": "a/*.txt" })),
        ("shell", json!({ "command": "cat a/b.txt" })),
        (
            "transfer",
            json!({ "from_sandbox": "default", "from_path": "a/b.txt", "to_sandbox": "other", "to_path": "c.txt" }),
        ),
        ("browse", json!({ "port": 8000 })),
        ("sandbox_list", json!({})),
    ]
}
