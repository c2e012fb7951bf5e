//! `POST /agents/{name}/{id}`: starts an agent, and waits for it, follows it, or leaves it.

use axum::Json;
use axum::body::Bytes;
use axum::extract::rejection::BytesRejection;
use axum::extract::{Path, State};
use axum::http::{HeaderMap, HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};

use eyot::ErrorKind;

use super::RouterState;
use super::access::RunAccess;
use super::body::payload;
use super::failure::{FailureEnvelope, RUN_ID, RouteFailure};
use super::run_streams::{run_stream, takes_events};
use super::shapes::{Accepted, Invoked, InvokedMeta};
use crate::agent_source::FoundAgent;
use crate::agents::RunRequest;
use crate::run::RunHandle;
use crate::store::AgentRunOptions;

/// The three ways to start an agent.
#[derive(Clone, Copy, PartialEq, Eq)]
enum InvokeMode {
    /// The answer has the result.
    Wait,
    /// The answer is the stream of events.
    Follow,
    /// The answer comes at once.
    Leave,
}

/// Starts an agent. The body is the agent's input. The answer has its result; with `X-Webhook: true` it comes at once, and with
/// `Accept: text/event-stream` it is the stream of the run's events. The run goes on if the connection breaks.
#[utoipa::path(post, path = "/agents/{name}/{id}", tag = "agents", operation_id = "invokeAgent",
    params(("name" = String, Path, description = "The agent"), ("id" = String, Path, description = "Its instance. Runs of one instance share its sandbox and its conversations")),
    request_body(content = serde_json::Value, description = "The input of the agent"),
    responses((status = 200, description = "The result", body = Invoked),
        (status = 202, description = "The run goes on", body = Accepted),
        (status = "4XX", description = "Refused", body = FailureEnvelope),
        (status = "5XX", description = "Failed", body = FailureEnvelope)))]
pub(super) async fn invoke(
    State(state): State<RouterState>,
    Path((name, id)): Path<(String, String)>,
    access: RunAccess,
    headers: HeaderMap,
    body: Result<Bytes, BytesRejection>,
) -> Result<Response, RouteFailure> {
    let agent = startable(&state, &name, &id).await?;
    let body = body.map_err(|rejection| match rejection.status() {
        StatusCode::PAYLOAD_TOO_LARGE => RouteFailure::too_large(),
        _ => RouteFailure::invalid_json(&rejection.body_text()),
    });
    // Flue answers a wrong body under the id of a run that never was.
    let no_run = format!("run_{}", ulid::Ulid::generate());
    let payload = body.and_then(|body| payload(&headers, &body));
    let payload = payload.map_err(|failure| failure.with_header(RUN_ID, &no_run))?;
    let mode = mode(&headers);
    let options = AgentRunOptions { tells_idle: mode == InvokeMode::Follow, ..AgentRunOptions::default() };
    let request =
        RunRequest { agent: name, instance_id: id, pool: access.pool, payload, options, sandbox: None };
    let run = state.agents.begin_found(agent, request).await?;
    answer(&state, mode, run).await
}

fn mode(headers: &HeaderMap) -> InvokeMode {
    if headers.get("x-webhook").is_some_and(|value| value == "true") {
        InvokeMode::Leave
    } else if takes_events(headers) {
        InvokeMode::Follow
    } else {
        InvokeMode::Wait
    }
}

/// Returns the agent, if callers may start it.
async fn startable(state: &RouterState, name: &str, id: &str) -> Result<FoundAgent, RouteFailure> {
    if name.trim().is_empty() || id.trim().is_empty() {
        return Err(RouteFailure::invalid_request(
            "The path must be /agents/NAME/ID, and neither may be empty.",
        ));
    }
    match state.agents.startable(name, !state.options.is_local).await {
        Err(error) if error.kind() == ErrorKind::Permission => Err(RouteFailure::agent_not_webhook(name)),
        Err(error) if error.kind() == ErrorKind::NotFound => Err(not_found(state, name).await),
        found => Ok(found?),
    }
}

/// The failure of an agent that there is not.
pub(super) async fn not_found(state: &RouterState, name: &str) -> RouteFailure {
    let others = state.agents.list().await.unwrap_or_default();
    let others: Vec<String> = others.into_iter().map(|info| info.name).collect();
    RouteFailure::agent_not_found(name, &others).shown(state.options.is_local)
}

async fn answer(state: &RouterState, mode: InvokeMode, run: RunHandle) -> Result<Response, RouteFailure> {
    let run_id = run.id().to_owned();
    let response = match mode {
        InvokeMode::Leave => {
            (StatusCode::ACCEPTED, Json(Accepted { status: "accepted", run_id: run_id.clone() }))
                .into_response()
        }
        InvokeMode::Follow => run_stream(state, &run_id, 0).await?,
        InvokeMode::Wait => match run.result().await {
            Ok(result) => {
                let meta = InvokedMeta { run_id: run_id.clone() };
                Json(Invoked { result, meta }).into_response()
            }
            // The id of the run is not told here, as in Flue.
            Err(error) => return Err(RouteFailure::of_run(&error).shown(state.options.is_local)),
        },
    };
    Ok(with_run_id(response, &run_id))
}

fn with_run_id(mut response: Response, run_id: &str) -> Response {
    if let Ok(value) = HeaderValue::from_str(run_id) {
        response.headers_mut().insert(RUN_ID, value);
    }
    response
}
