//! Requests to an MCP server. Their errors, logs and `Debug` output contain no secrets.

use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use eyot::{Error, ErrorKind};
use futures_util::StreamExt;
use reqwest::header::{ACCEPT, CONTENT_TYPE, HeaderMap, LOCATION};
use reqwest::redirect::{Action, Attempt, Policy};
use reqwest::{Method, RequestBuilder, Response, StatusCode, Url};
use rmcp::model::ClientJsonRpcMessage;
use sse_stream::Sse;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::events::{EventStream, events_of};
use super::failure::{HttpFailure, MAX_MESSAGE_BYTES};
use super::questions::{AnswerGuard, PendingRequests};
use super::secrets::ConnectionSecrets;
use crate::http::shown_url;

/// The most bytes of a refusal that are read.
const MAX_REFUSAL_BYTES: usize = 64 << 10;
/// The most characters of a refusal that are shown.
const MAX_SAID_CHARS: usize = 200;
/// The most redirects that are followed.
const MAX_REDIRECTS: usize = 5;

/// The time between the openings of two streams of notifications.
const BETWEEN_STREAMS: Duration = Duration::from_secs(1);
/// The bounds of the wait that a server may ask for, in milliseconds.
const MIN_RETRY_MS: u64 = 1_000;
const MAX_RETRY_MS: u64 = 60_000;

pub(super) const JSON: &str = "application/json";
pub(super) const EVENTS: &str = "text/event-stream";

/// The HTTP client of one connection to a server. Clones share its state.
#[derive(Clone)]
pub(super) struct McpHttpClient {
    client: reqwest::Client,
    /// The url with its secrets. It is never passed on.
    url: Url,
    secrets: ConnectionSecrets,
    /// Ends everything that waits for the server.
    stop: CancellationToken,
    last_failure: Arc<Mutex<Option<HttpFailure>>>,
    /// Set once the server no longer knows the session.
    is_forgotten: Arc<AtomicBool>,
    waiting: PendingRequests,
    /// The time from which on another stream of notifications may be opened.
    next_stream: Arc<Mutex<Option<Instant>>>,
}

/// The type of an answer's content.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum AnswerType {
    Json,
    Events,
    Other(String),
}

impl McpHttpClient {
    /// Creates a client. Nothing is sent yet.
    pub(super) fn new(
        url: Url,
        headers: HeaderMap,
        secrets: ConnectionSecrets,
        stop: CancellationToken,
    ) -> eyot::Result<Self> {
        let client = reqwest::Client::builder()
            .user_agent(concat!("eyot/", env!("CARGO_PKG_VERSION")))
            .default_headers(headers)
            .redirect(Policy::custom(follow_within_origin))
            .build()
            .map_err(|_| Error::new(ErrorKind::Internal, "make an HTTP client"))?;
        Ok(Self {
            client,
            url,
            secrets,
            stop,
            last_failure: Arc::default(),
            is_forgotten: Arc::default(),
            waiting: PendingRequests::default(),
            next_stream: Arc::default(),
        })
    }

    /// Returns the url of the endpoint.
    pub(super) fn url(&self) -> &Url {
        &self.url
    }

    /// Records that the server no longer knows the session.
    pub(super) fn forget_session(&self) {
        self.is_forgotten.store(true, Ordering::Relaxed);
    }

    /// Returns whether the server no longer knows the session.
    pub(super) fn is_forgotten(&self) -> bool {
        self.is_forgotten.load(Ordering::Relaxed)
    }

    /// Returns the last failure and forgets it.
    pub(super) fn take_failure(&self) -> Option<HttpFailure> {
        self.last_failure.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    /// Forgets a failure that was told: it is not the reason of a later end.
    pub(super) fn forget(&self, told: &HttpFailure) {
        let mut last = self.last_failure.lock().unwrap_or_else(PoisonError::into_inner);
        last.take_if(|last| last == told);
    }

    /// Remembers a failure for callers that only see the connection end.
    pub(super) fn note(&self, failure: HttpFailure) -> HttpFailure {
        tracing::debug!(%failure, "an MCP server failed");
        *self.last_failure.lock().unwrap_or_else(PoisonError::into_inner) = Some(failure.clone());
        failure
    }

    /// Creates a request with the connection's headers.
    pub(super) fn request(&self, method: Method, url: Url, accept: &str) -> RequestBuilder {
        self.client.request(method, url).header(ACCEPT, accept)
    }

    /// Creates a request that sends a message to the server.
    pub(super) fn message(&self, url: Url, accept: &str, json: Vec<u8>) -> RequestBuilder {
        self.request(Method::POST, url, accept).header(CONTENT_TYPE, JSON).body(json)
    }

    /// Sends a request and waits for the head of its answer, whatever its status.
    pub(super) async fn send(&self, request: RequestBuilder) -> Result<Response, HttpFailure> {
        let answered = tokio::select! {
            () = self.stop.cancelled() => return Err(HttpFailure::Stopped),
            answered = request.send() => answered,
        };
        answered.map_err(|error| self.note(HttpFailure::of_request(&error)))
    }

    /// Waits until another stream of notifications may be opened: rmcp opens one again as soon as it breaks, without an end.
    pub(super) async fn stream_turn(&self) -> Result<(), HttpFailure> {
        let turn = {
            let mut next = self.next_stream.lock().unwrap_or_else(PoisonError::into_inner);
            let now = Instant::now();
            let turn = next.map_or(now, |next| next.max(now));
            *next = Some(turn + BETWEEN_STREAMS);
            turn
        };
        tokio::select! {
            () = self.stop.cancelled() => Err(HttpFailure::Stopped),
            () = tokio::time::sleep_until(turn) => Ok(()),
        }
    }

    /// Opens a stream of events at the endpoint.
    pub(super) async fn open_events(&self) -> Result<EventStream, HttpFailure> {
        let response = self.send(self.request(Method::GET, self.url.clone(), EVENTS)).await?;
        if !response.status().is_success() {
            return Err(self.refusal(response).await.0);
        }
        match answer_type(&response) {
            AnswerType::Events => Ok(self.events(response)),
            AnswerType::Json => Err(self.note(HttpFailure::ForeignContent(JSON.to_owned()))),
            AnswerType::Other(found) => Err(self.note(HttpFailure::ForeignContent(found))),
        }
    }

    /// Reads an answer as events, in which credentials are hidden.
    pub(super) fn events(&self, response: Response) -> EventStream {
        let client = self.clone();
        events_of(response, self.stop.clone()).map(move |event| client.event(event)).boxed()
    }

    fn event(&self, event: Result<Sse, sse_stream::Error>) -> Result<Sse, sse_stream::Error> {
        let counted = event.and_then(|event| {
            let data = event.data.map(|data| self.secrets.hide_credentials(data));
            self.waiting
                .count(data.as_deref().unwrap_or_default())
                .map_err(|failure| sse_stream::Error::Body(Box::new(failure)))?;
            // rmcp waits for as long as the server says, which may be no time at all.
            let retry = event.retry.map(|wait_ms| wait_ms.clamp(MIN_RETRY_MS, MAX_RETRY_MS));
            Ok(Sse { data, retry, ..event })
        });
        counted.inspect_err(|error| drop(self.note(HttpFailure::of_events(error))))
    }

    /// Returns a guard to hold while a message is sent, if the message answers a request of the server.
    pub(super) fn answering(&self, message: &ClientJsonRpcMessage) -> Option<AnswerGuard> {
        let answers = matches!(message, ClientJsonRpcMessage::Response(_) | ClientJsonRpcMessage::Error(_));
        answers.then(|| self.waiting.answer())
    }

    /// Reads an answer to its end and hides credentials in it.
    pub(super) async fn body(&self, response: Response) -> Result<String, HttpFailure> {
        let body =
            self.bounded_body(response, MAX_MESSAGE_BYTES).await.map_err(|failure| self.note(failure))?;
        let body = String::from_utf8(body).map_err(|_| self.note(HttpFailure::Garbage))?;
        Ok(self.secrets.hide_credentials(body))
    }

    async fn bounded_body(&self, mut response: Response, max_bytes: usize) -> Result<Vec<u8>, HttpFailure> {
        let mut body = Vec::new();
        loop {
            let chunk = tokio::select! {
                () = self.stop.cancelled() => return Err(HttpFailure::Stopped),
                chunk = response.chunk() => chunk.map_err(|error| HttpFailure::of_body(&error))?,
            };
            let Some(chunk) = chunk else { return Ok(body) };
            if body.len() + chunk.len() > max_bytes {
                return Err(HttpFailure::TooLarge);
            }
            body.extend_from_slice(&chunk);
        }
    }

    /// Returns the failure of an unsuccessful answer, and the body of the answer.
    pub(super) async fn refusal(&self, response: Response) -> (HttpFailure, String) {
        let status = response.status();
        if status.is_redirection() {
            return (self.note(HttpFailure::Redirect(self.redirect_target(&response))), String::new());
        }
        let shows_body = is_readable(&response);
        let body = self.bounded_body(response, MAX_REFUSAL_BYTES).await.unwrap_or_default();
        let body = self.secrets.hide(&String::from_utf8_lossy(&body));
        let said = if shows_body { Self::beginning(&body) } else { None };
        (self.note(HttpFailure::Refused { status: status.as_u16(), said }), body)
    }

    fn redirect_target(&self, response: &Response) -> String {
        let location = response.headers().get(LOCATION).and_then(|location| location.to_str().ok());
        let target = location.and_then(|location| response.url().join(location).ok());
        target.map_or_else(|| "nowhere".to_owned(), |url| self.secrets.hide(&shown_url(&url)))
    }

    /// Returns the beginning of a server's text, on one line.
    fn beginning(body: &str) -> Option<String> {
        let words: Vec<&str> = body.split_whitespace().collect();
        let line: String = words.join(" ").chars().filter(|letter| !letter.is_control()).collect();
        let mut beginning: String = line.chars().take(MAX_SAID_CHARS).collect();
        if beginning.len() < line.len() {
            beginning.push('…');
        }
        (!beginning.is_empty()).then_some(beginning)
    }
}

impl fmt::Debug for McpHttpClient {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("McpHttpClient").field("url", &shown_url(&self.url)).finish_non_exhaustive()
    }
}

/// Returns the type of an answer's content.
pub(super) fn answer_type(response: &Response) -> AnswerType {
    let Some(found) = response.headers().get(CONTENT_TYPE).and_then(|found| found.to_str().ok()) else {
        return AnswerType::Other("content of no type".to_owned());
    };
    let essence = found.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    match essence.as_str() {
        JSON => AnswerType::Json,
        EVENTS => AnswerType::Events,
        other => AnswerType::Other(format!("`{}`", other.chars().take(MAX_SAID_CHARS).collect::<String>())),
    }
}

fn is_readable(response: &Response) -> bool {
    match answer_type(response) {
        AnswerType::Json => true,
        AnswerType::Other(found) => found == "`text/plain`",
        AnswerType::Events => false,
    }
}

/// Follows redirects that keep the method, the body and the server. Another server must not get the headers.
fn follow_within_origin(attempt: Attempt<'_>) -> Action {
    let keeps_method =
        matches!(attempt.status(), StatusCode::TEMPORARY_REDIRECT | StatusCode::PERMANENT_REDIRECT);
    let origin = attempt.previous().first().map(Url::origin);
    let stays = origin == Some(attempt.url().origin()) && attempt.previous().len() <= MAX_REDIRECTS;
    if keeps_method && stays { attempt.follow() } else { attempt.stop() }
}
