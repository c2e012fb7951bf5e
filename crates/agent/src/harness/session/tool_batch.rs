//! The tool calls of one turn. They run at the same time, and each answer is recorded as it arrives.

use std::time::{Duration, Instant};

use eyot_tools::{ToolContent, ToolOutput, handle_tool_call};
use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use serde_json::{Value, json};

use super::operation::{Operation, elapsed_ms};
use super::prompt::PromptCall;
use crate::conversation::ConversationEntry;
use crate::event::AgentEventKind;
use crate::message::{ChatMessage, ContentBlock, ToolCall, ToolResultMessage, timestamp_ms};
use crate::redaction::shown_arguments;
use crate::result_tools::{FINISH, GIVE_UP};
use crate::tool_image::image_block;

impl Operation {
    /// Runs the tool calls of a turn, whose start events were already published. Returns whether the calls ended the task: all
    /// are `finish` or `give_up`, and all succeeded.
    pub(super) async fn run_tools(&self, call: &PromptCall, tool_calls: Vec<ToolCall>) -> bool {
        let ends_only = tool_calls.iter().all(|call| [FINISH, GIVE_UP].contains(&call.name.as_str()));
        let mut running: FuturesUnordered<_> =
            tool_calls.into_iter().map(|tool_call| self.run_tool(call, tool_call)).collect();
        let mut all_taken = true;
        while let Some(was_taken) = running.next().await {
            all_taken &= was_taken;
        }
        ends_only && all_taken
    }

    /// Runs one tool call. Returns whether it succeeded.
    async fn run_tool(&self, call: &PromptCall, tool_call: ToolCall) -> bool {
        let started = Instant::now();
        let output = self.answer(call, &tool_call).await;
        let is_error = output.is_error;
        let (content, details) = (blocks(&output), output.structured.unwrap_or_else(|| json!({})));
        let result = json!({"content": content, "details": details});
        let event = AgentEventKind::ToolCall {
            tool_name: tool_call.name.clone(),
            tool_call_id: tool_call.id.clone(),
            is_error,
            result,
            duration_ms: elapsed_ms(started),
        };
        let message = ChatMessage::ToolResult(ToolResultMessage {
            tool_call_id: tool_call.id,
            tool_name: tool_call.name,
            content,
            details,
            is_error,
            timestamp: timestamp_ms(),
        });
        self.append_with_event(ConversationEntry::Message { message, source: call.source }, event);
        !is_error
    }

    async fn answer(&self, call: &PromptCall, tool_call: &ToolCall) -> ToolOutput {
        let cancel = self.abort.token().child_token();
        let context = self.session.source.context().with_cancel(cancel.clone()).with_call_id(&tool_call.id);
        let run =
            handle_tool_call(&context, &call.toolbox.tools, &tool_call.name, tool_call.arguments.clone());
        let Some(limit) = self.session.harness.tool_timeout_ms else { return run.await };
        let mut run = std::pin::pin!(run);
        tokio::select! {
            biased;
            output = &mut run => output,
            () = tokio::time::sleep(Duration::from_millis(limit)) => {
                // This kills a command, and its answer then has the output so far.
                cancel.cancel();
                timed_out(&tool_call.name, limit, run.await)
            }
        }
    }
}

/// Returns the event for the start of a call.
pub(super) fn tool_start(tool_call: &ToolCall) -> AgentEventKind {
    AgentEventKind::ToolStart {
        tool_name: tool_call.name.clone(),
        tool_call_id: tool_call.id.clone(),
        args: shown_arguments(&tool_call.arguments),
    }
}

fn timed_out(name: &str, limit: u64, cancelled: ToolOutput) -> ToolOutput {
    let so_far = cancelled.as_text();
    ToolOutput::error(format!("the call of `{name}` was stopped after {limit} ms\n\n{so_far}"))
}

fn blocks(output: &ToolOutput) -> Vec<ContentBlock> {
    let block = |piece: &ToolContent| match piece {
        ToolContent::Text(text) => ContentBlock::text(text.clone()),
        ToolContent::Image { data, mime_type } => image_block(data, mime_type),
        // A piece of an unknown kind is shown to the model as JSON.
        other => ContentBlock::text(serde_json::to_value(other).unwrap_or(Value::Null).to_string()),
    };
    output.content.iter().map(block).collect()
}
