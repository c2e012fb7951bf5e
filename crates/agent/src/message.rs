//! Messages of a conversation, as they are stored, sent to a model and shown in events.
//!
//! Their JSON is the same as in Flue's runtime, so that programs that read Flue's conversations can read these.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::usage::TokenUsage;

/// A message of a conversation.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "role", rename_all = "camelCase")]
pub enum ChatMessage {
    /// A message to the model.
    User(UserMessage),
    /// A message of the model.
    Assistant(AssistantMessage),
    /// The answer of one tool call.
    ToolResult(ToolResultMessage),
}

/// A message to the model.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct UserMessage {
    /// Text and images, in this order.
    pub content: Vec<ContentBlock>,
    /// The time, in milliseconds since 1970.
    pub timestamp: u64,
}

/// A turn of the model.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct AssistantMessage {
    /// Text, reasoning and tool calls, in the order in which they came.
    pub content: Vec<ContentBlock>,
    /// The protocol of the model, such as `anthropic-messages`.
    pub api: String,
    /// The model's provider, such as `anthropic`.
    pub provider: String,
    /// The model's id.
    pub model: String,
    /// The tokens that the turn took.
    pub usage: TokenUsage,
    /// The reason for the end of the turn.
    pub stop_reason: StopReason,
    /// The failure, if the turn failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error_message: Option<String>,
    /// The time, in milliseconds since 1970.
    pub timestamp: u64,
}

/// The answer of a tool call.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ToolResultMessage {
    /// The call that it answers.
    pub tool_call_id: String,
    /// The tool.
    pub tool_name: String,
    /// Text and images, in this order.
    pub content: Vec<ContentBlock>,
    /// Further data for programs. The model does not get it.
    #[serde(default)]
    pub details: Value,
    /// The call failed.
    pub is_error: bool,
    /// The time, in milliseconds since 1970.
    pub timestamp: u64,
}

/// A piece of a message.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "camelCase", rename_all_fields = "camelCase")]
#[non_exhaustive]
pub enum ContentBlock {
    /// Text.
    Text {
        /// The text.
        text: String,
        /// The id and the phase that OpenAI's responses gave it, as JSON: they go back to the model with it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        text_signature: Option<String>,
    },
    /// An image.
    Image {
        /// The file, as base64.
        data: String,
        /// The type, such as `image/png`.
        mime_type: String,
    },
    /// The model's reasoning. Its signature goes back to the model unchanged.
    Thinking {
        /// The text, or a note if the provider withholds it.
        thinking: String,
        /// The signature or the encrypted reasoning that the provider needs back.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        thinking_signature: Option<String>,
        /// Set if the provider withholds the text. Only the signature is present then.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        redacted: bool,
    },
    /// A tool call of the model.
    ToolCall(ToolCall),
}

/// A tool call of a model.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ToolCall {
    /// The id, which the answer refers to.
    pub id: String,
    /// The tool.
    pub name: String,
    /// The arguments: a JSON object, or a text if the model wrote something else.
    pub arguments: Value,
}

/// The reason for the end of a turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub enum StopReason {
    /// The model finished its answer.
    Stop,
    /// The model reached its limit of output tokens.
    Length,
    /// The model calls tools.
    ToolUse,
    /// The model refused to answer.
    Refusal,
    /// The turn failed.
    Error,
    /// The turn was aborted.
    Aborted,
}

impl StopReason {
    /// The name on the wire.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Stop => "stop",
            Self::Length => "length",
            Self::ToolUse => "toolUse",
            Self::Refusal => "refusal",
            Self::Error => "error",
            Self::Aborted => "aborted",
        }
    }
}

impl ContentBlock {
    /// Creates a piece of text.
    pub fn text(text: impl Into<String>) -> Self {
        Self::Text { text: text.into(), text_signature: None }
    }

    /// Returns the text, if this is a piece of text.
    pub fn as_text(&self) -> Option<&str> {
        match self {
            Self::Text { text, .. } => Some(text),
            _ => None,
        }
    }
}

impl ChatMessage {
    /// Creates a message to the model, with the current time.
    pub fn user(text: impl Into<String>) -> Self {
        Self::User(UserMessage { content: vec![ContentBlock::text(text)], timestamp: timestamp_ms() })
    }

    /// Returns the pieces.
    pub fn content(&self) -> &[ContentBlock] {
        match self {
            Self::User(message) => &message.content,
            Self::Assistant(message) => &message.content,
            Self::ToolResult(message) => &message.content,
        }
    }
}

impl AssistantMessage {
    /// Returns the pieces of text, one per line.
    pub fn text(&self) -> String {
        let texts = self.content.iter().filter_map(ContentBlock::as_text);
        texts.collect::<Vec<_>>().join("\n")
    }

    /// Returns the tool calls, in order.
    pub fn tool_calls(&self) -> impl Iterator<Item = &ToolCall> {
        self.content.iter().filter_map(|block| match block {
            ContentBlock::ToolCall(call) => Some(call),
            _ => None,
        })
    }
}

impl ToolCall {
    /// Parses arguments as a model writes them. An empty text becomes an empty object, and invalid JSON stays a text.
    pub fn parse_arguments(json: &str) -> Value {
        if json.trim().is_empty() {
            return Value::Object(Map::new());
        }
        serde_json::from_str(json).unwrap_or_else(|_| Value::String(json.to_owned()))
    }
}

/// Returns the current time, in milliseconds since 1970.
pub(crate) fn timestamp_ms() -> u64 {
    u64::try_from(eyot::internal::now_ms()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_message_has_the_json_of_flues_conversations() {
        let call = ToolCall { id: "c1".into(), name: "bash".into(), arguments: json!({"command": "ls"}) };
        let thinking = ContentBlock::Thinking {
            thinking: "hm".into(),
            thinking_signature: Some("sig".into()),
            redacted: false,
        };
        let message = ChatMessage::Assistant(AssistantMessage {
            content: vec![thinking, ContentBlock::text("hi"), ContentBlock::ToolCall(call)],
            api: "anthropic-messages".into(),
            provider: "anthropic".into(),
            model: "m".into(),
            usage: TokenUsage::default(),
            stop_reason: StopReason::ToolUse,
            error_message: None,
            timestamp: 7,
        });
        let value = serde_json::to_value(&message).unwrap();
        let expected = json!([
            {"type": "thinking", "thinking": "hm", "thinkingSignature": "sig"},
            {"type": "text", "text": "hi"},
            {"type": "toolCall", "id": "c1", "name": "bash", "arguments": {"command": "ls"}},
        ]);
        assert_eq!((&value["role"], &value["stopReason"]), (&json!("assistant"), &json!("toolUse")));
        assert_eq!(value["content"], expected);
        assert_eq!(serde_json::from_value::<ChatMessage>(value).unwrap(), message);
    }

    #[test]
    fn arguments_that_are_no_json_stay_text() {
        assert_eq!(ToolCall::parse_arguments(" "), json!({}));
        assert_eq!(ToolCall::parse_arguments("{\"a\": 1}"), json!({"a": 1}));
        assert_eq!(ToolCall::parse_arguments("{\"a\": "), json!("{\"a\": "));
    }
}
