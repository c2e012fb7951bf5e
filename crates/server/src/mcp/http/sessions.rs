//! Sessions by HTTP: their owners, their number, and their end.
//!
//! rmcp makes a session's id (122 random bits) and carries its messages. This module notes which
//! client opened it, so that no other can use it, and closes it when it has been unused for long
//! enough.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::extract::{Request, State};
use axum::http::{HeaderMap, Method, StatusCode, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use futures_util::StreamExt;
use rmcp::transport::streamable_http_server::SessionManager;
use rmcp::transport::streamable_http_server::session::local::LocalSessionManager;
use serde::de::IgnoredAny;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};
use tokio::time::{sleep, timeout};
use tokio_util::sync::CancellationToken;

use super::SESSION_ID;
use crate::http::token::Client;
use crate::mcp::MAX_MESSAGE_BYTES;
use crate::mcp::session::SessionEnd;

/// The time in which a client must send a message.
const BODY_TIMEOUT: Duration = Duration::from_secs(60);

/// The lifetime of unused sessions, and the most there may be.
#[derive(Debug, Clone, Copy)]
pub(crate) struct SessionLimits {
    /// The time after which an unused session ends.
    pub timeout: Duration,
    /// The most sessions at once, of all clients.
    pub max: usize,
    /// The most sessions at once, of one client.
    pub max_of_client: usize,
}

/// The open sessions.
#[derive(Clone)]
pub(super) struct McpSessions(Arc<Inner>);

struct Inner {
    manager: Arc<LocalSessionManager>,
    timeout: Duration,
    max_of_client: usize,
    places: Arc<Semaphore>,
    open: Mutex<HashMap<String, Arc<OpenSession>>>,
}

/// An open session.
struct OpenSession {
    client: Client,
    end: SessionEnd,
    /// The number of its answers that are being sent.
    uses: watch::Sender<usize>,
    _place: OwnedSemaphorePermit,
}

impl McpSessions {
    pub(super) fn new(manager: Arc<LocalSessionManager>, limits: SessionLimits) -> Self {
        let SessionLimits { timeout, max, max_of_client } = limits;
        let places = Arc::new(Semaphore::new(max));
        Self(Arc::new(Inner { manager, timeout, max_of_client, places, open: Mutex::default() }))
    }

    fn open(&self) -> MutexGuard<'_, HashMap<String, Arc<OpenSession>>> {
        self.0.open.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the session with this id, if this client opened it.
    fn of(&self, id: &str, client: &Client) -> Option<Arc<OpenSession>> {
        self.open().get(id).filter(|open| open.client == *client).cloned()
    }

    /// Adds a session, and closes it when it is over.
    fn note(&self, id: &str, open: Arc<OpenSession>) {
        self.open().insert(id.to_owned(), Arc::clone(&open));
        let (sessions, id) = (self.clone(), id.to_owned());
        tokio::spawn(async move {
            over(&open, sessions.0.timeout).await;
            open.end.0.cancel();
            sessions.open().remove(&id);
            if let Err(error) = sessions.0.manager.close_session(&id.into()).await {
                tracing::warn!(%error, "a session could not be closed");
            }
        });
    }
}

/// Waits until the session has ended, or was unused for `timeout`.
async fn over(open: &OpenSession, timeout: Duration) {
    let mut uses = open.uses.subscribe();
    loop {
        let is_idle = *uses.borrow_and_update() == 0;
        tokio::select! {
            () = open.end.0.cancelled() => return,
            // The session itself holds the sender: this can't fail.
            _ = uses.changed() => {}
            () = sleep(timeout), if is_idle => {
                tracing::info!("a session that nobody used is closed");
                return;
            }
        }
    }
}

/// A use of a session, which lasts until it is dropped.
struct SessionUse(Arc<OpenSession>);

impl SessionUse {
    fn begin(open: Arc<OpenSession>) -> Self {
        open.uses.send_modify(|uses| *uses += 1);
        Self(open)
    }
}

impl Drop for SessionUse {
    fn drop(&mut self) {
        self.0.uses.send_modify(|uses| *uses -= 1);
    }
}

/// Passes on requests for the client's own sessions, and those that may open one.
pub(super) async fn keep(State(sessions): State<McpSessions>, request: Request, next: Next) -> Response {
    let Some(client) = request.extensions().get::<Client>().cloned() else {
        return StatusCode::UNAUTHORIZED.into_response();
    };
    let request = match with_message(request).await {
        Ok(request) => request,
        Err(refused) => return Err::<(), _>(refused).into_response(),
    };
    match session_id(request.headers()) {
        Some(id) => match sessions.of(&id, &client) {
            Some(open) => use_it(open, request, next).await,
            None => (StatusCode::NOT_FOUND, "Not Found: there is no such session\n").into_response(),
        },
        None => open_one(&sessions, client, request, next).await,
    }
}

async fn use_it(open: Arc<OpenSession>, request: Request, next: Next) -> Response {
    let (ends, using) = (request.method() == Method::DELETE, SessionUse::begin(Arc::clone(&open)));
    let response = next.run(request).await;
    if ends && response.status().is_success() {
        open.end.0.cancel();
    }
    // An answer may be a stream that goes on for long.
    response.map(|body| {
        let frames = body.into_data_stream().map(move |frame| {
            let _: &SessionUse = &using;
            frame
        });
        Body::from_stream(frames)
    })
}

async fn open_one(sessions: &McpSessions, client: Client, mut request: Request, next: Next) -> Response {
    if sessions.open().values().filter(|open| open.client == client).count() >= sessions.0.max_of_client {
        return too_many();
    }
    let Ok(place) = Arc::clone(&sessions.0.places).try_acquire_owned() else {
        return too_many();
    };
    let end = SessionEnd(CancellationToken::new());
    request.extensions_mut().insert(end.clone());
    let response = next.run(request).await;
    if let Some(id) = session_id(response.headers()) {
        let open = OpenSession { client, end, uses: watch::Sender::new(0), _place: place };
        sessions.note(&id, Arc::new(open));
    }
    response
}

fn too_many() -> Response {
    (StatusCode::SERVICE_UNAVAILABLE, "there are too many sessions; try again later\n").into_response()
}

fn session_id(headers: &HeaderMap) -> Option<String> {
    headers.get(SESSION_ID).map(|id| String::from_utf8_lossy(id.as_bytes()).into_owned())
}

/// Reads the message of a request, within limits of size and time.
async fn with_message(request: Request) -> axum::response::Result<Request> {
    if request.method() != Method::POST {
        return Ok(request);
    }
    let (parts, body) = request.into_parts();
    let too_large =
        || (StatusCode::PAYLOAD_TOO_LARGE, format!("a message may have {MAX_MESSAGE_BYTES} bytes\n"));
    let announced = parts.headers.get(header::CONTENT_LENGTH).and_then(|length| length.to_str().ok());
    let announced: Option<usize> = announced.and_then(|length| length.parse().ok());
    if announced.is_some_and(|bytes| bytes > MAX_MESSAGE_BYTES) {
        return Err(too_large().into());
    }
    let read = timeout(BODY_TIMEOUT, axum::body::to_bytes(body, MAX_MESSAGE_BYTES)).await;
    let read = read.map_err(|_| (StatusCode::REQUEST_TIMEOUT, "the message did not come in time\n"))?;
    let message = read.map_err(|_| too_large())?;
    if let Some(complaint) = not_json(&message) {
        return Err(complaint.into());
    }
    Ok(Request::from_parts(parts, Body::from(message)))
}

/// Answers text that is not JSON with JSON-RPC's parse error.
fn not_json(message: &Bytes) -> Option<impl IntoResponse> {
    let error = serde_json::from_slice::<IgnoredAny>(message).err()?;
    let error = serde_json::json!({ "code": -32700, "message": format!("Parse error: {error}") });
    let body = serde_json::json!({ "jsonrpc": "2.0", "id": null, "error": error }).to_string();
    Some((StatusCode::BAD_REQUEST, [(header::CONTENT_TYPE, "application/json")], body))
}
