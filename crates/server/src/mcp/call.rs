//! One call of a tool: it runs with the session's pool, is cancelled with its request or its
//! session, reports progress if the client asked for that, and is answered in MCP's form.

use eyot_engine::SandboxPool;
use eyot_tools::{ToolContent, ToolContext, ToolOutput, Toolset, handle_tool_call};
use rmcp::RoleServer;
use rmcp::model::{CallToolRequestParams, CallToolResponse, CallToolResult, ContentBlock};
use rmcp::service::RequestContext;
use serde_json::Value;
use tokio_util::sync::CancellationToken;

use super::progress::Watcher;

/// One call of a tool.
pub(super) struct McpCall<'a> {
    pub tools: &'a Toolset,
    pub pool: SandboxPool,
    pub request: CallToolRequestParams,
    pub context: &'a RequestContext<RoleServer>,
    pub ended: &'a CancellationToken,
}

impl McpCall<'_> {
    /// Runs the call. A failure is an answer that the model reads, never a protocol error.
    pub(super) async fn run(self) -> CallToolResponse {
        // Its own token, for a request's is also cancelled by rmcp once its answer is on the way.
        let cancel = self.context.ct.child_token();
        let over = CancellationToken::new();
        let mut tool = ToolContext::new(self.pool).with_cancel(cancel.clone());
        let watcher = self.context.meta.get_progress_token().map(|token| Watcher::new(token, self.context));
        if let Some(watcher) = &watcher {
            tool = tool.with_progress(watcher.ear());
        }
        let input = self.request.arguments.map_or(Value::Null, Value::Object);
        let running = async {
            let output = handle_tool_call(&tool, self.tools, &self.request.name, input).await;
            over.cancel();
            output
        };
        let watching = async {
            if let Some(watcher) = &watcher {
                watcher.notify_until(&over, &cancel).await;
            }
        };
        let ending = async {
            tokio::select! {
                () = over.cancelled() => {}
                () = self.ended.cancelled() => cancel.cancel(),
            }
        };
        let (output, (), ()) = tokio::join!(running, watching, ending);
        answer(output)
    }
}

/// Answers a call that could not begin.
pub(super) fn refused(sentence: String) -> CallToolResponse {
    answer(ToolOutput::error(sentence))
}

fn answer(output: ToolOutput) -> CallToolResponse {
    let content = output.content.into_iter().map(block).collect();
    let mut result =
        if output.is_error { CallToolResult::error(content) } else { CallToolResult::success(content) };
    result.structured_content = output.structured;
    result.into()
}

fn block(piece: ToolContent) -> ContentBlock {
    match piece {
        ToolContent::Text(text) => ContentBlock::text(text),
        ToolContent::Image { data, mime_type } => ContentBlock::image(data, mime_type),
        // The table may learn to say more than this version of the server can pass on.
        other => ContentBlock::text(format!("{other:?}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_image_of_a_tool_is_passed_on() {
        let output = ToolOutput::text("a dog").and_image("iVBORw0KGgo=", "image/png");
        assert_eq!(output.as_text(), "a dog");
        let content: Vec<_> = output.content.into_iter().map(block).collect();
        let image = serde_json::json!({"type": "image", "data": "iVBORw0KGgo=", "mimeType": "image/png"});
        assert_eq!(serde_json::json!(content)[1], image);
    }
}
