//! Stand-ins for the vendors' HTTP APIs, for tests. They play a script and record the requests.
//!
//! A stand-in listens on this machine only, until it is dropped. It checks requests as the vendor would. The answer is 401
//! without a key, 404 at an unknown path, and 400 if the request is not JSON, does not ask for a stream, or has a tool call
//! without an answer.
//!
//! ```
//! use eyot_agent::standin::{StandIn, StandInTurn};
//!
//! # tokio_test(async {
//! let vendor = StandIn::anthropic([StandInTurn::text("hello")]).await?;
//! // ANTHROPIC_BASE_URL, or the address of a registered provider.
//! assert!(vendor.url().starts_with("http://127.0.0.1:"));
//! # Ok::<(), std::io::Error>(()) });
//! # fn tokio_test<T>(test: impl Future<Output = std::io::Result<T>>) {
//! #     tokio::runtime::Runtime::new().unwrap().block_on(test).unwrap();
//! # }
//! ```

mod anthropic;
mod chat_completions;
mod conversation;
mod frames;
mod responses;
mod turn;

use std::collections::{BTreeMap, VecDeque};
use std::convert::Infallible;
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use futures_util::{StreamExt, stream};
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, Full, StreamBody};
use hyper::body::{Frame, Incoming};
use hyper::header::HeaderMap;
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;
use serde_json::Value;
use tokio::net::{TcpListener, TcpStream};
use tokio::task::{AbortHandle, JoinSet};

use frames::FrameList;
pub use turn::StandInTurn;
use turn::{StandInFailure, TurnEnding};

type AnswerBody = UnsyncBoxBody<Bytes, io::Error>;

/// A stand-in for a vendor's HTTP API.
pub struct StandIn {
    url: String,
    state: Arc<Mutex<StandInState>>,
    task: AbortHandle,
}

/// A request that a stand-in received.
#[derive(Debug, Clone, PartialEq)]
pub struct StandInRequest {
    /// The method, such as `POST`.
    pub method: String,
    /// The path, such as `/v1/messages`.
    pub path: String,
    /// The headers, with names in lower case. One that was sent twice has both values, with `, ` between.
    pub headers: BTreeMap<String, String>,
    /// The body, or null if it was not JSON.
    pub body: Value,
}

#[derive(Default)]
struct StandInState {
    turns: VecDeque<StandInTurn>,
    requests: Vec<StandInRequest>,
    answers_dropped: usize,
}

/// Counts an answer that its client leaves before the end.
struct OpenAnswer {
    state: Arc<Mutex<StandInState>>,
    is_whole: AtomicBool,
}

impl Drop for OpenAnswer {
    fn drop(&mut self) {
        if !self.is_whole.load(Ordering::Relaxed) {
            lock(&self.state).answers_dropped += 1;
        }
    }
}

/// The vendor that a stand-in imitates.
#[derive(Clone, Copy, PartialEq)]
enum Vendor {
    Anthropic,
    Openai,
}

/// The API that a request is for.
#[derive(Clone, Copy)]
enum VendorApi {
    Messages,
    Completions,
    Responses,
}

impl StandIn {
    /// Starts a stand-in for Anthropic's API (`/v1/messages`). [`StandIn::url`] is for `ANTHROPIC_BASE_URL`.
    pub async fn anthropic(turns: impl IntoIterator<Item = StandInTurn>) -> io::Result<Self> {
        Self::start(Vendor::Anthropic, "", turns.into_iter().collect()).await
    }

    /// Starts a stand-in for OpenAI's API (`/v1/chat/completions`, `/v1/responses`). [`StandIn::url`] is for `OPENAI_BASE_URL`.
    pub async fn openai(turns: impl IntoIterator<Item = StandInTurn>) -> io::Result<Self> {
        Self::start(Vendor::Openai, "/v1", turns.into_iter().collect()).await
    }

    async fn start(vendor: Vendor, below: &str, turns: VecDeque<StandInTurn>) -> io::Result<Self> {
        let listener = TcpListener::bind(SocketAddr::from((Ipv4Addr::LOCALHOST, 0))).await?;
        let url = format!("http://{}{below}", listener.local_addr()?);
        let state = Arc::new(Mutex::new(StandInState { turns, ..StandInState::default() }));
        let task = tokio::spawn(serve(listener, vendor, state.clone())).abort_handle();
        Ok(Self { url, state, task })
    }

    /// Returns the address.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// Adds a turn at the end of the script.
    pub fn push(&self, turn: StandInTurn) {
        lock(&self.state).turns.push_back(turn);
    }

    /// Returns the number of turns of the script that are left.
    pub fn turns_left(&self) -> usize {
        lock(&self.state).turns.len()
    }

    /// Returns the number of answers that their clients left before the end.
    pub fn answers_dropped(&self) -> usize {
        lock(&self.state).answers_dropped
    }

    /// Returns all requests so far, in order. Requests that failed are included.
    pub fn requests(&self) -> Vec<StandInRequest> {
        lock(&self.state).requests.clone()
    }
}

impl Drop for StandIn {
    fn drop(&mut self) {
        self.task.abort();
    }
}

fn lock(state: &Mutex<StandInState>) -> MutexGuard<'_, StandInState> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
}

async fn serve(listener: TcpListener, vendor: Vendor, state: Arc<Mutex<StandInState>>) {
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            accepted = listener.accept() => match accepted {
                Ok((connection, _)) => drop(connections.spawn(talk(connection, vendor, state.clone()))),
                Err(_) => return,
            },
            Some(_) = connections.join_next() => {}
        }
    }
}

async fn talk(connection: TcpStream, vendor: Vendor, state: Arc<Mutex<StandInState>>) {
    let service = service_fn(|request| answer(request, vendor, state.clone()));
    let served =
        hyper::server::conn::http1::Builder::new().serve_connection(TokioIo::new(connection), service);
    if let Err(error) = served.await {
        tracing::debug!(%error, "a connection of a stand-in ended");
    }
}

async fn answer(
    request: Request<Incoming>,
    vendor: Vendor,
    state: Arc<Mutex<StandInState>>,
) -> Result<Response<AnswerBody>, Infallible> {
    let (head, body) = request.into_parts();
    let bytes = body.collect().await.map(http_body_util::Collected::to_bytes).unwrap_or_default();
    let asked = StandInRequest {
        method: head.method.to_string(),
        path: head.uri.path().to_owned(),
        headers: headers_of(&head.headers),
        body: serde_json::from_slice(&bytes).unwrap_or_default(),
    };
    lock(&state).requests.push(asked.clone());
    let api = match check(&asked, vendor) {
        Ok(api) => api,
        Err(failure) => return Ok(failure_response(failure)),
    };
    let next = lock(&state).turns.pop_front();
    let turn = next.unwrap_or_else(|| {
        StandInTurn::failure(400, "invalid_request_error", "the stand-in has no more turns")
    });
    let guard = OpenAnswer { state, is_whole: AtomicBool::new(false) };
    Ok(turn_response(turn, api, &asked.body["model"], guard))
}

/// The headers by their names. One that was sent twice has both values.
fn headers_of(headers: &HeaderMap) -> BTreeMap<String, String> {
    let mut by_name: BTreeMap<String, String> = BTreeMap::new();
    for (name, value) in headers {
        let value = String::from_utf8_lossy(value.as_bytes());
        let known = by_name.entry(name.to_string()).or_default();
        *known = if known.is_empty() { value.into_owned() } else { format!("{known}, {value}") };
    }
    by_name
}

/// Checks a request as the vendor would.
fn check(asked: &StandInRequest, vendor: Vendor) -> Result<VendorApi, StandInFailure> {
    let refuse =
        |status, kind, message| StandInTurn::failure(status, kind, message).failure.unwrap_or_else(none);
    let api = match (vendor, asked.method.as_str(), asked.path.as_str()) {
        (Vendor::Anthropic, "POST", "/v1/messages") => VendorApi::Messages,
        (Vendor::Openai, "POST", "/v1/chat/completions") => VendorApi::Completions,
        (Vendor::Openai, "POST", "/v1/responses") => VendorApi::Responses,
        _ => return Err(refuse(404, "not_found_error", "there is nothing at this path")),
    };
    let header = |name: &str| asked.headers.get(name).map(String::as_str).unwrap_or_default();
    let bearer = header("authorization").strip_prefix("Bearer ").is_some_and(|key| !key.is_empty());
    let has_key = match vendor {
        // Anthropic accepts keys in both headers. Its client sends the second one since version 1.0.
        Vendor::Anthropic => {
            !header("anthropic-version").is_empty() && (!header("x-api-key").is_empty() || bearer)
        }
        Vendor::Openai => bearer,
    };
    if !has_key {
        return Err(refuse(401, "authentication_error", "the key is missing"));
    }
    if asked.body["stream"] != true || !asked.body["model"].is_string() {
        return Err(refuse(400, "invalid_request_error", "this stand-in answers only streaming requests"));
    }
    if let Some(fault) = conversation::fault(&asked.body) {
        return Err(refuse(400, "invalid_request_error", &fault));
    }
    Ok(api)
}

fn none() -> StandInFailure {
    StandInFailure { status: 500, headers: Vec::new(), body: Value::Null }
}

fn failure_response(failure: StandInFailure) -> Response<AnswerBody> {
    let mut response = Response::builder().status(failure.status).header("content-type", "application/json");
    for (name, value) in failure.headers {
        response = response.header(name, value);
    }
    let body = Full::from(failure.body.to_string()).map_err(|never| match never {}).boxed_unsync();
    response.body(body).unwrap_or_default()
}

fn turn_response(
    turn: StandInTurn,
    api: VendorApi,
    model: &Value,
    guard: OpenAnswer,
) -> Response<AnswerBody> {
    if let Some(failure) = turn.failure {
        guard.is_whole.store(true, Ordering::Relaxed);
        return failure_response(failure);
    }
    let mut frames: Vec<io::Result<String>> = match &turn.ending {
        TurnEnding::Whole => make_frames(&turn, api, model).whole().into_iter().map(Ok).collect(),
        TurnEnding::Cut | TurnEnding::Unfinished | TurnEnding::Error(_) => {
            make_frames(&turn, api, model).half().into_iter().map(Ok).collect()
        }
    };
    match &turn.ending {
        TurnEnding::Whole | TurnEnding::Unfinished => {}
        // A body that fails closes its connection.
        TurnEnding::Cut => frames.push(Err(io::Error::from(io::ErrorKind::ConnectionReset))),
        TurnEnding::Error(error_type) => frames.push(Ok(error_frame(api, error_type))),
    }
    let delay = turn.frame_delay;
    let (last, guard) = (frames.len(), Arc::new(guard));
    let body = stream::iter(frames.into_iter().zip(1..)).then(move |(frame, number)| {
        let guard = Arc::clone(&guard);
        async move {
            // The pause sends each frame before the next one is made. Otherwise a failing body would lose earlier frames.
            tokio::time::sleep(delay.max(Duration::from_millis(1))).await;
            guard.is_whole.store(number == last, Ordering::Relaxed);
            frame.map(|frame| Frame::data(Bytes::from(frame)))
        }
    });
    let response = Response::builder().header("content-type", "text/event-stream");
    response.body(StreamBody::new(body).boxed_unsync()).unwrap_or_default()
}

fn make_frames(turn: &StandInTurn, api: VendorApi, model: &Value) -> FrameList {
    match api {
        VendorApi::Messages => anthropic::frames(turn, model),
        VendorApi::Completions => chat_completions::frames(turn, model),
        VendorApi::Responses => responses::frames(turn, model),
    }
}

fn error_frame(api: VendorApi, error_type: &str) -> String {
    match api {
        VendorApi::Messages => anthropic::error_frame(error_type),
        VendorApi::Completions => chat_completions::error_frame(error_type),
        VendorApi::Responses => responses::error_frame(error_type),
    }
}
