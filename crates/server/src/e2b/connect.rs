//! The Connect protocol with JSON: one message each way, or a stream of messages in envelopes.

use axum::Json;
use axum::body::Body;
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};
use bytes::{Buf, BufMut, Bytes, BytesMut};
use eyot::ErrorKind;
use futures_util::{Stream, StreamExt};
use serde::Serialize;
use serde_json::{Value, json};

use super::MAX_JSON_BYTES;

/// The flag of the envelope that ends a stream.
const END_STREAM: u8 = 0b10;
/// The flags and the length before each message.
const HEADER_BYTES: usize = 5;
const STREAM_TYPE: &str = "application/connect+json";

/// A failed call, by Connect's codes.
#[derive(Debug, Clone)]
pub(super) struct RpcError {
    pub code: Code,
    pub message: String,
}

/// The codes of Connect that are used here.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Code {
    InvalidArgument,
    NotFound,
    AlreadyExists,
    PermissionDenied,
    Unimplemented,
    ResourceExhausted,
    Unavailable,
    Internal,
}

impl Code {
    fn name(self) -> &'static str {
        match self {
            Self::InvalidArgument => "invalid_argument",
            Self::NotFound => "not_found",
            Self::AlreadyExists => "already_exists",
            Self::PermissionDenied => "permission_denied",
            Self::Unimplemented => "unimplemented",
            Self::ResourceExhausted => "resource_exhausted",
            Self::Unavailable => "unavailable",
            Self::Internal => "internal",
        }
    }

    fn status(self) -> StatusCode {
        match self {
            Self::InvalidArgument => StatusCode::BAD_REQUEST,
            Self::NotFound => StatusCode::NOT_FOUND,
            Self::AlreadyExists => StatusCode::CONFLICT,
            Self::PermissionDenied => StatusCode::FORBIDDEN,
            Self::Unimplemented => StatusCode::NOT_IMPLEMENTED,
            Self::ResourceExhausted => StatusCode::TOO_MANY_REQUESTS,
            Self::Unavailable => StatusCode::SERVICE_UNAVAILABLE,
            Self::Internal => StatusCode::INTERNAL_SERVER_ERROR,
        }
    }
}

impl RpcError {
    pub fn new(code: Code, message: impl Into<String>) -> Self {
        Self { code, message: message.into() }
    }

    fn to_json(&self) -> Value {
        json!({ "code": self.code.name(), "message": self.message })
    }
}

impl From<eyot::Error> for RpcError {
    fn from(error: eyot::Error) -> Self {
        let code = match error.kind() {
            ErrorKind::Invalid | ErrorKind::IsDirectory | ErrorKind::NotDirectory => Code::InvalidArgument,
            ErrorKind::NotFound => Code::NotFound,
            ErrorKind::AlreadyExists => Code::AlreadyExists,
            ErrorKind::Permission => Code::PermissionDenied,
            ErrorKind::Unsupported => Code::Unimplemented,
            ErrorKind::Quota => Code::ResourceExhausted,
            ErrorKind::Destroyed | ErrorKind::Unavailable => Code::Unavailable,
            _ => Code::Internal,
        };
        Self::new(code, error.to_string())
    }
}

impl IntoResponse for RpcError {
    fn into_response(self) -> Response {
        (self.code.status(), Json(self.to_json())).into_response()
    }
}

/// Returns a call's answer, without a stream.
pub(super) fn answer<T: Serialize>(answer: T) -> Response {
    Json(answer).into_response()
}

/// Returns a stream of messages. An error ends it.
pub(super) fn stream<T: Serialize + Send + 'static>(
    messages: impl Stream<Item = Result<T, RpcError>> + Send + 'static,
) -> Response {
    let ended = futures_util::stream::once(async { None });
    let frames = messages.map(Some).chain(ended).scan(false, |is_over, message| {
        let frame = match message {
            _ if *is_over => None,
            Some(Ok(message)) => Some(message_frame(&message)),
            Some(Err(error)) => {
                *is_over = true;
                Some(envelope(END_STREAM, &json!({ "error": error.to_json() })))
            }
            None => Some(envelope(END_STREAM, &json!({}))),
        };
        std::future::ready(frame.map(Ok::<_, std::io::Error>))
    });
    ([(header::CONTENT_TYPE, STREAM_TYPE)], Body::from_stream(frames)).into_response()
}

fn message_frame<T: Serialize>(message: &T) -> Bytes {
    match serde_json::to_value(message) {
        Ok(value) => envelope(0, &value),
        Err(error) => {
            let error = RpcError::new(Code::Internal, format!("write a message: {error}"));
            envelope(END_STREAM, &json!({ "error": error.to_json() }))
        }
    }
}

fn envelope(flags: u8, message: &Value) -> Bytes {
    let text = message.to_string();
    let mut frame = BytesMut::with_capacity(HEADER_BYTES + text.len());
    frame.put_u8(flags);
    // No message here is longer than a request or a piece of output.
    frame.put_u32(u32::try_from(text.len()).unwrap_or(u32::MAX));
    frame.put_slice(text.as_bytes());
    frame.freeze()
}

/// Takes whole messages out of the bytes of a stream.
#[derive(Debug, Default)]
pub(super) struct Envelopes(BytesMut);

impl Envelopes {
    /// Adds bytes.
    pub fn push(&mut self, bytes: &[u8]) {
        self.0.extend_from_slice(bytes);
    }

    /// Takes the next message; `None`: more bytes are needed.
    pub fn next(&mut self) -> Result<Option<Bytes>, RpcError> {
        let Some(header) = self.0.get(..HEADER_BYTES) else { return Ok(None) };
        if header[0] & 1 != 0 {
            return Err(RpcError::new(Code::Unimplemented, "compressed messages are not supported"));
        }
        let length = header[1..].iter().fold(0_usize, |length, byte| length << 8 | usize::from(*byte));
        if length > MAX_JSON_BYTES {
            let message = format!("a message has {length} bytes; the most is {MAX_JSON_BYTES}");
            return Err(RpcError::new(Code::ResourceExhausted, message));
        }
        if self.0.len() < HEADER_BYTES + length {
            return Ok(None);
        }
        self.0.advance(HEADER_BYTES);
        Ok(Some(self.0.split_to(length).freeze()))
    }

    /// Takes the one message of a request whose answer is a stream.
    pub fn only(body: &[u8]) -> Result<Bytes, RpcError> {
        let mut envelopes = Self::default();
        envelopes.push(body);
        let missing = || RpcError::new(Code::InvalidArgument, "the request has no message");
        envelopes.next()?.ok_or_else(missing)
    }
}

/// Reads a message.
pub(super) fn read<T: serde::de::DeserializeOwned>(message: &[u8]) -> Result<T, RpcError> {
    serde_json::from_slice(message)
        .map_err(|error| RpcError::new(Code::InvalidArgument, format!("the request is wrong: {error}")))
}

/// Returns the deadline that a caller gives a call, in milliseconds. Zero is none.
pub(super) fn timeout_ms(headers: &HeaderMap) -> Result<Option<u64>, RpcError> {
    let Some(value) = headers.get("connect-timeout-ms") else { return Ok(None) };
    let number = value.to_str().ok().and_then(|text| text.parse::<u64>().ok());
    let wrong = || RpcError::new(Code::InvalidArgument, "`Connect-Timeout-Ms` must be a number");
    Ok(Some(number.ok_or_else(wrong)?).filter(|timeout_ms| *timeout_ms > 0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_are_taken_whole_however_the_bytes_are_cut() {
        let bytes = [envelope(0, &json!({ "a": 1 })), envelope(0, &json!({}))].concat();
        let mut envelopes = Envelopes::default();
        let mut found = Vec::new();
        for byte in bytes {
            envelopes.push(&[byte]);
            found.extend(envelopes.next().unwrap());
        }
        assert_eq!(found, [&b"{\"a\":1}"[..], b"{}"]);
    }

    #[test]
    fn a_message_as_long_as_the_limit_is_awaited_and_one_byte_more_is_refused() {
        let header = |length: usize| [&[0][..], &u32::try_from(length).unwrap().to_be_bytes()].concat();
        let mut envelopes = Envelopes::default();
        envelopes.push(&header(MAX_JSON_BYTES));
        assert!(envelopes.next().unwrap().is_none());
        let mut envelopes = Envelopes::default();
        envelopes.push(&header(MAX_JSON_BYTES + 1));
        assert_eq!(envelopes.next().unwrap_err().code, Code::ResourceExhausted);
    }

    #[test]
    fn a_compressed_message_is_refused() {
        let mut envelopes = Envelopes::default();
        envelopes.push(&[1, 0, 0, 0, 0]);
        assert_eq!(envelopes.next().unwrap_err().code, Code::Unimplemented);
    }
}
