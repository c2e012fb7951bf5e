//! The server itself: its health, its version, and the document of its API.

use std::sync::LazyLock;

use axum::Json;
use axum::http::HeaderMap;
use axum::response::Response;
use eyot::wire::{Health, Version};

use crate::static_file::StaticFile;

/// Returns `ok` when the server answers.
///
/// Needs no key.
#[utoipa::path(get, path = "/v1/health", tag = "server", security(()), responses((status = 200, body = Health)))]
pub(super) async fn health() -> Json<Health> {
    Json(Health { status: "ok".to_owned() })
}

/// Returns the server's version.
///
/// Needs no key.
#[utoipa::path(get, path = "/v1/version", tag = "server", security(()), responses((status = 200, body = Version)))]
pub(super) async fn version() -> Json<Version> {
    Json(Version { version: env!("CARGO_PKG_VERSION").to_owned(), api: "1".to_owned() })
}

/// Returns this document (OpenAPI 3.1).
///
/// Needs no key.
#[utoipa::path(get, path = "/v1/openapi.json", tag = "server", security(()), responses((status = 200, body = Object)))]
pub(super) async fn document(headers: HeaderMap) -> Response {
    static MADE: LazyLock<StaticFile> = LazyLock::new(|| {
        let text = serde_json::to_vec(&super::document()).unwrap_or_default();
        StaticFile::made("application/json".to_owned(), text)
    });
    MADE.answer(&headers)
}
