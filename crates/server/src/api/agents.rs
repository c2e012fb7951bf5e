//! Agents and their runs: who may start what, and tools that a run's caller answers itself. Flue's own routes are in
//! [`flue_routes`].

mod bodies;
pub(super) mod flue_routes;
mod run_stream;
mod tool_calls;

use axum::Json;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::response::IntoResponse;
use eyot::{Error, ErrorKind};
use eyot_agent::{
    AgentRunOptions, Agents, RunAccess, RunFilter, RunRecord, RunRequest, RunStatus, stored_events,
};
use serde::Deserialize;
use utoipa::IntoParams;

use super::access::{Access, Caller};
use super::extract::{JsonBody, LastEventId, list_limit};
use super::query::Params;
use super::state::Api;
use super::stopping::Stopping;
use crate::problem::{Problems, Refusal};
use bodies::{AbortBody, AgentEntry, AgentList, RunAnswer, RunBody, RunEvents, RunList};

pub(super) use run_stream::__path_stream;
pub(super) use run_stream::stream;
pub(super) use tool_calls::{__path_answer, __path_waiting, answer, waiting};

/// The query parameter `pool`.
#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(super) struct OfPool {
    /// The pool of the run. By default the key's first pool.
    pool: Option<String>,
}

/// The query of a list of runs.
#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(super) struct RunsQuery {
    /// Only runs of this pool. By default those of every pool that the key opens.
    pool: Option<String>,
    /// Only runs of this agent.
    agent: Option<String>,
    /// Only runs of this instance.
    instance: Option<String>,
    /// Only runs in this state: `active`, `completed` or `errored`.
    #[param(inline)]
    status: Option<RunStatus>,
    /// Continues a list: the `next_cursor` of the previous answer.
    cursor: Option<String>,
    /// Number of runs to return at most, 1 to 1,000; by default 100.
    limit: Option<u64>,
}

/// The query of a run's events.
#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(super) struct RunEventsQuery {
    /// Only events behind the one with this number.
    after: Option<u64>,
    /// Only events of these types, separated by commas.
    types: Option<String>,
    /// Number of events to return at most, 1 to 1,000; by default 100.
    limit: Option<u64>,
}

/// The path of a run.
#[derive(IntoParams)]
#[into_params(names("run"), parameter_in = Path)]
pub(super) struct TheRun(
    /// The id of the run.
    #[param(example = "run_01JEXAMPLE")]
    #[allow(dead_code, reason = "it is read by its name, and stands here for the document")]
    String,
);

impl Api {
    /// Returns the agents, if this server has any.
    pub(super) fn agents_or_refuse(&self) -> Result<&Agents, Refusal> {
        self.agents().ok_or_else(|| Error::new(ErrorKind::Unsupported, "this server runs no agents").into())
    }

    /// Returns a run that the caller may see. One of another pool is refused in the words of one that there is not.
    async fn run_of(&self, caller: &Caller, id: &str) -> Result<RunRecord, Refusal> {
        let run = self.agents_or_refuse()?.store().run(id).await?;
        run.filter(|run| caller.run_access(None).sees(run)).ok_or_else(|| no_run(id))
    }
}

impl Caller {
    /// Returns the caller's rights to runs: it starts those of `pool`.
    fn run_access(&self, pool: Option<String>) -> RunAccess {
        let pools = self.pools().map(|pools| pools.iter().map(ToString::to_string).collect());
        RunAccess { pool, pools }
    }
}

fn no_run(id: &str) -> Refusal {
    Error::new(ErrorKind::NotFound, format!("there is no run `{id}`")).into()
}

/// Lists the agents. A key starts those with `webhook`; a server without keys starts them all.
#[utoipa::path(get, path = "/v1/agents", tag = "agents", responses((status = 200, body = AgentList), Problems))]
pub(super) async fn list(State(api): State<Api>) -> Result<Json<AgentList>, Refusal> {
    let agents = api.agents_or_refuse()?.list().await?;
    Ok(Json(AgentList { agents: agents.into_iter().map(AgentEntry::from).collect() }))
}

/// Starts an agent. The run goes on by itself: its stream tells what happens. Tools in the body are the caller's own; each call
/// of one waits for its result.
#[utoipa::path(post, path = "/v1/agents/{agent}/{instance}/runs", tag = "agents",
    params(("agent" = String, Path, description = "The agent", example = "reviewer"),
        ("instance" = String, Path, description = "Its instance. Runs of one instance share its sandbox and its conversations", example = "pr7"), OfPool),
    request_body(content = RunBody, example = json!({ "payload": { "prompt": "Say hello." } })),
    responses((status = 202, description = "The run has begun", body = RunAnswer), Problems))]
pub(super) async fn begin(
    State(api): State<Api>,
    caller: Caller,
    Path((agent, instance)): Path<(String, String)>,
    Params(OfPool { pool }): Params<OfPool>,
    JsonBody(body): JsonBody<RunBody>,
) -> Result<impl IntoResponse, Refusal> {
    let (agents, pool) = (api.agents_or_refuse()?, caller.pool(pool.as_deref())?);
    if instance.trim().is_empty() {
        return Err(Error::invalid("instance", "must not be empty").into());
    }
    let found = agents.startable(&agent, api.access() == Access::Keys).await?;
    let options = AgentRunOptions {
        tools: body.tools,
        tool_timeout_ms: body.tool_timeout_ms,
        ..AgentRunOptions::default()
    };
    let request = RunRequest {
        agent,
        instance_id: instance,
        pool: Some(pool.to_string()),
        payload: body.payload,
        options,
        sandbox: None,
    };
    let id = agents.begin_found(found, request).await?.id().to_owned();
    Ok((StatusCode::ACCEPTED, Json(shown(&api, api.run_of(&caller, &id).await?).await?)))
}

/// Lists runs, the newest first, without their input and their result.
#[utoipa::path(get, path = "/v1/runs", tag = "agents", params(RunsQuery),
    responses((status = 200, body = RunList), Problems))]
pub(super) async fn runs(
    State(api): State<Api>,
    caller: Caller,
    Params(asked): Params<RunsQuery>,
) -> Result<Json<RunList>, Refusal> {
    let limit = list_limit(asked.limit)?;
    let pools = match &asked.pool {
        Some(pool) => Some(vec![caller.pool(Some(pool))?.to_string()]),
        None => caller.run_access(None).pools,
    };
    let filter = RunFilter {
        status: asked.status,
        agent_name: asked.agent,
        instance_id: asked.instance,
        pools,
        is_brief: true,
        before: asked.cursor.as_deref().map(place_of).transpose()?,
        limit: Some(limit + 1),
    };
    let store = api.agents_or_refuse()?.store();
    let (mut found, abandoned) = (store.runs(filter).await?, store.abandoned_runs().await?);
    let wanted = usize::try_from(limit).unwrap_or(usize::MAX);
    let has_more = found.len() > wanted;
    found.truncate(wanted);
    let last = found.last().filter(|_| has_more);
    let next_cursor = last.map(|run| format!("{}_{}", run.started_ms, run.run_id));
    let runs = found.into_iter().map(|run| RunAnswer::listed(run, &abandoned)).collect();
    Ok(Json(RunList { runs, next_cursor }))
}

/// Returns the start and the id that a cursor has.
fn place_of(cursor: &str) -> Result<(u64, String), Refusal> {
    let place = cursor.split_once('_').and_then(|(started, id)| Some((started.parse().ok()?, id.to_owned())));
    place.ok_or_else(|| Error::invalid("cursor", "must be the `next_cursor` of a list").into())
}

/// Shows a run, with its input and its result.
#[utoipa::path(get, path = "/v1/runs/{run}", tag = "agents", params(TheRun),
    responses((status = 200, body = RunAnswer), Problems))]
pub(super) async fn run(
    State(api): State<Api>,
    caller: Caller,
    Path(run): Path<String>,
) -> Result<Json<RunAnswer>, Refusal> {
    Ok(Json(shown(&api, api.run_of(&caller, &run).await?).await?))
}

async fn shown(api: &Api, run: RunRecord) -> Result<RunAnswer, Refusal> {
    let abandoned = api.agents_or_refuse()?.store().abandoned_runs().await?;
    Ok(RunAnswer::of(run, &abandoned))
}

/// Lists the stored events of a run, oldest first.
#[utoipa::path(get, path = "/v1/runs/{run}/events", tag = "agents", params(TheRun, RunEventsQuery),
    responses((status = 200, body = RunEvents), Problems))]
pub(super) async fn run_events(
    State(api): State<Api>,
    caller: Caller,
    Path(run): Path<String>,
    Params(asked): Params<RunEventsQuery>,
) -> Result<Json<RunEvents>, Refusal> {
    let limit = list_limit(asked.limit)?;
    let types =
        asked.types.as_deref().map(|types| types.split(',').map(|name| name.trim().to_owned()).collect());
    let types: Option<Vec<String>> = types;
    if let Some(wrong) =
        types.iter().flatten().find(|name| !eyot_agent::AgentEventKind::NAMES.contains(&name.as_str()))
    {
        return Err(Error::invalid("types", format!("has `{wrong}`, which is no type of an event")).into());
    }
    api.run_of(&caller, &run).await?;
    let from = asked.after.map_or(0, |after| after.saturating_add(1));
    let store = api.agents_or_refuse()?.store();
    let events = stored_events(store.as_ref(), &run, from, types.as_deref(), limit).await?;
    Ok(Json(RunEvents { events }))
}

/// Aborts a run: its calls end, and the run ends when its agent has seen that. One that has ended is fine.
#[utoipa::path(post, path = "/v1/runs/{run}/abort", tag = "agents", params(TheRun),
    request_body(content = AbortBody, example = json!({ "reason": "not needed any more" })),
    responses((status = 204), Problems))]
pub(super) async fn abort(
    State(api): State<Api>,
    caller: Caller,
    Path(run): Path<String>,
    JsonBody(AbortBody { reason }): JsonBody<AbortBody>,
) -> Result<StatusCode, Refusal> {
    api.run_of(&caller, &run).await?;
    api.agents_or_refuse()?.abort(&run, reason.as_deref().unwrap_or("the caller aborted the run")).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Goes on with a run whose process is gone. A server does so with its own runs when it starts. `409`: the run has ended, or
/// its process lives, or there is no such agent any more.
#[utoipa::path(post, path = "/v1/runs/{run}/resume", tag = "agents", params(TheRun),
    responses((status = 202, description = "The run goes on", body = RunAnswer), Problems))]
pub(super) async fn resume(
    State(api): State<Api>,
    caller: Caller,
    Path(run): Path<String>,
) -> Result<impl IntoResponse, Refusal> {
    let record = api.run_of(&caller, &run).await?;
    if api.agents_or_refuse()?.resume_run(&run).await?.is_none() {
        let why = match record.status {
            RunStatus::Active => "another process runs it, or its agent is not known here",
            RunStatus::Completed | RunStatus::Errored => "it has ended",
        };
        return Err(Error::new(ErrorKind::Conflict, format!("go on with run `{run}`: {why}")).into());
    }
    Ok((StatusCode::ACCEPTED, Json(shown(&api, api.run_of(&caller, &run).await?).await?)))
}
