//! The tools for models: their declarations, and calls of them.

use axum::Json;
use axum::extract::{Path, State};
use eyot::wire::ToolAnswer;
use eyot::{CancellationToken, Error, ErrorKind, SandboxName};
use eyot_tools::{
    PROVIDER_TOOLSET, ToolContent, ToolContext, ToolFormat, ToolOutput, Toolset, handle_tool_call,
    toolset_names, toolset_over,
};
use serde::Deserialize;
use serde_json::{Value, json};
use utoipa::IntoParams;

use super::access::Caller;
use super::extract::JsonBody;
use super::query::Params;
use super::state::Api;
use crate::mcp::POOL_HEADER;
use crate::problem::{Problems, Refusal};

/// The toolset behind `/tool/{tool}`.
const POOL: &str = "pool";

/// The query of the declarations.
#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(super) struct DeclarationsQuery {
    /// `mcp` (the default), `anthropic`, `openai`, …
    format: Option<String>,
}

/// Declares the tools of a toolset in a model provider's format.
#[utoipa::path(get, path = "/v1/toolsets/{toolset}", tag = "tools",
    params(("toolset" = String, Path, description = "`pool`, `workspace`, `coding`, …", example = "pool"), DeclarationsQuery),
    responses((status = 200, body = Object), Problems))]
pub(super) async fn declare(
    State(api): State<Api>,
    _: Caller,
    Path(name): Path<String>,
    Params(DeclarationsQuery { format }): Params<DeclarationsQuery>,
) -> Result<Json<Value>, Refusal> {
    let format = match format {
        None => ToolFormat::Mcp,
        Some(text) => serde_json::from_value(Value::String(text.clone()))
            .map_err(|_| Error::invalid("format", format!("is not known: `{text}`")))?,
    };
    Ok(Json(named(&api, &name)?.schemas(format)))
}

/// Finds a toolset. `provider` is the one that the provider brings.
fn named(api: &Api, name: &str) -> Result<Toolset, Refusal> {
    if name != PROVIDER_TOOLSET && !toolset_names().contains(&name) {
        let message = format!("there is no toolset `{name}`; there are: {}", toolset_names().join(", "));
        return Err(Error::new(ErrorKind::NotFound, message).into());
    }
    Ok(toolset_over(api.engine().provider().as_ref(), name)?)
}

/// The query of a call.
#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(super) struct CallQuery {
    /// The pool. By default the key's first pool.
    pool: Option<String>,
}

/// Calls a tool with its arguments.
///
/// A failure is for the model to read: an answer with `is_error`.
#[utoipa::path(post, path = "/v1/toolsets/{toolset}/{tool}", tag = "tools",
    request_body(content = Object, example = json!({ "sandbox": "dev", "command": "echo hello" })),
    params(("toolset" = String, Path, description = "`pool`, `workspace`, `coding`, …", example = "pool"),
        ("tool" = String, Path, description = "The tool's name", example = "shell"), CallQuery),
    responses((status = 200, body = ToolAnswer), Problems))]
pub(super) async fn call(
    State(api): State<Api>,
    caller: Caller,
    Path((set, tool)): Path<(String, String)>,
    Params(CallQuery { pool }): Params<CallQuery>,
    JsonBody(arguments): JsonBody<Value>,
) -> Result<Json<ToolAnswer>, Refusal> {
    let pool = caller.pool(pool.as_deref())?;
    answer(&api, pool, &set, &tool, arguments).await
}

/// Calls a tool of the toolset `pool` and answers with the tool's bare result.
///
/// It acts in the key's first pool unless a header `Eyot-Pool` names another. A failure is for the
/// model to read: `{"error": sentence}`.
#[utoipa::path(post, path = "/tool/{tool}", tag = "tools",
    request_body(content = Object, example = json!({ "sandbox": "dev", "command": "echo hello" })),
    params(("tool" = String, Path, description = "The tool's name", example = "shell"),
        ("eyot-pool" = Option<String>, Header, description = "The pool; by default the key's own")),
    responses((status = 200, body = Object), Problems))]
pub(super) async fn call_pool(
    State(api): State<Api>,
    caller: Caller,
    Path(tool): Path<String>,
    headers: axum::http::HeaderMap,
    JsonBody(arguments): JsonBody<Value>,
) -> Result<Json<Value>, Refusal> {
    let pool = headers.get(POOL_HEADER).and_then(|pool| pool.to_str().ok());
    let Json(ToolAnswer { content, structured, .. }) =
        answer(&api, caller.pool(pool)?, POOL, &tool, arguments).await?;
    Ok(Json(structured.unwrap_or_else(|| json!({ "error": content.concat() }))))
}

async fn answer(
    api: &Api,
    pool: SandboxName,
    set: &str,
    tool: &str,
    arguments: Value,
) -> Result<Json<ToolAnswer>, Refusal> {
    let tools = named(api, set)?;
    if tools.get(tool).is_none() {
        let message = format!("there is no tool `{tool}`; `{set}` has: {}", tools.names().join(", "));
        return Err(Error::new(ErrorKind::NotFound, message).into());
    }
    // A client that goes away takes its call with it.
    let cancel = CancellationToken::new();
    let _gone = cancel.clone().drop_guard();
    let context = ToolContext::new(api.pool(&pool)?.pool().clone()).with_cancel(cancel);
    Ok(Json(tool_answer(handle_tool_call(&context, &tools, tool, arguments).await)))
}

fn tool_answer(output: ToolOutput) -> ToolAnswer {
    let content = output.content.iter().map(|piece| match piece {
        ToolContent::Text(text) => text.clone(),
        // The answer is text; a client that wants images asks by MCP.
        ToolContent::Image { data, mime_type } => {
            format!("[Image: {mime_type}, {} base64 chars]", data.len())
        }
        // The table may learn to say more than this version of the server can pass on.
        other => format!("{other:?}"),
    });
    ToolAnswer { content: content.collect(), structured: output.structured, is_error: output.is_error }
}
