//! The way to a provider: a request is sent, and its answer is cut into frames.
//!
//! No redirect is followed: it would carry the key to another server.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use futures_util::stream::{self, BoxStream};
use futures_util::{Stream, StreamExt, TryStreamExt};
use reqwest::header::HeaderMap;
use reqwest::redirect::Policy;
use reqwest::{Client, Response, Url};
use serde_json::Value;
use sse_stream::Sse;
use tokio::time::timeout;

use super::decode::StreamFrame;
use super::failure;
use super::options::ModelOptions;
use crate::event_reader::{MAX_EVENT_BYTES, read_events};
use crate::model::{ModelError, ModelErrorKind};

/// The most bytes of the body of a failure that are read.
const MAX_FAILURE_BYTES: usize = 64 << 10;

/// The clients of this process by their connect timeouts: models share their connections and the certificates of this machine,
/// which are read once.
static CLIENTS: Mutex<BTreeMap<u64, Client>> = Mutex::new(BTreeMap::new());

/// The way to a provider.
#[derive(Clone, Copy)]
pub(super) struct Transport {
    options: ModelOptions,
}

/// A request that is ready to be sent.
pub(super) struct WireRequest {
    pub(super) url: Url,
    pub(super) headers: HeaderMap,
    pub(super) body: Value,
}

/// The frames of an answer. Dropping it ends the request.
pub(super) type FrameStream = BoxStream<'static, Result<StreamFrame, ModelError>>;

impl Transport {
    pub(super) fn new(options: ModelOptions) -> Self {
        Self { options }
    }

    /// Sends a request, and waits for the beginning of its answer.
    pub(super) async fn send(&self, request: WireRequest) -> Result<FrameStream, ModelError> {
        let sending = client(self.options.connect_timeout_ms)?.post(request.url).json(&request.body);
        // A header takes the place of one of its name, such as that of the address's password.
        let sending = sending.headers(request.headers);
        let answer_time = Duration::from_millis(self.options.answer_timeout_ms);
        let answer = timeout(answer_time, sending.send())
            .await
            .map_err(|_| ModelError::new(ModelErrorKind::Timeout, "the provider did not answer in time"))?
            .map_err(|error| failure::of_request(&error))?;
        let idle_time = Duration::from_millis(self.options.idle_timeout_ms);
        if answer.status().is_success() {
            Ok(frames(answer, idle_time))
        } else {
            Err(failed(answer, idle_time).await)
        }
    }
}

/// The client with this connect timeout.
fn client(connect_timeout_ms: u64) -> Result<Client, ModelError> {
    let mut clients = CLIENTS.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(client) = clients.get(&connect_timeout_ms) {
        return Ok(client.clone());
    }
    let client = Client::builder()
        .connect_timeout(Duration::from_millis(connect_timeout_ms))
        .redirect(Policy::none())
        .user_agent(concat!("eyot/", env!("CARGO_PKG_VERSION")))
        .build()
        .map_err(|_| ModelError::new(ModelErrorKind::Unreachable, "no HTTP client can be made here"))?;
    clients.insert(connect_timeout_ms, client.clone());
    Ok(client)
}

/// The failure that an answer tells of: its status, its headers, and the beginning of its body.
async fn failed(answer: Response, idle_time: Duration) -> ModelError {
    let (status, headers) = (answer.status(), answer.headers().clone());
    let mut body = Vec::new();
    let mut pieces = std::pin::pin!(in_time(answer, idle_time));
    while let Some(Ok(piece)) = pieces.next().await {
        body.extend_from_slice(&piece);
        if body.len() >= MAX_FAILURE_BYTES {
            body.truncate(MAX_FAILURE_BYTES);
            break;
        }
    }
    failure::of_status(status, &headers, &String::from_utf8_lossy(&body))
}

/// The frames of an answer, which may not stand still for longer than this.
fn frames(answer: Response, idle_time: Duration) -> FrameStream {
    let too_long = || {
        let message = format!("the model's answer has a piece of more than {MAX_EVENT_BYTES} bytes");
        ModelError::new(ModelErrorKind::Malformed, message)
    };
    read_events(in_time(answer, idle_time), too_long).map_ok(frame).boxed()
}

/// The body of an answer. If it stands still for longer than this, a failure is the end of it.
fn in_time(answer: Response, idle_time: Duration) -> impl Stream<Item = Result<Bytes, ModelError>> {
    stream::unfold(Some(answer), move |answer| async move {
        let mut answer = answer?;
        match timeout(idle_time, answer.chunk()).await {
            Ok(Ok(Some(piece))) => Some((Ok(piece), Some(answer))),
            Ok(Ok(None)) => None,
            Ok(Err(error)) => Some((Err(failure::of_request(&error)), None)),
            Err(_) => {
                let late = "the model's answer did not go on in time";
                Some((Err(ModelError::new(ModelErrorKind::Timeout, late)), None))
            }
        }
    })
}

fn frame(event: Sse) -> StreamFrame {
    StreamFrame { event: event.event, data: event.data.unwrap_or_default() }
}
