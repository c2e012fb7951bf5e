//! Sessions by HTTP: their owners, their number, and their end.
//!
//! rmcp makes a session's id (122 random bits) and carries its messages. This module notes which
//! client opened it, so that no other can use it, and closes it when it has been unused for long
//! enough. From the revision 2026-07-28 on there are no sessions: the requests of one client that
//! name the same pool, or none, share what a session would have, with the same limits and end.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::extract::{Request, State};
use axum::http::{HeaderMap, Method, StatusCode, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use eyot::SandboxName;
use futures_util::StreamExt;
use rmcp::model::ProtocolVersion;
use rmcp::transport::streamable_http_server::SessionManager;
use rmcp::transport::streamable_http_server::session::local::LocalSessionManager;
use serde::de::IgnoredAny;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};
use tokio::time::{sleep, timeout};
use tokio_util::sync::CancellationToken;

use super::{POOL_HEADER, SESSION_ID};
use crate::http::token::Client;
use crate::mcp::session::{SessionEnd, SessionState};
use crate::mcp::{CallersPool, MAX_MESSAGE_BYTES, McpServer};

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
    without_id: Mutex<HashMap<PoolKey, Arc<OpenSession>>>,
    server: McpServer,
    stop: CancellationToken,
}

/// A client, and the pool that its requests without a session name.
type PoolKey = (Client, Option<SandboxName>);

/// An open session.
struct OpenSession {
    client: Client,
    end: SessionEnd,
    /// The number of its answers that are being sent.
    uses: watch::Sender<usize>,
    /// The state of requests that have no session of rmcp's.
    state: Option<Arc<SessionState>>,
    _place: OwnedSemaphorePermit,
}

impl McpSessions {
    pub(super) fn new(
        manager: Arc<LocalSessionManager>,
        server: &McpServer,
        limits: SessionLimits,
        stop: &CancellationToken,
    ) -> Self {
        let SessionLimits { timeout, max, max_of_client } = limits;
        let (places, server, stop) = (Arc::new(Semaphore::new(max)), server.clone(), stop.clone());
        let (open, without_id) = Default::default();
        Self(Arc::new(Inner { manager, timeout, max_of_client, places, open, without_id, server, stop }))
    }

    fn open(&self) -> MutexGuard<'_, HashMap<String, Arc<OpenSession>>> {
        self.0.open.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn without_id(&self) -> MutexGuard<'_, HashMap<PoolKey, Arc<OpenSession>>> {
        self.0.without_id.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes a place for one more session of this client. `None`: there are too many.
    fn place(&self, client: &Client) -> Option<OwnedSemaphorePermit> {
        let is_theirs = |open: &&Arc<OpenSession>| open.client == *client;
        let theirs = self.open().values().filter(is_theirs).count();
        let theirs = theirs + self.without_id().values().filter(is_theirs).count();
        if theirs >= self.0.max_of_client {
            return None;
        }
        Arc::clone(&self.0.places).try_acquire_owned().ok()
    }

    /// Begins a use of what requests without a session share. `None`: there are too many sessions.
    fn share(&self, key: PoolKey, caller: Option<&CallersPool>) -> Option<SessionUse> {
        if let Some(open) = self.without_id().get(&key) {
            return Some(SessionUse::begin(Arc::clone(open)));
        }
        let place = self.place(&key.0)?;
        let end = SessionEnd(self.0.stop.child_token());
        let state = Arc::new(SessionState::new(&self.0.server, end.clone(), caller));
        let (client, uses) = (key.0.clone(), watch::Sender::new(0));
        let open = OpenSession { client, end, uses, state: Some(state), _place: place };
        // Another request may have been faster since.
        let mut without_id = self.without_id();
        let open = without_id.entry(key.clone()).or_insert_with(|| self.end_when_unused(key, open));
        Some(SessionUse::begin(Arc::clone(open)))
    }

    /// Ends what requests without a session share, once none has come for the timeout.
    fn end_when_unused(&self, key: PoolKey, open: OpenSession) -> Arc<OpenSession> {
        let (sessions, open) = (self.clone(), Arc::new(open));
        let watched = Arc::clone(&open);
        tokio::spawn(async move {
            loop {
                over(&watched, sessions.0.timeout).await;
                if sessions.forget_unused(&key, &watched) {
                    return;
                }
            }
        });
        open
    }

    /// Forgets it, unless a request has come just now.
    fn forget_unused(&self, key: &PoolKey, open: &OpenSession) -> bool {
        let mut without_id = self.without_id();
        let is_over = open.end.0.is_cancelled() || *open.uses.borrow() == 0;
        if is_over {
            without_id.remove(key);
            open.end.0.cancel();
        }
        is_over
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
        None if is_without_session(&request) => without_session(&sessions, client, request, next).await,
        None => open_one(&sessions, client, request, next).await,
    }
}

async fn use_it(open: Arc<OpenSession>, request: Request, next: Next) -> Response {
    let (ends, using) = (request.method() == Method::DELETE, SessionUse::begin(Arc::clone(&open)));
    let response = next.run(request).await;
    if ends && response.status().is_success() {
        open.end.0.cancel();
        // rmcp answers 202. Clients take that for a refusal: they expect 200 or 204.
        return StatusCode::NO_CONTENT.into_response();
    }
    held(using, response)
}

/// Keeps a session in use until its answer has been sent.
fn held(using: SessionUse, response: Response) -> Response {
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
    let Some(place) = sessions.place(&client) else { return too_many() };
    let end = SessionEnd(CancellationToken::new());
    request.extensions_mut().insert(end.clone());
    let response = next.run(request).await;
    if let Some(id) = session_id(response.headers()) {
        let open = OpenSession { client, end, uses: watch::Sender::new(0), state: None, _place: place };
        sessions.note(&id, Arc::new(open));
    }
    response
}

/// Tells whether a request is of a revision without sessions.
fn is_without_session(request: &Request) -> bool {
    let header = |name: &str| request.headers().get(name).and_then(|value| value.to_str().ok());
    let version = header("mcp-protocol-version").unwrap_or_default();
    request.method() == Method::POST
        && version >= ProtocolVersion::NO_INITIALIZE.as_str()
        && header("mcp-method") != Some("initialize")
}

async fn without_session(
    sessions: &McpSessions,
    client: Client,
    mut request: Request,
    next: Next,
) -> Response {
    let named = request.headers().get(POOL_HEADER).map(|name| String::from_utf8_lossy(name.as_bytes()));
    let pool = match named.map(|name| SandboxName::parse(&name)).transpose() {
        Ok(pool) => pool,
        Err(error) => return (StatusCode::BAD_REQUEST, format!("Eyot-Pool: {error}\n")).into_response(),
    };
    let caller = request.extensions().get::<CallersPool>().cloned();
    let Some(using) = sessions.share((client, pool), caller.as_ref()) else { return too_many() };
    if let Some(state) = &using.0.state {
        request.extensions_mut().insert(Arc::clone(state));
    }
    held(using, next.run(request).await)
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
