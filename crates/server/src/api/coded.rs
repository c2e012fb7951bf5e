//! Refuses compressed bodies (`Content-Encoding`). The server decompresses nothing, so a small
//! request can't become a large one.

use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};

use crate::problem::Refusal;

/// Returns the refusal of a request whose body is encoded; `None`: it is not.
pub(super) fn refusal(headers: &HeaderMap) -> Option<Response> {
    let mut codings = headers.get_all(header::CONTENT_ENCODING).iter();
    if codings.all(|coding| coding.as_bytes().eq_ignore_ascii_case(b"identity")) {
        return None;
    }
    let sentence = "bodies are taken as they are: send it without `Content-Encoding`";
    Some(Refusal::of_status(StatusCode::UNSUPPORTED_MEDIA_TYPE, sentence).into_response())
}
