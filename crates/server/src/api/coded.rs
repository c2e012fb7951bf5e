//! Bodies that are packed. Nothing is unpacked here, so that a small request can't become a large one: one that says it is
//! packed is refused.

use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};

use crate::problem::Refusal;

/// What whoever sends a body that is not as it is gets to hear.
pub(super) fn refusal(headers: &HeaderMap) -> Option<Response> {
    let mut codings = headers.get_all(header::CONTENT_ENCODING).iter();
    if codings.all(|coding| coding.as_bytes().eq_ignore_ascii_case(b"identity")) {
        return None;
    }
    let sentence = "bodies are taken as they are: send it without `Content-Encoding`";
    Some(Refusal::of_status(StatusCode::UNSUPPORTED_MEDIA_TYPE, sentence).into_response())
}
