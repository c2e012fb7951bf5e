//! `GET /runs/{run}` and its events.

use axum::Json;
use axum::extract::{Path, State};
use axum::http::HeaderMap;
use axum::response::Response;

use super::RouterState;
use super::access::RunAccess;
use super::failure::{FailureEnvelope, RouteFailure};
use super::parameters::Parameters;
use super::run_streams::{first_wanted, run_stream};
use super::shapes::{EventList, RunShape};
use crate::run_events::stored_events;
use crate::store::RunRecord;

/// Shows a run.
#[utoipa::path(get, path = "/runs/{run}", tag = "runs", operation_id = "getRun",
    params(("run" = String, Path, description = "The id of the run")),
    responses((status = 200, description = "The run", body = RunShape),
        (status = "4XX", description = "Refused", body = FailureEnvelope)))]
pub(super) async fn get(
    State(state): State<RouterState>,
    Path(run): Path<String>,
    access: RunAccess,
) -> Result<Json<RunShape>, RouteFailure> {
    Ok(Json(RunShape::from(&found(&state, &run, &access).await?)))
}

/// Lists the stored events of a run.
#[utoipa::path(get, path = "/runs/{run}/events", tag = "runs", operation_id = "listRunEvents",
    params(("run" = String, Path, description = "The id of the run"),
        ("after" = Option<u64>, Query, description = "Only events behind the one with this number"),
        ("types" = Option<String>, Query, description = "Only events of these types, separated by commas"),
        ("limit" = Option<u64>, Query, description = "The most events, 1 to 1,000; by default 100")),
    responses((status = 200, description = "The events", body = EventList),
        (status = "4XX", description = "Refused", body = FailureEnvelope)))]
pub(super) async fn events(
    State(state): State<RouterState>,
    Path(run): Path<String>,
    access: RunAccess,
    mut parameters: Parameters,
) -> Result<Json<EventList>, RouteFailure> {
    let (after, types, limit) = (parameters.after(), parameters.types(), parameters.limit());
    parameters.checked()?;
    found(&state, &run, &access).await?;
    let from = after.map_or(0, |after| after.saturating_add(1));
    let events = stored_events(state.agents.store().as_ref(), &run, from, types.as_deref(), limit).await?;
    Ok(Json(EventList { events }))
}

/// Streams the events of a run: those that are stored, and then the new ones, until the run has ended. The header
/// `Last-Event-ID` takes the stream up behind the event with this number.
#[utoipa::path(get, path = "/runs/{run}/stream", tag = "runs", operation_id = "streamRunEvents",
    params(("run" = String, Path, description = "The id of the run"),
        ("last-event-id" = Option<u64>, Header, description = "The number of the last event that came")),
    responses((status = 200, description = "The events", content_type = "text/event-stream", body = String),
        (status = "4XX", description = "Refused", body = FailureEnvelope)))]
pub(super) async fn stream(
    State(state): State<RouterState>,
    Path(run): Path<String>,
    access: RunAccess,
    headers: HeaderMap,
) -> Result<Response, RouteFailure> {
    found(&state, &run, &access).await?;
    Ok(run_stream(&state, &run, first_wanted(&headers)).await?)
}

/// Returns a run that the caller may see. One of another pool is refused in the words of one that there is not.
async fn found(state: &RouterState, id: &str, access: &RunAccess) -> Result<RunRecord, RouteFailure> {
    let run = state.agents.store().run(id).await?;
    run.filter(|run| access.sees(run)).ok_or_else(|| RouteFailure::run_not_found(id))
}
