//! Commands of the caller. The next prompt shows them to the model.

use std::collections::BTreeMap;
use std::time::Instant;

use eyot::{Command, ExecOptions, ExecResult, Outcome};
use eyot_tools::{ToolOutput, bash_answer};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use uuid::Uuid;

use super::no_sandbox;
use super::operation::{Operation, OperationResult, elapsed_ms};
use crate::conversation::{ConversationEntry, MessageSource};
use crate::event::AgentEventKind;
use crate::failure::{AgentError, AgentResult};
use crate::message::{
    AssistantMessage, ChatMessage, ContentBlock, StopReason, ToolCall, ToolResultMessage, timestamp_ms,
};
use crate::redaction::shown_arguments;
use crate::usage::TokenUsage;

/// The `api` of the turns that represent a command of the caller. No model wrote them.
pub(super) const SHELL_API: &str = "flue-shell";

/// Options of a command.
#[derive(Debug, Clone, Default)]
pub struct ShellOptions {
    /// The working directory; `None`: the session's.
    pub cwd: Option<String>,
    /// Variables, in addition to the sandbox's. Their values are shown neither in events nor to the model.
    pub env: BTreeMap<String, String>,
    /// The time after which the command is killed, in milliseconds; by default never.
    pub timeout_ms: Option<u64>,
}

/// The result of a command.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ShellResult {
    /// The standard output, as text.
    pub stdout: String,
    /// The standard error, as text.
    pub stderr: String,
    /// The exit code: 124 after a timeout, 128 plus the number after a signal.
    pub exit_code: i32,
}

impl OperationResult for ShellResult {
    fn to_event(&self) -> Value {
        serde_json::to_value(self).unwrap_or_default()
    }
}

impl Operation {
    pub(super) async fn shell(&self, command: String, options: ShellOptions) -> AgentResult<ShellResult> {
        self.close_interrupted_work();
        if self.has_begun() {
            return self.kept_result(&command);
        }
        let call = ToolCall {
            id: Uuid::new_v4().to_string(),
            name: "bash".to_owned(),
            arguments: arguments(&command, &options),
        };
        self.write_start(&call, &command);
        // A command has side effects, so its start is recorded before it runs.
        self.scope.journal().written().await?;
        let started = Instant::now();
        let done = self.execute(&command, options).await;
        let output = match &done {
            Ok(result) => bash_answer(result, None),
            Err(error) => ToolOutput::error(error.to_string()),
        };
        let result = done.as_ref().ok().map(shell_result);
        self.write_end(call, &command, &output, result.as_ref(), started);
        match (done?.outcome, result) {
            (Outcome::Cancelled, _) | (_, None) => Err(self.abort.error()),
            (_, Some(result)) => Ok(result),
        }
    }

    /// Returns the result of a command that an earlier process began. The command is not run again.
    fn kept_result(&self, command: &str) -> AgentResult<ShellResult> {
        let conversation = self.session.lock();
        let kept = conversation.entries_from(self.from).iter().find_map(|entry| match entry {
            ConversationEntry::Message { message: ChatMessage::ToolResult(result), .. } => {
                serde_json::from_value(result.details.get("result")?.clone()).ok()
            }
            _ => None,
        });
        kept.ok_or_else(|| {
            let message = format!("run `{command}`: it was interrupted and may have done part of its work");
            AgentError::conflict(message)
        })
    }

    async fn execute(&self, command: &str, options: ShellOptions) -> AgentResult<ExecResult> {
        let sandbox = self.session.source.sandbox().await?.ok_or_else(no_sandbox)?;
        let ShellOptions { cwd, env, timeout_ms } = options;
        let cancel = Some(self.abort.token().clone());
        let options = ExecOptions { cwd, env, timeout_ms, cancel, ..ExecOptions::default() };
        sandbox.exec(Command::Shell(command.to_owned()), options).await.map_err(AgentError::from)
    }

    /// Records the command as a tool call that the user asked the model for.
    fn write_start(&self, call: &ToolCall, command: &str) {
        let text = format!("Run this shell command:\n\n```bash\n{command}\n```");
        let asked = ChatMessage::Assistant(AssistantMessage {
            content: vec![ContentBlock::ToolCall(call.clone())],
            api: SHELL_API.to_owned(),
            provider: "flue".to_owned(),
            model: String::new(),
            usage: TokenUsage::default(),
            stop_reason: StopReason::ToolUse,
            error_message: None,
            timestamp: timestamp_ms(),
        });
        let event = AgentEventKind::ToolStart {
            tool_name: call.name.clone(),
            tool_call_id: call.id.clone(),
            args: call.arguments.clone(),
        };
        self.append_all_with_event([ChatMessage::user(text), asked].into_iter().map(entry), event);
    }

    fn write_end(
        &self,
        call: ToolCall,
        command: &str,
        output: &ToolOutput,
        kept: Option<&ShellResult>,
        started: Instant,
    ) {
        let content = vec![ContentBlock::text(output.as_text())];
        let details = json!({"command": command, "exitCode": kept.map_or(-1, |kept| kept.exit_code)});
        let event = AgentEventKind::ToolCall {
            tool_name: call.name.clone(),
            tool_call_id: call.id.clone(),
            is_error: output.is_error,
            result: json!({"content": content, "details": details}),
            duration_ms: elapsed_ms(started),
        };
        let message = ChatMessage::ToolResult(ToolResultMessage {
            tool_call_id: call.id,
            tool_name: call.name,
            content,
            details: json!({"command": command, "result": kept}),
            is_error: output.is_error,
            timestamp: timestamp_ms(),
        });
        self.append_all_with_event([entry(message), ConversationEntry::TurnEnd].into_iter(), event);
    }
}

fn entry(message: ChatMessage) -> ConversationEntry {
    ConversationEntry::Message { message, source: MessageSource::Shell }
}

fn shell_result(result: &ExecResult) -> ShellResult {
    ShellResult {
        stdout: result.stdout_text(),
        stderr: result.stderr_text(),
        exit_code: result.outcome.exit_code(),
    }
}

/// Returns the arguments for events and the conversation, without the values of variables.
fn arguments(command: &str, options: &ShellOptions) -> Value {
    let mut arguments = Map::new();
    arguments.insert("command".to_owned(), json!(command));
    if let Some(cwd) = &options.cwd {
        arguments.insert("cwd".to_owned(), json!(cwd));
    }
    if !options.env.is_empty() {
        arguments.insert("env".to_owned(), json!(options.env));
    }
    shown_arguments(&Value::Object(arguments))
}
