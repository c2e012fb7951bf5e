//! The small calls of envd over plain HTTP: its health and the variables of every command.

use std::collections::BTreeMap;

use axum::http::StatusCode;
use axum::routing::get;
use axum::{Extension, Json, Router};

use super::E2bApi;
use super::gateway::GatewayEntry;

/// Returns the routes.
pub(super) fn routes() -> Router<E2bApi> {
    Router::new().route("/health", get(health)).route("/envs", get(variables))
}

async fn health() -> StatusCode {
    StatusCode::NO_CONTENT
}

async fn variables(Extension(entered): Extension<GatewayEntry>) -> Json<BTreeMap<String, String>> {
    Json(entered.record.variables.clone())
}
