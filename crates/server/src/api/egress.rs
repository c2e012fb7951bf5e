//! The network `egress` of a sandbox: its rules, and the log of its decisions.

use axum::extract::State;
use axum::http::StatusCode;
use axum::response::IntoResponse;
use axum::{Extension, Json};
use eyot::EgressRules;
use serde::Deserialize;
use utoipa::IntoParams;

use super::events_stream::events;
use super::extract::{Chosen, JsonBody, TheSandbox, Where};
use super::host_reach;
use super::query::Params;
use super::state::Api;
use super::stopping::Stopping;
use crate::problem::{Problems, Refusal};

/// Returns the egress rules that apply now.
#[utoipa::path(get, path = "/v1/sandboxes/{sandbox}/egress", tag = "network", params(TheSandbox, Where),
    responses((status = 200, body = EgressRules), Problems))]
pub(super) async fn rules(Chosen(sandbox): Chosen) -> Result<Json<EgressRules>, Refusal> {
    Ok(Json(sandbox.egress_rules().await?))
}

/// Replaces the egress rules.
///
/// Connections that the new rules do not allow are closed.
#[utoipa::path(put, path = "/v1/sandboxes/{sandbox}/egress", tag = "network", params(TheSandbox, Where), 
    request_body(content = EgressRules, example = json!({ "allow": ["api.example.com:443", "*.cdn.example.com:443"] })),
    responses((status = 204), Problems))]
pub(super) async fn set_rules(
    State(api): State<Api>,
    Chosen(sandbox): Chosen,
    JsonBody(rules): JsonBody<EgressRules>,
) -> Result<StatusCode, Refusal> {
    host_reach::refuse_rules(&api, &rules)?;
    sandbox.set_egress_rules(&rules).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// The query of the decisions.
#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(super) struct DecisionsQuery {
    /// Number of remembered decisions to send first, at most 1,000. By default all.
    last: Option<usize>,
    /// Keeps the stream open and sends new decisions as they are made.
    #[serde(default)]
    follow: bool,
}

/// Streams the decisions about outgoing connections, oldest first: events `decision`.
#[utoipa::path(get, path = "/v1/sandboxes/{sandbox}/egress/decisions", tag = "network", params(TheSandbox, Where, DecisionsQuery),
    responses((status = 200, description = "What was decided", content_type = "text/event-stream"),
        Problems))]
pub(super) async fn decisions(
    Extension(stopping): Extension<Stopping>,
    Chosen(sandbox): Chosen,
    Params(DecisionsQuery { last, follow }): Params<DecisionsQuery>,
) -> Result<impl IntoResponse, Refusal> {
    let decisions = sandbox.egress_decisions(last.unwrap_or(usize::MAX), follow).await?;
    Ok(events("decision", decisions, |_| None, follow.then_some(stopping)))
}
