//! Calls of a server's tools. A call always has an answer that a model can act on.

use std::sync::Arc;

use eyot_tools::{ToolContent, ToolContext, ToolOutput};
use rmcp::model::{CallToolRequestParams, CustomResult, JsonObject, ServerResult};
use rmcp::service::ServiceError;
use tokio::time::timeout;

use super::failure::HttpFailure;
use super::link::McpLink;
use super::unanswered::{may_have_run, reason};
use super::{content, request};

/// Calls a tool by the server's own name for it. If the call is given up (cancelled, timed out, dropped), the server is
/// told.
pub(super) async fn call(
    link: Arc<McpLink>,
    tool: Arc<str>,
    context: ToolContext,
    arguments: JsonObject,
) -> ToolOutput {
    let server = link.server();
    let answered = tokio::select! {
        biased;
        () = context.cancel.cancelled() => {
            return ToolOutput::error(format!("the call of `{tool}` was cancelled; MCP server `{server}` was told to stop"));
        }
        () = link.closed().cancelled() => return ToolOutput::from(link.closed_error()),
        answered = timeout(link.call_timeout(), send(&link, &tool, &context, arguments)) => answered,
    };
    match answered {
        Ok(Ok(output)) => output,
        Ok(Err(sentence)) => ToolOutput::error(link.secrets().hide(&sentence)),
        Err(_) => {
            let seconds = link.call_timeout().as_secs_f64();
            ToolOutput::error(format!(
                "MCP server `{server}` did not answer the call of `{tool}` within {seconds} s and was told to stop; \
                 what it has done so far may stay. Ask for less at once, or go on without this tool"
            ))
        }
    }
}

/// Sends a call and waits for its answer. An error is a sentence for the model.
async fn send(
    link: &McpLink,
    tool: &str,
    context: &ToolContext,
    arguments: JsonObject,
) -> Result<ToolOutput, String> {
    let server = link.server();
    let (peer, http) = link.session().await.map_err(|error| match error.hint() {
        Some(hint) => format!("{error}\nhint: {hint}"),
        None => error.to_string(),
    })?;
    let asked = CallToolRequestParams::new(tool.to_owned()).with_arguments(arguments);
    match request::send(&peer, link.handler(), context.clone(), asked).await {
        Ok(result) => answer(link, tool, &result),
        Err(ServiceError::McpError(error)) => {
            let (message, code) = (error.message, error.code.0);
            Err(format!("MCP server `{server}` refused the call of `{tool}`: {message} (code {code})"))
        }
        Err(error) => Err(lost(server, tool, &reason(&http, &error), may_have_run(&error))),
    }
}

/// Returns the server's answer. An error is a sentence for the model.
fn answer(link: &McpLink, tool: &str, result: &ServerResult) -> Result<ToolOutput, String> {
    let server = link.server();
    let (content, is_error) = match result {
        ServerResult::CallToolResult(result) => (content::content(result), result.is_error == Some(true)),
        ServerResult::InputRequiredResult(_) => {
            return Err(format!(
                "`{tool}` of MCP server `{server}` asks for input from a person, and there is none here; \
                 call it with everything it needs, or go on without it"
            ));
        }
        ServerResult::CreateTaskResult(_) => {
            return Err(format!(
                "`{tool}` of MCP server `{server}` runs in the background only, which is not supported here; \
                 go on without it"
            ));
        }
        ServerResult::CustomResult(CustomResult(result)) => content::content_of_unknown(result)
            .ok_or_else(|| lost(server, tool, &HttpFailure::Garbage.to_string(), true))?,
        _ => return Err(lost(server, tool, &HttpFailure::Garbage.to_string(), true)),
    };
    // Once more: JSON can write a credential with escapes.
    let hide = |piece| match piece {
        ToolContent::Text(text) => ToolContent::Text(link.secrets().hide_credentials(text)),
        other => other,
    };
    Ok(ToolOutput { content: content.into_iter().map(hide).collect(), structured: None, is_error })
}

fn lost(server: &str, tool: &str, reason: &str, may_have_run: bool) -> String {
    let done =
        if may_have_run { "It may have been carried out or not. " } else { "It was not carried out. " };
    format!(
        "the call of `{tool}` got no answer from MCP server `{server}`: {reason}. {done}\
         Another call connects again; if that fails too, go on without this server"
    )
}
