//! The reasons why a gRPC call fails, and what they mean here.

use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD_NO_PAD;
use eyot::{Error, ErrorKind};
use http::{HeaderMap, StatusCode};
use prost::Message;

use super::wire::{RpcRetryPolicy, RpcStatus};
use crate::e2b::client::clean_text;

/// A status of gRPC.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct GrpcCode(pub i32);

impl GrpcCode {
    pub const OK: Self = Self(0);
    pub const CANCELLED: Self = Self(1);
    pub const UNKNOWN: Self = Self(2);
    pub const INVALID_ARGUMENT: Self = Self(3);
    pub const DEADLINE_EXCEEDED: Self = Self(4);
    pub const NOT_FOUND: Self = Self(5);
    pub const ALREADY_EXISTS: Self = Self(6);
    pub const PERMISSION_DENIED: Self = Self(7);
    pub const RESOURCE_EXHAUSTED: Self = Self(8);
    pub const FAILED_PRECONDITION: Self = Self(9);
    pub const UNIMPLEMENTED: Self = Self(12);
    pub const INTERNAL: Self = Self(13);
    pub const UNAVAILABLE: Self = Self(14);
    pub const UNAUTHENTICATED: Self = Self(16);
}

/// The reason why a call failed.
#[derive(Debug)]
pub(super) enum GrpcFailure {
    /// It was not sent.
    Unsent(String),
    /// It was sent, and no whole answer came.
    Lost(String),
    /// The server refused it.
    Refused { code: GrpcCode, message: String, asked: Option<Duration> },
}

impl GrpcFailure {
    /// Reads the status in the trailers of a call, or in the headers of one without a message. `None`: it is fine.
    pub fn of_trailers(trailers: &HeaderMap) -> Option<Self> {
        let Some(code) = text(trailers, "grpc-status").and_then(|code| code.parse().ok()) else {
            return Some(Self::Lost("the answer has no status".to_owned()));
        };
        if GrpcCode(code) == GrpcCode::OK {
            return None;
        }
        let message = percent_decoded(text(trailers, "grpc-message").unwrap_or_default());
        let details = text(trailers, "grpc-status-details-bin").and_then(wait_in_details);
        Some(Self::Refused {
            code: GrpcCode(code),
            message,
            asked: details.or_else(|| retry_after(trailers)),
        })
    }

    /// Makes the failure of an answer that is not gRPC's: a proxy's, for one.
    pub fn of_http(status: StatusCode, headers: &HeaderMap) -> Self {
        let code = match status {
            StatusCode::UNAUTHORIZED => GrpcCode::UNAUTHENTICATED,
            StatusCode::FORBIDDEN => GrpcCode::PERMISSION_DENIED,
            StatusCode::NOT_FOUND => GrpcCode::UNIMPLEMENTED,
            StatusCode::TOO_MANY_REQUESTS => GrpcCode::RESOURCE_EXHAUSTED,
            StatusCode::BAD_GATEWAY | StatusCode::SERVICE_UNAVAILABLE | StatusCode::GATEWAY_TIMEOUT => {
                GrpcCode::UNAVAILABLE
            }
            _ => GrpcCode::UNKNOWN,
        };
        let message = format!("HTTP status {}", status.as_u16());
        let asked = retry_after(headers);
        let limited = code == GrpcCode::RESOURCE_EXHAUSTED && asked.is_none();
        Self::Refused { code, message, asked: asked.or(limited.then_some(Duration::ZERO)) }
    }

    pub fn is(&self, wanted: GrpcCode) -> bool {
        matches!(self, Self::Refused { code, .. } if *code == wanted)
    }

    /// Tells whether a call that has a key, or changes nothing, may be sent again.
    pub fn may_retry(&self) -> bool {
        match self {
            Self::Unsent(_) | Self::Lost(_) => true,
            Self::Refused { code: GrpcCode::RESOURCE_EXHAUSTED, asked, .. } => asked.is_some(),
            Self::Refused { code, .. } => [
                GrpcCode::CANCELLED,
                GrpcCode::UNKNOWN,
                GrpcCode::DEADLINE_EXCEEDED,
                GrpcCode::INTERNAL,
                GrpcCode::UNAVAILABLE,
            ]
            .contains(code),
        }
    }

    /// Tells whether the call may have had an effect all the same.
    pub fn may_have_had_effect(&self) -> bool {
        match self {
            Self::Unsent(_) => false,
            Self::Lost(_) => true,
            Self::Refused { code, .. } => *code != GrpcCode::RESOURCE_EXHAUSTED && self.may_retry(),
        }
    }

    /// Leaves out the server's own words.
    pub fn without_words(self) -> Self {
        match self {
            Self::Refused { code, asked, .. } => Self::Refused { code, message: String::new(), asked },
            other => other,
        }
    }

    /// The wait that the server asks for.
    pub fn asked(&self) -> Option<Duration> {
        match self {
            Self::Refused { asked, .. } => *asked,
            Self::Unsent(_) | Self::Lost(_) => None,
        }
    }

    /// Makes the error of a call to the control plane.
    pub fn into_error(self) -> Error {
        let (code, message, asked) = match self {
            Self::Unsent(why) => {
                return Error::new(ErrorKind::Unavailable, "Modal does not answer")
                    .with_hint(
                        "to see the cause, run the command again with `eyot -v`; MODAL_SERVER_URL sets another server",
                    )
                    .with_source(why)
                    .with_no_effect();
            }
            Self::Lost(why) => {
                return Error::new(ErrorKind::Unavailable, "the connection to Modal was lost")
                    .with_source(why);
            }
            Self::Refused { code, message, asked } => (code, clean_text(&message), asked),
        };
        let said = |reason: &str| {
            if message.is_empty() { reason.to_owned() } else { format!("{reason}: {message}") }
        };
        match code {
            GrpcCode::UNAUTHENTICATED | GrpcCode::PERMISSION_DENIED => {
                // Its own words may say of the token what nobody is to read.
                Error::new(ErrorKind::Permission, "Modal refused the token").with_hint(
                    "MODAL_TOKEN_ID and MODAL_TOKEN_SECRET must have a token of a workspace that may do this",
                )
            }
            GrpcCode::NOT_FOUND => Error::new(ErrorKind::NotFound, said("Modal does not have it")),
            GrpcCode::ALREADY_EXISTS => Error::new(ErrorKind::AlreadyExists, said("Modal has it already")),
            GrpcCode::INVALID_ARGUMENT => Error::new(ErrorKind::Invalid, said("Modal refused it")),
            GrpcCode::FAILED_PRECONDITION => Error::new(ErrorKind::Conflict, said("Modal refused it")),
            GrpcCode::UNIMPLEMENTED => Error::new(ErrorKind::Unsupported, said("Modal does not do that")),
            GrpcCode::RESOURCE_EXHAUSTED => {
                let when =
                    asked.map_or("later".to_owned(), |wait| format!("in {} s", wait.as_secs_f32().ceil()));
                Error::new(ErrorKind::Unavailable, said("Modal limits the rate of requests"))
                    .with_no_effect()
                    .with_hint(format!("try again {when}"))
            }
            GrpcCode(code) => {
                Error::new(ErrorKind::Unavailable, said(&format!("Modal failed with gRPC status {code}")))
            }
        }
    }
}

fn text<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    headers.get(name).and_then(|value| value.to_str().ok()).map(str::trim)
}

fn retry_after(headers: &HeaderMap) -> Option<Duration> {
    text(headers, "retry-after")?.parse().ok().map(Duration::from_secs)
}

/// Reads the wait in the details of a status, in which Modal asks for it.
fn wait_in_details(details: &str) -> Option<Duration> {
    let bytes = STANDARD_NO_PAD.decode(details.trim_end_matches('=')).ok()?;
    let status = RpcStatus::decode(&*bytes).ok()?;
    let policy = status.details.into_iter().find(|detail| detail.type_url.ends_with("RPCRetryPolicy"))?;
    let seconds = RpcRetryPolicy::decode(policy.value).ok()?.retry_after_secs;
    // It is at least a tenth of a second, as the vendor's own client has it.
    Duration::try_from_secs_f32(seconds.max(0.1)).ok()
}

/// Decodes a message, which gRPC sends with `%XX`.
fn percent_decoded(text: &str) -> String {
    let (mut bytes, mut rest) = (Vec::new(), text.as_bytes());
    while let Some((first, after)) = rest.split_first() {
        let hex = after.get(..2).and_then(|hex| str::from_utf8(hex).ok());
        match hex.and_then(|hex| u8::from_str_radix(hex, 16).ok()).filter(|_| *first == b'%') {
            Some(byte) => {
                bytes.push(byte);
                rest = &after[2..];
            }
            None => {
                bytes.push(*first);
                rest = after;
            }
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn trailers(pairs: &[(&'static str, &str)]) -> HeaderMap {
        pairs.iter().map(|(name, value)| (name.parse().unwrap(), value.parse().unwrap())).collect()
    }

    #[test]
    fn a_status_is_read_with_its_message_and_the_wait_that_is_asked_for() {
        assert!(GrpcFailure::of_trailers(&trailers(&[("grpc-status", "0")])).is_none());
        assert!(matches!(GrpcFailure::of_trailers(&trailers(&[])), Some(GrpcFailure::Lost(_))));
        let policy = RpcRetryPolicy { retry_after_secs: 2.5 }.encode_to_vec().into();
        let detail =
            RpcDetail { type_url: "type.googleapis.com/modal.client.RPCRetryPolicy".into(), value: policy };
        let details = RpcStatus { code: 8, details: vec![detail] }.encode_to_vec();
        let details = STANDARD_NO_PAD.encode(details);
        let refused = trailers(&[
            ("grpc-status", "8"),
            ("grpc-message", "too%20much %zz"),
            ("grpc-status-details-bin", &details),
        ]);
        let Some(failure) = GrpcFailure::of_trailers(&refused) else { panic!("it is fine") };
        assert_eq!(failure.asked(), Some(Duration::from_millis(2500)));
        assert!(failure.is(GrpcCode::RESOURCE_EXHAUSTED) && failure.may_retry());
        let error = failure.into_error();
        assert!(error.had_no_effect() && error.to_string().contains("too much %zz"), "{error:?}");
        assert_eq!(error.hint(), Some("try again in 3 s"));
    }

    #[test]
    fn throttling_is_tried_again_only_where_a_wait_is_named() {
        let bare = trailers(&[("grpc-status", "8")]);
        assert!(!GrpcFailure::of_trailers(&bare).is_some_and(|failure| failure.may_retry()));
        let refused = trailers(&[("grpc-status", "5")]);
        assert!(!GrpcFailure::of_trailers(&refused).is_some_and(|failure| failure.may_retry()));
    }

    use crate::modal::wire::RpcDetail;
}
