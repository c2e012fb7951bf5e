//! The way to a provider: genai sends the request and cuts its answer into frames.
//!
//! The body, the address and the headers are ours, and so is the reading of frames: genai is given a request of one word, over
//! which `extra_body` puts each field of the real one, and a sink that it hands each frame before it reads it itself.
//! What genai does is the connection, the status and headers of a failure, timeouts, and the framing of the stream.

use std::collections::{BTreeMap, VecDeque};
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;

use futures_util::Stream;
use genai::adapter::AdapterKind;
use genai::chat::{ChatFrameSink, ChatOptions, ChatRequest, ChatStream, FrameCtx, RawFrameRef};
use genai::resolver::{AuthData, Endpoint};
use genai::{Headers, ModelIden, ServiceTarget};
use serde_json::Value;
use tracing::dispatcher::{self, Dispatch};

use super::decode::StreamFrame;
use super::failure;
use super::options::ModelOptions;
use crate::model::{ModelApi, ModelError, ModelErrorKind};

/// The clients of this process by their connect timeouts: models share their connections and the certificates of this machine,
/// which are read once.
static CLIENTS: Mutex<BTreeMap<u64, genai::Client>> = Mutex::new(BTreeMap::new());

/// The way to a provider.
#[derive(Clone, Copy)]
pub(super) struct Transport {
    options: ModelOptions,
}

/// A request that is ready to be sent.
pub(super) struct WireRequest {
    pub(super) api: ModelApi,
    pub(super) url: String,
    pub(super) headers: Vec<(String, String)>,
    pub(super) body: Value,
}

impl Transport {
    pub(super) fn new(options: ModelOptions) -> Self {
        Self { options }
    }

    /// Prepares a request. It is sent when its frames are asked for.
    pub(super) async fn send(&self, request: WireRequest) -> Result<FrameStream, ModelError> {
        let frames = Arc::new(FrameQueue::default());
        let options = ChatOptions::default()
            .with_extra_body(request.body)
            .with_raw_frame_sink_arc(frames.clone())
            .with_stream_header_timeout(Duration::from_millis(self.options.answer_timeout_ms))
            .with_stream_read_timeout(Duration::from_millis(self.options.idle_timeout_ms));
        let target = ServiceTarget {
            // Not used: the address is that of the override.
            endpoint: Endpoint::from_static("http://127.0.0.1/"),
            auth: AuthData::RequestOverride { url: request.url, headers: Headers::from(request.headers) },
            // No name that genai knows something about: it would add fields of its own.
            model: ModelIden::new(adapter(request.api), "model"),
        };
        let client = client(self.options.connect_timeout_ms)?;
        let sent = client.exec_chat_stream(target, ChatRequest::from_user("-"), Some(&options)).await;
        match sent {
            Ok(answer) => Ok(FrameStream { stream: Some(answer.stream), frames, ending: None }),
            Err(failure) => Err(failure::of_transport(&failure)
                .unwrap_or_else(|| ModelError::new(ModelErrorKind::Invalid, "the request can't be sent"))),
        }
    }
}

/// The client with this connect timeout.
fn client(connect_timeout_ms: u64) -> Result<genai::Client, ModelError> {
    let mut clients = CLIENTS.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(client) = clients.get(&connect_timeout_ms) {
        return Ok(client.clone());
    }
    let none = || ModelError::new(ModelErrorKind::Unreachable, "no HTTP client can be made here");
    let http = reqwest::Client::builder()
        .connect_timeout(Duration::from_millis(connect_timeout_ms))
        .user_agent(concat!("eyot/", env!("CARGO_PKG_VERSION")))
        .build()
        .map_err(|_| none())?;
    let client = genai::Client::builder().with_reqwest(http).build().map_err(|_| none())?;
    clients.insert(connect_timeout_ms, client.clone());
    Ok(client)
}

fn adapter(api: ModelApi) -> AdapterKind {
    match api {
        ModelApi::AnthropicMessages => AdapterKind::Anthropic,
        ModelApi::OpenaiResponses => AdapterKind::OpenAIResp,
        ModelApi::OpenaiCompletions | ModelApi::InProcess => AdapterKind::OpenAI,
    }
}

/// Keeps the frames that genai hands over until they are asked for.
#[derive(Default)]
struct FrameQueue(Mutex<VecDeque<StreamFrame>>);

impl FrameQueue {
    fn pop(&self) -> Option<StreamFrame> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).pop_front()
    }

    fn is_empty(&self) -> bool {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).is_empty()
    }
}

impl ChatFrameSink for FrameQueue {
    fn on_frame(&self, _: &FrameCtx, frame: RawFrameRef<'_>) {
        let frame = StreamFrame { event: frame.event.map(str::to_owned), data: frame.data.to_owned() };
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push_back(frame);
    }
}

/// The frames of an answer. Dropping it ends the request.
pub(super) struct FrameStream {
    /// `None`: it has ended.
    stream: Option<ChatStream>,
    frames: Arc<FrameQueue>,
    /// The failure with which it ended, until it is told.
    ending: Option<ModelError>,
}

impl Stream for FrameStream {
    type Item = Result<StreamFrame, ModelError>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        loop {
            if let Some(frame) = self.frames.pop() {
                return Poll::Ready(Some(Ok(frame)));
            }
            let Some(stream) = &mut self.stream else {
                return Poll::Ready(self.ending.take().map(Err));
            };
            match poll_silently(stream, cx) {
                Poll::Ready(Some(Ok(_))) => {}
                Poll::Ready(Some(Err(failure))) => {
                    if let Some(failure) = failure::of_transport(&failure) {
                        self.stream = None;
                        self.ending = Some(failure);
                    }
                }
                Poll::Ready(None) => self.stream = None,
                Poll::Pending if self.frames.is_empty() => return Poll::Pending,
                Poll::Pending => {}
            }
        }
    }
}

/// Polls genai without its log: it logs the bodies of errors, in which a provider may repeat the key.
fn poll_silently(
    stream: &mut ChatStream,
    cx: &mut Context<'_>,
) -> Poll<Option<genai::Result<genai::chat::ChatStreamEvent>>> {
    dispatcher::with_default(&Dispatch::none(), || Pin::new(stream).poll_next(cx))
}
