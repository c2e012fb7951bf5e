//! CORS: the headers that let web pages of allowed origins use the server.

use axum::http::{HeaderName, HeaderValue, Method, header, request};
use tower_http::cors::{AllowOrigin, CorsLayer};

use super::guard::{self, AllowedOrigin};
use crate::mcp::{POOL_HEADER, SESSION_ID};

/// Lets pages of these origins send the requests that clients send, and read the answers.
pub(crate) fn cors(origins: &[AllowedOrigin]) -> CorsLayer {
    let origins = origins.to_vec();
    let allowed = move |origin: &HeaderValue, _: &request::Parts| guard::is_listed(origin, &origins);
    CorsLayer::new()
        .allow_origin(AllowOrigin::predicate(allowed))
        .allow_methods([Method::GET, Method::HEAD, Method::POST, Method::PUT, Method::PATCH, Method::DELETE])
        .allow_headers([
            header::AUTHORIZATION,
            header::CONTENT_TYPE,
            header::ACCEPT,
            header::RANGE,
            SESSION_ID,
            HeaderName::from_static(eyot::wire::LIFE),
            POOL_HEADER,
            HeaderName::from_static("mcp-protocol-version"),
            HeaderName::from_static("mcp-method"),
            HeaderName::from_static("mcp-name"),
            HeaderName::from_static("last-event-id"),
        ])
        .expose_headers([SESSION_ID, header::CONTENT_RANGE, header::RETRY_AFTER])
}
