//! The transport to a provider: it sends a request and splits the answer into frames.
//!
//! Redirects are not followed, because they would carry the key to another server.

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
use crate::http::reason;
use crate::model::{ModelError, ModelErrorKind};

/// The most bytes of a whole answer.
const MAX_ANSWER_BYTES: usize = 64 << 20;
/// The most bytes of the body of a failure that are read.
const MAX_FAILURE_BYTES: usize = 64 << 10;

/// The HTTP clients of this process, by connect timeout. Models share their connections and the certificates of this machine,
/// which are read only once.
static CLIENTS: Mutex<BTreeMap<u64, Client>> = Mutex::new(BTreeMap::new());

/// The transport to a provider.
#[derive(Clone, Copy)]
pub(super) struct Transport {
    options: ModelOptions,
}

/// A request that is ready to send.
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

    /// The longest from a request to the beginning of its answer, and between two events of it.
    pub(super) fn answer_time(&self) -> Duration {
        Duration::from_millis(self.options.answer_timeout_ms)
    }

    /// Sends a request, and waits for the beginning of its answer.
    pub(super) async fn send(&self, request: WireRequest) -> Result<FrameStream, ModelError> {
        let sending = client(self.options.connect_timeout_ms)?.post(request.url).json(&request.body);
        // A header takes the place of one of its name, such as that of the address's password.
        let sending = sending.headers(request.headers);
        let answer = timeout(self.answer_time(), sending.send())
            .await
            .map_err(|_| ModelError::new(ModelErrorKind::Timeout, "the provider did not answer in time"))?
            .map_err(|error| failure::of_request(&error))?;
        let idle_time = Duration::from_millis(self.options.idle_timeout_ms);
        if answer.status().is_success() {
            Ok(frames(in_time(answer, idle_time), MAX_ANSWER_BYTES))
        } else {
            Err(failed(answer, idle_time).await)
        }
    }
}

/// Returns the client with this connect timeout.
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
        .map_err(|error| {
            let message = format!("no HTTP client can be made here: {}", reason(&error));
            ModelError::new(ModelErrorKind::Unreachable, message)
        })?;
    clients.insert(connect_timeout_ms, client.clone());
    Ok(client)
}

/// Returns the failure of an answer, from its status, its headers and the beginning of its body.
async fn failed(answer: Response, idle_time: Duration) -> ModelError {
    let (status, headers) = (answer.status(), answer.headers().clone());
    let body = beginning(in_time(answer, idle_time), idle_time).await;
    failure::of_status(status, &headers, &String::from_utf8_lossy(&body))
}

/// The beginning of a body, as far as it comes in this time.
async fn beginning(pieces: impl Stream<Item = Result<Bytes, ModelError>>, time: Duration) -> Vec<u8> {
    let mut body = Vec::new();
    let mut pieces = std::pin::pin!(pieces);
    let reading = async {
        while let Some(Ok(piece)) = pieces.next().await {
            body.extend_from_slice(&piece);
            if body.len() >= MAX_FAILURE_BYTES {
                body.truncate(MAX_FAILURE_BYTES);
                break;
            }
        }
    };
    // What came by then says enough.
    drop(timeout(time, reading).await);
    body
}

/// The frames of an answer, which has at most so many bytes.
fn frames(
    pieces: impl Stream<Item = Result<Bytes, ModelError>> + Send + 'static,
    most_bytes: usize,
) -> FrameStream {
    let too_long = || {
        let message = format!("the model's answer has a piece of more than {MAX_EVENT_BYTES} bytes");
        ModelError::new(ModelErrorKind::Malformed, message)
    };
    let mut bytes = 0;
    let pieces = pieces.map(move |piece| {
        let piece = piece?;
        bytes += piece.len();
        if bytes > most_bytes {
            let message = format!("the model's answer has more than {most_bytes} bytes");
            return Err(ModelError::new(ModelErrorKind::Malformed, message));
        }
        Ok(piece)
    });
    read_events(pieces, too_long).map_ok(frame).boxed()
}

/// Returns the body of an answer. A pause that is longer than `idle_time` ends it with a failure.
fn in_time(answer: Response, idle_time: Duration) -> impl Stream<Item = Result<Bytes, ModelError>> {
    stream::unfold(Some(answer), move |answer| async move {
        let mut answer = answer?;
        match timeout(idle_time, answer.chunk()).await {
            Ok(Ok(Some(piece))) => Some((Ok(piece), Some(answer))),
            Ok(Ok(None)) => None,
            Ok(Err(error)) => Some((Err(failure::of_request(&error)), None)),
            Err(_) => {
                let late = "the model's answer stopped for too long";
                Some((Err(ModelError::new(ModelErrorKind::Timeout, late)), None))
            }
        }
    })
}

fn frame(event: Sse) -> StreamFrame {
    StreamFrame { event: event.event, data: event.data.unwrap_or_default() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn an_answer_without_an_end_is_given_up() {
        let pieces = stream::repeat_with(|| Ok(Bytes::from("data: x\n\n".repeat(128))));
        let frames = frames(pieces, 1 << 20).take(1 << 18);
        let failure = frames.filter_map(|frame| std::future::ready(frame.err())).boxed().next().await;
        assert_eq!(failure.unwrap().kind, ModelErrorKind::Malformed);
    }

    #[tokio::test(start_paused = true)]
    async fn the_body_of_a_failure_is_not_waited_for_without_an_end() {
        let second = Duration::from_secs(1);
        let slow = stream::repeat_with(|| Ok(Bytes::from("x"))).then(async |piece| {
            tokio::time::sleep(Duration::from_secs(1)).await;
            piece
        });
        assert_eq!(beginning(slow, second * 60 + second / 2).await.len(), 60);
    }
}
