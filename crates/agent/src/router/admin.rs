//! The admin routes: agents, their instances, and runs.

use axum::Json;
use axum::extract::{Path, State};

use super::RouterState;
use super::access::RunAccess;
use super::cursor;
use super::failure::{FailureEnvelope, RouteFailure};
use super::invoke::not_found;
use super::parameters::Parameters;
use super::shapes::{AgentShape, InstanceShape, Page, RunPointer, Triggers};
use crate::store::RunFilter;

/// Lists the agents.
#[utoipa::path(get, path = "/agents", tag = "admin", operation_id = "adminListAgents",
    responses((status = 200, description = "The agents", body = Page<AgentShape>)))]
pub(super) async fn agents(State(state): State<RouterState>) -> Result<Json<Page<AgentShape>>, RouteFailure> {
    let agents = state.agents.list().await?.into_iter();
    let items =
        agents.map(|info| AgentShape { name: info.name, triggers: Triggers { webhook: info.webhook } });
    Ok(Json(Page { items: items.collect(), next_cursor: None }))
}

/// Lists the instances of an agent that have runs.
#[utoipa::path(get, path = "/agents/{name}/instances", tag = "admin", operation_id = "adminListAgentInstances",
    params(("name" = String, Path, description = "The agent"),
        ("cursor" = Option<String>, Query, description = "Continues a list"),
        ("limit" = Option<u64>, Query, description = "The most items, 1 to 1,000; by default 100")),
    responses((status = 200, description = "The instances", body = Page<InstanceShape>),
        (status = "4XX", description = "Refused", body = FailureEnvelope)))]
pub(super) async fn instances(
    State(state): State<RouterState>,
    Path(name): Path<String>,
    access: RunAccess,
    mut parameters: Parameters,
) -> Result<Json<Page<InstanceShape>>, RouteFailure> {
    let (limit, given) = (parameters.limit(), parameters.text("cursor").map(str::to_owned));
    parameters.checked()?;
    known(&state, &name).await?;
    let after = given.and_then(|cursor| cursor::instance_of(&cursor, &name)).unwrap_or_default();
    let store = state.agents.store();
    let mut found = store.instances(&name, access.pools.as_deref(), &after, limit + 1).await?;
    let next_cursor = take_page(&mut found, limit).map(|last| cursor::of_instance(&name, last));
    let shape = |instance_id| InstanceShape { agent_name: name.clone(), instance_id };
    Ok(Json(Page { items: found.into_iter().map(shape).collect(), next_cursor }))
}

/// Lists the runs of an instance, the newest first.
#[utoipa::path(get, path = "/agents/{name}/instances/{id}/runs", tag = "admin", operation_id = "adminListAgentInstanceRuns",
    params(("name" = String, Path, description = "The agent"), ("id" = String, Path, description = "Its instance"),
        ("status" = Option<String>, Query, description = "Only runs in this state"),
        ("cursor" = Option<String>, Query, description = "Continues a list"),
        ("limit" = Option<u64>, Query, description = "The most items, 1 to 1,000; by default 100")),
    responses((status = 200, description = "The runs", body = Page<RunPointer>),
        (status = "4XX", description = "Refused", body = FailureEnvelope)))]
pub(super) async fn instance_runs(
    State(state): State<RouterState>,
    Path((name, id)): Path<(String, String)>,
    access: RunAccess,
    parameters: Parameters,
) -> Result<Json<Page<RunPointer>>, RouteFailure> {
    let filter = RunFilter { agent_name: Some(name), instance_id: Some(id), ..RunFilter::default() };
    list(&state, access, parameters, filter).await
}

/// Lists the runs, the newest first.
#[utoipa::path(get, path = "/runs", tag = "admin", operation_id = "adminListRuns",
    params(("status" = Option<String>, Query, description = "Only runs in this state"),
        ("agentName" = Option<String>, Query, description = "Only runs of this agent"),
        ("cursor" = Option<String>, Query, description = "Continues a list"),
        ("limit" = Option<u64>, Query, description = "The most items, 1 to 1,000; by default 100")),
    responses((status = 200, description = "The runs", body = Page<RunPointer>),
        (status = "4XX", description = "Refused", body = FailureEnvelope)))]
pub(super) async fn runs(
    State(state): State<RouterState>,
    access: RunAccess,
    parameters: Parameters,
) -> Result<Json<Page<RunPointer>>, RouteFailure> {
    let agent_name = parameters.text("agentName").map(str::to_owned);
    list(&state, access, parameters, RunFilter { agent_name, ..RunFilter::default() }).await
}

async fn list(
    state: &RouterState,
    access: RunAccess,
    mut parameters: Parameters,
    filter: RunFilter,
) -> Result<Json<Page<RunPointer>>, RouteFailure> {
    let (limit, status) = (parameters.limit(), parameters.status());
    let before = parameters.text("cursor").and_then(cursor::run_of);
    parameters.checked()?;
    if let Some(name) = &filter.agent_name {
        known(state, name).await?;
    }
    let filter =
        RunFilter { status, before, pools: access.pools, is_brief: true, limit: Some(limit + 1), ..filter };
    let mut found = state.agents.store().runs(filter).await?;
    let next_cursor = take_page(&mut found, limit).map(|last| cursor::of_run(last.started_ms, &last.run_id));
    Ok(Json(Page { items: found.iter().map(RunPointer::from).collect(), next_cursor }))
}

/// Refuses an agent that there is not.
async fn known(state: &RouterState, name: &str) -> Result<(), RouteFailure> {
    match state.agents.find(name).await? {
        Some(_) => Ok(()),
        None => Err(not_found(state, name).await),
    }
}

/// Cuts a list that was read with one more item than wanted. Returns the last item if there are more.
fn take_page<T>(items: &mut Vec<T>, limit: u64) -> Option<&T> {
    let limit = usize::try_from(limit).unwrap_or(usize::MAX);
    let has_more = items.len() > limit;
    items.truncate(limit);
    items.last().filter(|_| has_more)
}
