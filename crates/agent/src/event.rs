//! Events of a run, which report the agent's work as it happens.
//!
//! The kinds, the fields and the order of events are those of Flue 0.7.1. The JSON of an event is one object with the fields
//! of its kind and of [`AgentEvent`].

use std::time::{Duration, UNIX_EPOCH};

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::message::StopReason;
use crate::usage::TokenUsage;

/// An event of a run, and its place in the run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct AgentEvent {
    /// The kind, with its fields.
    #[serde(flatten)]
    pub kind: AgentEventKind,
    /// The run, or `None` for an event outside of a run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run_id: Option<String>,
    /// The number in the run, counted from 0 without a gap.
    pub event_index: u64,
    /// The time, in RFC 3339 with milliseconds.
    pub timestamp: String,
    /// The session.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session: Option<String>,
    /// The session that started the task of this session.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent_session: Option<String>,
    /// The task.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task_id: Option<String>,
    /// The harness.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub harness: Option<String>,
    /// The operation of the session.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub operation_id: Option<String>,
}

#[cfg(test)]
impl AgentEvent {
    /// An event of this kind, of nowhere.
    pub(crate) fn of_kind(kind: AgentEventKind) -> Self {
        Self {
            kind,
            run_id: None,
            event_index: 0,
            timestamp: String::new(),
            session: None,
            parent_session: None,
            task_id: None,
            harness: None,
            operation_id: None,
        }
    }
}

/// The place in a run that an event comes from.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct EventOrigin {
    pub(crate) session: Option<String>,
    pub(crate) parent_session: Option<String>,
    pub(crate) task_id: Option<String>,
    pub(crate) harness: Option<String>,
    pub(crate) operation_id: Option<String>,
}

impl EventOrigin {
    /// The origin of an event.
    pub(crate) fn of(event: &AgentEvent) -> Self {
        Self {
            session: event.session.clone(),
            parent_session: event.parent_session.clone(),
            task_id: event.task_id.clone(),
            harness: event.harness.clone(),
            operation_id: event.operation_id.clone(),
        }
    }

    /// The name of the session in the run.
    pub(crate) fn session_path(&self) -> String {
        format!(
            "{}/{}",
            self.harness.as_deref().unwrap_or_default(),
            self.session.as_deref().unwrap_or_default()
        )
    }
}

/// The kind of an event, with its fields.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case", rename_all_fields = "camelCase")]
#[non_exhaustive]
pub enum AgentEventKind {
    /// A run began.
    RunStart {
        /// The agent's instance.
        instance_id: String,
        /// The agent.
        agent_name: String,
        /// The time.
        started_at: String,
        /// The input of the run.
        payload: Value,
    },
    /// The model wrote a piece of text.
    TextDelta {
        /// The piece.
        text: String,
    },
    /// The model began to reason.
    ThinkingStart,
    /// The model reasoned.
    ThinkingDelta {
        /// The piece.
        delta: String,
    },
    /// The model ended its reasoning.
    ThinkingEnd {
        /// The whole reasoning.
        content: String,
    },
    /// A tool call began.
    ToolStart {
        /// The tool.
        tool_name: String,
        /// The id of the call.
        tool_call_id: String,
        /// The arguments, with the values of variables left out.
        #[serde(default, skip_serializing_if = "Value::is_null")]
        args: Value,
    },
    /// A tool call ended.
    ToolCall {
        /// The tool.
        tool_name: String,
        /// The id of the call.
        tool_call_id: String,
        /// The tool call failed.
        is_error: bool,
        /// The answer: `content` for the model, `details` for programs.
        #[serde(default, skip_serializing_if = "Value::is_null")]
        result: Value,
        /// The duration of the call.
        duration_ms: u64,
    },
    /// A turn of the model ended, including its tool calls.
    Turn {
        /// The duration of the turn.
        duration_ms: u64,
        /// The model.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        model: Option<String>,
        /// The tokens that it took.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        usage: Option<TokenUsage>,
        /// The reason for which the model stopped.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        stop_reason: Option<StopReason>,
        /// The turn failed.
        is_error: bool,
        /// The failure.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        error: Option<String>,
    },
    /// A task was started in a session of its own.
    TaskStart {
        /// The instructions.
        prompt: String,
        /// The subagent that does the task.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        role: Option<String>,
        /// The working directory.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        cwd: Option<String>,
    },
    /// A task ended.
    Task {
        /// The task failed.
        is_error: bool,
        /// The answer, or the failure.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        result: Option<String>,
        /// The duration of the task.
        duration_ms: u64,
    },
    /// The older part of a conversation is about to be replaced by a summary.
    CompactionStart {
        /// The reason.
        reason: CompactionReason,
        /// The estimated tokens of the conversation.
        estimated_tokens: u64,
    },
    /// The older part of a conversation was replaced by a summary.
    Compaction {
        /// The number of messages before.
        messages_before: u64,
        /// The number of messages after.
        messages_after: u64,
        /// The duration of the compaction.
        duration_ms: u64,
        /// The tokens that the summary took.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        usage: Option<TokenUsage>,
    },
    /// An operation of a session began.
    OperationStart {
        /// The kind.
        operation_kind: OperationKind,
    },
    /// An operation of a session ended.
    Operation {
        /// The kind.
        operation_kind: OperationKind,
        /// The duration of the operation.
        duration_ms: u64,
        /// The operation failed.
        is_error: bool,
        /// The failure.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        error: Option<EventError>,
        /// The result.
        #[serde(default, skip_serializing_if = "Value::is_null")]
        result: Value,
        /// The tokens that it took.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        usage: Option<TokenUsage>,
    },
    /// A line of the log.
    Log {
        /// The level.
        level: LogLevel,
        /// The text.
        message: String,
        /// Further data about the line.
        #[serde(default, skip_serializing_if = "Map::is_empty")]
        attributes: Map<String, Value>,
    },
    /// A session has finished its operation.
    Idle,
    /// A run ended.
    RunEnd {
        /// The result.
        #[serde(default)]
        result: Value,
        /// The run failed.
        is_error: bool,
        /// The failure.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        error: Option<EventError>,
        /// The duration of the run.
        duration_ms: u64,
    },
}

/// A failure, as reported in an event.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct EventError {
    /// The kind of the failure.
    pub name: String,
    /// The description, in one sentence.
    pub message: String,
}

/// The reason for a compaction.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum CompactionReason {
    /// The conversation nearly fills the model's context window.
    Threshold,
    /// The conversation exceeds the model's context window.
    Overflow,
    /// The caller requested the compaction.
    Manual,
}

/// An operation of a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum OperationKind {
    /// `prompt`.
    Prompt,
    /// `skill`.
    Skill,
    /// `task`.
    Task,
    /// `shell`.
    Shell,
    /// `compact`.
    Compact,
}

/// The level of a line of the log.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum LogLevel {
    /// Information.
    Info,
    /// A warning.
    Warn,
    /// A failure.
    Error,
}

impl OperationKind {
    /// The name on the wire.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Prompt => "prompt",
            Self::Skill => "skill",
            Self::Task => "task",
            Self::Shell => "shell",
            Self::Compact => "compact",
        }
    }
}

/// A time in milliseconds since 1970 (UTC), as events have it.
pub(crate) fn rfc3339(ms: u64) -> String {
    let time = UNIX_EPOCH + Duration::from_millis(ms);
    humantime::format_rfc3339_millis(time).to_string()
}

/// The time that a text of [`rfc3339`] says.
#[cfg(feature = "router")]
pub(crate) fn parse_rfc3339(text: &str) -> Option<u64> {
    let since = humantime::parse_rfc3339(text).ok()?.duration_since(UNIX_EPOCH).ok()?;
    u64::try_from(since.as_millis()).ok()
}

impl AgentEventKind {
    /// The names on the wire.
    pub const NAMES: [&str; 17] = [
        "run_start",
        "text_delta",
        "thinking_start",
        "thinking_delta",
        "thinking_end",
        "tool_start",
        "tool_call",
        "turn",
        "task_start",
        "task",
        "compaction_start",
        "compaction",
        "operation_start",
        "operation",
        "log",
        "idle",
        "run_end",
    ];

    /// The name on the wire.
    pub fn name(&self) -> &'static str {
        match self {
            Self::RunStart { .. } => "run_start",
            Self::TextDelta { .. } => "text_delta",
            Self::ThinkingStart => "thinking_start",
            Self::ThinkingDelta { .. } => "thinking_delta",
            Self::ThinkingEnd { .. } => "thinking_end",
            Self::ToolStart { .. } => "tool_start",
            Self::ToolCall { .. } => "tool_call",
            Self::Turn { .. } => "turn",
            Self::TaskStart { .. } => "task_start",
            Self::Task { .. } => "task",
            Self::CompactionStart { .. } => "compaction_start",
            Self::Compaction { .. } => "compaction",
            Self::OperationStart { .. } => "operation_start",
            Self::Operation { .. } => "operation",
            Self::Log { .. } => "log",
            Self::Idle => "idle",
            Self::RunEnd { .. } => "run_end",
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn an_event_has_the_fields_of_its_kind_beside_those_of_where_it_happened() {
        let event = AgentEvent {
            kind: AgentEventKind::ToolStart {
                tool_name: "bash".into(),
                tool_call_id: "c1".into(),
                args: json!({"command": "ls"}),
            },
            run_id: Some("run_1".into()),
            event_index: 3,
            timestamp: "2026-11-25T00:00:00.000Z".into(),
            session: Some("default".into()),
            parent_session: None,
            task_id: None,
            harness: Some("default".into()),
            operation_id: Some("op_1".into()),
        };
        let value = serde_json::to_value(&event).unwrap();
        let expected = json!({
            "type": "tool_start", "toolName": "bash", "toolCallId": "c1", "args": {"command": "ls"},
            "runId": "run_1", "eventIndex": 3, "timestamp": "2026-11-25T00:00:00.000Z",
            "session": "default", "harness": "default", "operationId": "op_1",
        });
        assert_eq!(value, expected);
        assert_eq!(serde_json::from_value::<AgentEvent>(value).unwrap(), event);
    }
}
