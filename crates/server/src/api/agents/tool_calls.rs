//! Calls of tools that a run's caller answers itself.

use eyot_agent::ClientToolAnswer;

use super::bodies::WaitingToolCalls;
use super::*;

/// Lists the calls of a run that wait for its caller.
#[utoipa::path(get, path = "/v1/runs/{run}/tool_calls", tag = "agents", params(TheRun),
    responses((status = 200, body = WaitingToolCalls), Problems))]
pub(in crate::api) async fn waiting(
    State(api): State<Api>,
    caller: Caller,
    Path(run): Path<String>,
) -> Result<Json<WaitingToolCalls>, Refusal> {
    api.run_of(&caller, &run).await?;
    Ok(Json(WaitingToolCalls { tool_calls: api.agents_or_refuse()?.client_tool_calls(&run) }))
}

/// Answers a call of one of the caller's own tools. The first answer counts. `404`: no such call waits; it was answered, or its
/// deadline has passed.
#[utoipa::path(post, path = "/v1/runs/{run}/tool_calls/{call}", tag = "agents",
    params(TheRun, ("call" = String, Path, description = "The id of the call", example = "call_1")),
    request_body(content = ClientToolAnswer, example = json!({ "content": "It rains." })),
    responses((status = 204), Problems))]
pub(in crate::api) async fn answer(
    State(api): State<Api>,
    caller: Caller,
    Path((run, call)): Path<(String, String)>,
    JsonBody(body): JsonBody<ClientToolAnswer>,
) -> Result<StatusCode, Refusal> {
    api.run_of(&caller, &run).await?;
    api.agents_or_refuse()?.answer_client_tool_call(&run, &call, body)?;
    Ok(StatusCode::NO_CONTENT)
}
