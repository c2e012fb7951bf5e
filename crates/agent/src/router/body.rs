//! The body of a request that starts an agent.

use axum::body::Bytes;
use axum::http::{HeaderMap, header};
use serde_json::{Value, json};

use super::failure::RouteFailure;

/// Reads the input of a run. Nothing at all is `{}`.
pub(super) fn payload(headers: &HeaderMap, body: &Bytes) -> Result<Value, RouteFailure> {
    let text = |name| headers.get(name).and_then(|value| value.to_str().ok());
    let (length, media_type) = (text(header::CONTENT_LENGTH), text(header::CONTENT_TYPE));
    let is_empty = match length {
        Some(length) => length.trim() == "0",
        None => media_type.is_none(),
    };
    if is_empty {
        return Ok(json!({}));
    }
    if !media_type.is_some_and(|media_type| media_type.to_ascii_lowercase().contains("application/json")) {
        return Err(RouteFailure::unsupported_media_type(media_type));
    }
    if body.trim_ascii().is_empty() {
        return Ok(json!({}));
    }
    serde_json::from_slice(body).map_err(|error| RouteFailure::invalid_json(&error.to_string()))
}
