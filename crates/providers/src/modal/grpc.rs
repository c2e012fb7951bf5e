//! gRPC calls over HTTP/2: one message there, one or many back, and a status.

use std::time::Duration;

use bytes::{Buf, BufMut, Bytes, BytesMut};
use h2::RecvStream;
use h2::client::ResponseFuture;
use http::{HeaderMap, HeaderName, HeaderValue, Method, Request, StatusCode};
use prost::Message;

use super::connection::{CallSlot, Connections};
use super::status::GrpcFailure;

/// The flag and the length before each message.
const HEADER_BYTES: usize = 5;
/// The largest message that is read, in bytes. A page of a list has the tags of some hundred sandboxes.
const MAX_MESSAGE_BYTES: usize = 16 << 20;
/// The longest wait for an answer.
pub(super) const PATIENCE: Duration = Duration::from_secs(60);

/// The headers that a call has beside gRPC's own.
pub(super) type Metadata = Vec<(HeaderName, HeaderValue)>;

/// The answer to a call, message by message.
pub(super) struct GrpcStream {
    answer: Answer,
    read: BytesMut,
    _slot: CallSlot,
}

enum Answer {
    Awaited(ResponseFuture),
    Begun(RecvStream),
}

impl Connections {
    /// Sends a call, and returns its answer, which may not have begun.
    pub async fn open(
        &self,
        path: &str,
        metadata: &Metadata,
        message: &impl Message,
    ) -> Result<GrpcStream, GrpcFailure> {
        let mut slot = self.slot().await.map_err(GrpcFailure::Unsent)?;
        let uri = format!("{}://{}{path}", self.address.scheme, self.address.authority());
        let mut request = Request::builder().method(Method::POST).uri(uri);
        for (name, value) in [
            ("te", "trailers"),
            ("content-type", "application/grpc+proto"),
            ("user-agent", concat!("eyot/", env!("CARGO_PKG_VERSION"))),
        ] {
            request = request.header(name, value);
        }
        for (name, value) in metadata {
            request = request.header(name, value);
        }
        let request = request.body(()).map_err(|error| GrpcFailure::Unsent(error.to_string()))?;
        let (response, mut body) = slot
            .sender
            .send_request(request, false)
            .map_err(|error| GrpcFailure::Unsent(error.to_string()))?;
        let mut framed = framed(message);
        // The message goes as the server takes it: an h2 stream of its own would keep all of it.
        while !framed.is_empty() {
            body.reserve_capacity(framed.len());
            let ready = std::future::poll_fn(|context| body.poll_capacity(context)).await;
            match ready {
                Some(Ok(0)) => {}
                Some(Ok(size)) => {
                    let piece = framed.split_to(size.min(framed.len()));
                    let is_last = framed.is_empty();
                    body.send_data(piece, is_last).map_err(lost)?;
                }
                // The server may have answered before it has read everything.
                Some(Err(_)) | None => break,
            }
        }
        Ok(GrpcStream { answer: Answer::Awaited(response), read: BytesMut::new(), _slot: slot })
    }

    /// Makes a call with one answer.
    pub async fn unary<T: Message + Default>(
        &self,
        path: &str,
        metadata: &Metadata,
        message: &impl Message,
        patience: Duration,
    ) -> Result<T, GrpcFailure> {
        let answered = async {
            let mut stream = self.open(path, metadata, message).await?;
            let answer = stream.next::<T>().await?;
            let answer = answer.ok_or_else(|| GrpcFailure::Lost("the answer is empty".to_owned()))?;
            match stream.next::<T>().await? {
                None => Ok(answer),
                Some(_) => Err(GrpcFailure::Lost("there are two answers".to_owned())),
            }
        };
        let late = |_| GrpcFailure::Lost(format!("no answer within {} s", patience.as_secs()));
        tokio::time::timeout(patience, answered).await.map_err(late)?
    }
}

impl GrpcStream {
    /// Waits for the next message; `None`: the call has ended well. It may be dropped while it waits: nothing is lost.
    pub async fn next<T: Message + Default>(&mut self) -> Result<Option<T>, GrpcFailure> {
        loop {
            if let Some(message) = self.take()? {
                let unreadable = |error: prost::DecodeError| GrpcFailure::Lost(error.to_string());
                return T::decode(message).map(Some).map_err(unreadable);
            }
            let body = match &mut self.answer {
                Answer::Begun(body) => body,
                Answer::Awaited(response) => {
                    let (head, body) = response.await.map_err(lost)?.into_parts();
                    check(head.status, &head.headers)?;
                    if body.is_end_stream() {
                        // The status came in place of an answer.
                        return GrpcFailure::of_trailers(&head.headers).map_or(Ok(None), Err);
                    }
                    self.answer = Answer::Begun(body);
                    continue;
                }
            };
            match body.data().await {
                Some(Ok(bytes)) => {
                    body.flow_control().release_capacity(bytes.len()).map_err(lost)?;
                    self.read.extend_from_slice(&bytes);
                }
                Some(Err(error)) => return Err(lost(error)),
                None => {
                    let trailers = body.trailers().await.map_err(lost)?;
                    let trailers = trailers.unwrap_or_default();
                    if let Some(failure) = GrpcFailure::of_trailers(&trailers) {
                        return Err(failure);
                    }
                    return if self.read.is_empty() {
                        Ok(None)
                    } else {
                        Err(GrpcFailure::Lost("the answer ends within a message".to_owned()))
                    };
                }
            }
        }
    }

    /// Takes a whole message out of what was read.
    fn take(&mut self) -> Result<Option<Bytes>, GrpcFailure> {
        let Some(header) = self.read.get(..HEADER_BYTES) else { return Ok(None) };
        if header[0] != 0 {
            return Err(GrpcFailure::Lost("the answer is compressed, which was not asked for".to_owned()));
        }
        let length = header[1..].iter().fold(0_usize, |length, byte| length << 8 | usize::from(*byte));
        if length > MAX_MESSAGE_BYTES {
            return Err(GrpcFailure::Lost(format!("a message is longer than {MAX_MESSAGE_BYTES} bytes")));
        }
        if self.read.len() < HEADER_BYTES + length {
            return Ok(None);
        }
        self.read.advance(HEADER_BYTES);
        Ok(Some(self.read.split_to(length).freeze()))
    }
}

fn check(status: StatusCode, headers: &HeaderMap) -> Result<(), GrpcFailure> {
    let kind = headers.get("content-type").and_then(|value| value.to_str().ok()).unwrap_or_default();
    if status != StatusCode::OK || !kind.starts_with("application/grpc") {
        return Err(GrpcFailure::of_http(status, headers));
    }
    Ok(())
}

fn lost(error: h2::Error) -> GrpcFailure {
    let is_unsent = error.reason() == Some(h2::Reason::REFUSED_STREAM);
    if is_unsent { GrpcFailure::Unsent(error.to_string()) } else { GrpcFailure::Lost(error.to_string()) }
}

/// Puts a message behind its length.
fn framed(message: &impl Message) -> Bytes {
    let length = message.encoded_len();
    let mut framed = BytesMut::with_capacity(HEADER_BYTES + length);
    framed.put_u8(0);
    // A message of ours is far shorter than one may be.
    framed.put_u32(u32::try_from(length).unwrap_or(u32::MAX));
    framed.extend_from_slice(&message.encode_to_vec());
    framed.freeze()
}
