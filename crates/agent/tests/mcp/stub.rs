//! A small server that speaks both transports of MCP and gives any answer that a test needs. The server has its own runtime,
//! so that it can be killed, and so that its tasks do not count as the client's.

use std::collections::HashMap;
use std::convert::Infallible;
use std::net::{SocketAddr, TcpListener};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::Router;
use axum::body::{Body, Bytes, to_bytes};
use axum::extract::{Request, State};
use axum::http::{HeaderMap, Method, StatusCode, header};
use axum::response::Response;
use axum::routing::{get, post};
use serde_json::{Value, json};
use tokio::runtime::Runtime;
use tokio::sync::mpsc;

/// A request that the server received.
#[derive(Clone)]
pub struct Asked {
    pub method: Method,
    pub path: String,
    pub headers: HeaderMap,
    /// The message; null for requests without one.
    pub message: Value,
}

/// The reply to a message.
pub enum Reply {
    Result(Value),
    Error(i64, &'static str),
    /// A raw response for streamable HTTP. In the older transport, its body becomes bytes of the stream.
    Raw(Response),
    Never,
}

type Handler = dyn Fn(&Asked) -> Option<Reply> + Send + Sync;
type Streams = Mutex<HashMap<String, mpsc::UnboundedSender<Body>>>;

/// The state that the requests share.
struct Shared {
    handler: Box<Handler>,
    log: Arc<Mutex<Vec<Asked>>>,
    streams: Arc<Streams>,
    /// The streams whose sessions were forgotten. They stay open.
    forgotten: Arc<Streams>,
    /// The data of the `endpoint` event, without the session.
    endpoint: String,
}

/// A running server.
pub struct StubServer {
    runtime: Option<Runtime>,
    address: SocketAddr,
    log: Arc<Mutex<Vec<Asked>>>,
    streams: Arc<Streams>,
    forgotten: Arc<Streams>,
}

impl StubServer {
    /// Starts a server with one tool, `echo`. A reply of the handler replaces the usual one.
    pub fn start(handler: impl Fn(&Asked) -> Option<Reply> + Send + Sync + 'static) -> Self {
        Self::start_at("127.0.0.1:0".parse().unwrap(), "/message", handler)
    }

    pub fn start_at(
        address: SocketAddr,
        endpoint: &str,
        handler: impl Fn(&Asked) -> Option<Reply> + Send + Sync + 'static,
    ) -> Self {
        let log = Arc::new(Mutex::new(Vec::new()));
        let shared = Arc::new(Shared {
            handler: Box::new(handler),
            log: log.clone(),
            streams: Arc::default(),
            forgotten: Arc::default(),
            endpoint: endpoint.to_owned(),
        });
        let (streams, forgotten) = (shared.streams.clone(), shared.forgotten.clone());
        let router = Router::new()
            .route("/sse", get(open_stream))
            .route("/message", post(message))
            .fallback(streamable)
            .with_state(shared);
        let mut server = Self::serve(address, router);
        (server.log, server.streams, server.forgotten) = (log, streams, forgotten);
        server
    }

    /// Serves any router.
    pub fn serve(address: SocketAddr, router: Router) -> Self {
        let listener = TcpListener::bind(address).unwrap();
        listener.set_nonblocking(true).unwrap();
        let address = listener.local_addr().unwrap();
        let runtime =
            tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
        runtime.spawn(async move {
            let listener = tokio::net::TcpListener::from_std(listener).unwrap();
            axum::serve(listener, router).await.unwrap();
        });
        Self {
            runtime: Some(runtime),
            address,
            log: Arc::default(),
            streams: Arc::default(),
            forgotten: Arc::default(),
        }
    }

    pub fn address(&self) -> SocketAddr {
        self.address
    }

    pub fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    /// Returns the requests so far.
    pub fn log(&self) -> Vec<Asked> {
        self.log.lock().unwrap().clone()
    }

    /// Returns the messages with this method.
    pub fn messages(&self, method: &str) -> Vec<Value> {
        self.log()
            .into_iter()
            .map(|asked| asked.message)
            .filter(|message| message["method"] == method)
            .collect()
    }

    /// Refuses further messages of the current streams, which stay open.
    pub fn forget_streams(&self) {
        let streams = std::mem::take(&mut *self.streams.lock().unwrap());
        self.forgotten.lock().unwrap().extend(streams);
    }

    /// Ends the server and all of its connections.
    pub fn kill(mut self) -> SocketAddr {
        self.end();
        self.address
    }

    fn end(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            std::thread::spawn(move || runtime.shutdown_timeout(Duration::from_secs(5))).join().unwrap();
        }
    }
}

impl Drop for StubServer {
    fn drop(&mut self) {
        self.end();
    }
}

async fn asked(shared: &Shared, request: Request) -> Asked {
    let (parts, body) = request.into_parts();
    let body = to_bytes(body, 1 << 20).await.unwrap();
    let path = parts.uri.path_and_query().map(ToString::to_string).unwrap_or_default();
    let message = serde_json::from_slice(&body).unwrap_or_default();
    let asked = Asked { method: parts.method, path, headers: parts.headers, message };
    shared.log.lock().unwrap().push(asked.clone());
    asked
}

/// Serves streamable HTTP at all remaining paths.
async fn streamable(State(shared): State<Arc<Shared>>, request: Request) -> Response {
    let asked = asked(&shared, request).await;
    match (shared.handler)(&asked).or_else(|| usual(&asked)) {
        Some(Reply::Raw(response)) => response,
        Some(Reply::Never) => std::future::pending().await,
        Some(reply) => {
            let mut response = raw(StatusCode::OK, "application/json", envelope(&asked, reply).to_string());
            if asked.message["method"] == "initialize" {
                response.headers_mut().insert("mcp-session-id", "session-1".parse().unwrap());
            }
            response
        }
        None if asked.method == Method::POST => raw(StatusCode::ACCEPTED, "text/plain", String::new()),
        None if asked.method == Method::DELETE => raw(StatusCode::OK, "text/plain", String::new()),
        None => raw(StatusCode::METHOD_NOT_ALLOWED, "text/plain", "no".to_owned()),
    }
}

async fn open_stream(State(shared): State<Arc<Shared>>, request: Request) -> Response {
    let asked = asked(&shared, request).await;
    if let Some(Reply::Raw(response)) = (shared.handler)(&asked) {
        return response;
    }
    let (sender, mut bodies) = mpsc::unbounded_channel::<Body>();
    let mut streams = shared.streams.lock().unwrap();
    let session = (streams.len() + shared.forgotten.lock().unwrap().len()).to_string();
    sender.send(event("endpoint", &format!("{}?session={session}", shared.endpoint)).into()).unwrap();
    streams.insert(session, sender);
    let stream = futures_util::StreamExt::flatten(futures_util::stream::poll_fn(move |context| {
        bodies.poll_recv(context).map(|body| body.map(Body::into_data_stream))
    }));
    response(StatusCode::OK, "text/event-stream", Body::from_stream(stream))
}

async fn message(State(shared): State<Arc<Shared>>, request: Request) -> Response {
    let asked = asked(&shared, request).await;
    let session =
        asked.path.split_once("session=").map(|(_, session)| session.to_owned()).unwrap_or_default();
    let Some(stream) = shared.streams.lock().unwrap().get(&session).cloned() else {
        return raw(StatusCode::NOT_FOUND, "text/plain", "no such session".to_owned());
    };
    let body = match (shared.handler)(&asked).or_else(|| usual(&asked)) {
        Some(Reply::Raw(response)) => Some(response.into_body()),
        Some(Reply::Never) | None => None,
        Some(reply) => Some(event("message", &envelope(&asked, reply).to_string()).into()),
    };
    if let Some(body) = body {
        drop(stream.send(body));
    }
    raw(StatusCode::ACCEPTED, "text/plain", "Accepted".to_owned())
}

/// An event of a stream.
pub fn event(kind: &str, data: &str) -> String {
    format!("event: {kind}\ndata: {data}\n\n")
}

fn envelope(asked: &Asked, reply: Reply) -> Value {
    let id = &asked.message["id"];
    match reply {
        Reply::Result(result) => json!({"jsonrpc": "2.0", "id": id, "result": result}),
        Reply::Error(code, message) => {
            json!({"jsonrpc": "2.0", "id": id, "error": {"code": code, "message": message}})
        }
        Reply::Raw(_) | Reply::Never => unreachable!(),
    }
}

fn usual(asked: &Asked) -> Option<Reply> {
    Some(Reply::Result(match asked.message["method"].as_str()? {
        "initialize" => json!({
            "protocolVersion": asked.message["params"]["protocolVersion"],
            "capabilities": {"tools": {}},
            "serverInfo": {"name": "stub", "version": "1"},
        }),
        "tools/list" => json!({"tools": [tool("echo")]}),
        "tools/call" => {
            json!({"content": [{"type": "text", "text": asked.message["params"]["arguments"].to_string()}]})
        }
        _ => return None,
    }))
}

/// A tool in a list.
pub fn tool(name: &str) -> Value {
    json!({"name": name, "description": "answers", "inputSchema": {"type": "object"}})
}

pub fn raw(status: StatusCode, content_type: &str, body: String) -> Response {
    response(status, content_type, body.into())
}

pub fn response(status: StatusCode, content_type: &str, body: Body) -> Response {
    Response::builder().status(status).header(header::CONTENT_TYPE, content_type).body(body).unwrap()
}

/// A body that begins with `begin` and never ends.
pub fn endless(begin: &str, piece: &'static str) -> Body {
    use futures_util::StreamExt;
    let begin = futures_util::stream::iter([Ok::<_, Infallible>(Bytes::from(begin.to_owned()))]);
    let pieces = Bytes::from(piece.repeat((64 << 10) / piece.len()));
    Body::from_stream(begin.chain(futures_util::stream::repeat_with(move || Ok(pieces.clone()))))
}
