//! Reads small bodies before anything else is done.
//!
//! A connection with unread data has to be closed, and a client that does not know that loses its
//! next request. So small bodies are read first, and the answer to a larger one that was not read
//! to its end says that the connection closes.

use std::sync::atomic::Ordering;
use std::time::Duration;

use axum::body::to_bytes;
use axum::extract::{Request, State};
use axum::http::{HeaderValue, StatusCode, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use tokio::time::timeout;

use super::state::Api;
use super::{coded, once_more};
use crate::http::watched::watched;
use crate::problem::Refusal;

/// The largest body that is read first, in bytes.
const SMALL_BYTES: usize = 64 << 10;

const CLOSE: HeaderValue = HeaderValue::from_static("close");

/// Refuses encoded bodies, reads a small body, and passes the request on.
pub(super) async fn read_first(State(api): State<Api>, request: Request, next: Next) -> Response {
    if let Some(mut refused) = coded::refusal(request.headers()) {
        refused.headers_mut().insert(header::CONNECTION, CLOSE);
        return refused;
    }
    let announced = request.headers().get(header::CONTENT_LENGTH).and_then(|length| length.to_str().ok());
    let bytes: Option<usize> = announced.and_then(|length| length.parse().ok());
    match bytes {
        Some(1..=SMALL_BYTES) => {}
        None if !request.headers().contains_key(header::TRANSFER_ENCODING) => {
            return once_more::run(request.into_parts().0, Bytes::new(), next).await;
        }
        Some(0) => return once_more::run(request.into_parts().0, Bytes::new(), next).await,
        _ => return and_closes_if_unread(request, next).await,
    }
    let (parts, body) = request.into_parts();
    let limit_ms = api.limits().json_timeout_ms;
    let refused = match timeout(Duration::from_millis(limit_ms), to_bytes(body, SMALL_BYTES)).await {
        Ok(Ok(bytes)) => return once_more::run(parts, bytes, next).await,
        // It stalled, or its client has gone.
        Ok(Err(_)) => {
            Refusal::of_status(StatusCode::REQUEST_TIMEOUT, "read the request: its body did not come whole")
        }
        Err(_) => Refusal::slow(limit_ms),
    };
    refused.into_response()
}

async fn and_closes_if_unread(request: Request, next: Next) -> Response {
    let (parts, body) = request.into_parts();
    let (body, has_ended) = watched(body);
    let mut response = next.run(Request::from_parts(parts, body)).await;
    if !has_ended.load(Ordering::Acquire) {
        response.headers_mut().insert(header::CONNECTION, CLOSE);
    }
    response
}
