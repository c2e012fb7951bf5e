//! Bodies that are packed. Nothing is unpacked here, so that a small request can't become a large one: one that says it is
//! packed is refused.

use axum::extract::Request;
use axum::http::{StatusCode, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};

use crate::problem::Refusal;

/// Passes on what is sent as it is.
pub(super) async fn refuse(request: Request, next: Next) -> Response {
    let mut codings = request.headers().get_all(header::CONTENT_ENCODING).iter();
    match codings.all(|coding| coding.as_bytes().eq_ignore_ascii_case(b"identity")) {
        true => next.run(request).await,
        false => {
            let sentence = "bodies are taken as they are: send it without `Content-Encoding`";
            Refusal::of_status(StatusCode::UNSUPPORTED_MEDIA_TYPE, sentence).into_response()
        }
    }
}
