//! Models: messages in, a stream of events out.
//!
//! The agent loop knows only the trait [`Model`]. The module `models` has models behind an HTTP API, and
//! [`crate::ScriptedModel`] is a model in this process that plays the script of a test.

use std::fmt;
use std::time::Duration;

use async_trait::async_trait;
use futures_util::stream::BoxStream;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::message::{ChatMessage, ContentBlock, StopReason};
use crate::usage::{TokenPrices, TokenUsage};

/// The default for the most tokens that a model writes in one turn.
pub const DEFAULT_MAX_TOKENS: u32 = 4096;

/// A model: messages in, a stream of events out.
#[async_trait]
pub trait Model: Send + Sync {
    /// Returns the facts about the model.
    fn info(&self) -> &ModelInfo;

    /// Asks for one turn. The stream ends with [`ModelEvent::Done`] or with an error; a stream that ends with neither was cut
    /// off. Dropping the stream ends the turn.
    async fn stream(&self, request: ModelRequest) -> Result<ModelStream, ModelError>;
}

/// The events of one turn.
pub type ModelStream = BoxStream<'static, Result<ModelEvent, ModelError>>;

/// The facts about a model.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ModelInfo {
    /// The id at the provider.
    pub id: String,
    /// The provider, such as `anthropic`.
    pub provider: String,
    /// The protocol.
    pub api: ModelApi,
    /// The most tokens that a conversation may have; 0: unknown.
    pub context_window: u64,
    /// The most tokens that the model writes in one turn.
    pub max_tokens: u32,
    /// Set if the model can reason before it answers.
    pub reasoning: bool,
    /// Set if the model accepts images.
    pub images: bool,
    /// The prices of the tokens.
    pub prices: TokenPrices,
}

/// The protocol of a model.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum ModelApi {
    /// Anthropic's Messages.
    AnthropicMessages,
    /// OpenAI's chat completions, which most local servers speak.
    OpenaiCompletions,
    /// OpenAI's responses.
    OpenaiResponses,
    /// A model in this process.
    InProcess,
}

impl ModelApi {
    /// The name on the wire.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::AnthropicMessages => "anthropic-messages",
            Self::OpenaiCompletions => "openai-completions",
            Self::OpenaiResponses => "openai-responses",
            Self::InProcess => "in-process",
        }
    }
}

/// The effort of a model's reasoning.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ThinkingLevel {
    /// No reasoning.
    Off,
    /// The least reasoning.
    Minimal,
    /// Little reasoning.
    Low,
    /// The default.
    #[default]
    Medium,
    /// Much reasoning.
    High,
    /// The most reasoning.
    XHigh,
}

/// A request for one turn.
#[derive(Debug, Clone, PartialEq)]
pub struct ModelRequest {
    /// The instructions before the conversation.
    pub system_prompt: Option<String>,
    /// The conversation. The last message is not the model's.
    pub messages: Vec<ChatMessage>,
    /// The tools that the model may call.
    pub tools: Vec<ToolDeclaration>,
    /// The most tokens that the model may write; `None`: [`ModelInfo::max_tokens`].
    pub max_tokens: Option<u32>,
    /// The reasoning effort, if the model can reason.
    pub thinking: ThinkingLevel,
    /// An id that is the same for all turns of a conversation, for the provider's caches.
    pub session_id: Option<String>,
}

/// A tool as the model sees it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ToolDeclaration {
    /// The name.
    pub name: String,
    /// The description.
    pub description: String,
    /// The JSON Schema of its arguments.
    pub parameters: Value,
}

/// An event of a turn.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum ModelEvent {
    /// A piece of text.
    TextDelta(String),
    /// Reasoning begins.
    ThinkingStart,
    /// A piece of reasoning.
    ThinkingDelta(String),
    /// Reasoning ended. This is its whole text.
    ThinkingEnd(String),
    /// A tool call begins.
    ToolCallStart {
        /// The call.
        id: String,
        /// The tool.
        name: String,
    },
    /// A piece of the JSON text of a call's arguments.
    ToolCallDelta {
        /// The call.
        id: String,
        /// The piece.
        json: String,
    },
    /// The turn is complete. Nothing follows.
    Done(ModelTurn),
}

/// A complete turn.
#[derive(Debug, Clone, PartialEq)]
pub struct ModelTurn {
    /// Text, reasoning and tool calls, in the order in which they came.
    pub content: Vec<ContentBlock>,
    /// The reason for the end of the turn.
    pub stop_reason: StopReason,
    /// The tokens that the turn took, without their price.
    pub usage: TokenUsage,
}

/// The failure of a turn.
#[derive(Debug, Clone, PartialEq)]
pub struct ModelError {
    /// The kind, for code to match on.
    pub kind: ModelErrorKind,
    /// The description, in one sentence. It never contains a key.
    pub message: String,
    /// The time to wait before the next request, if the provider asks for one.
    pub retry_after: Option<Duration>,
    /// The tokens that it took all the same, as far as the provider said so, without their price.
    pub usage: Box<TokenUsage>,
}

/// The kind of a model's failure.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum ModelErrorKind {
    /// The request itself is wrong.
    Invalid,
    /// The key is missing or wrong, or does not give access to the model.
    Unauthorized,
    /// The model or the address does not exist.
    NotFound,
    /// The conversation is longer than the model can read.
    ContextOverflow,
    /// The caller asked too often (429).
    RateLimited,
    /// The provider is overloaded (529, 503).
    Overloaded,
    /// The provider failed (another 5xx).
    Unavailable,
    /// The provider could not be reached.
    Unreachable,
    /// The provider did not answer in time.
    Timeout,
    /// The answer ended before it was complete.
    Cut,
    /// The answer can't be understood.
    Malformed,
}

impl ModelErrorKind {
    /// Returns whether the same request may succeed later.
    pub fn is_transient(self) -> bool {
        match self {
            Self::RateLimited
            | Self::Overloaded
            | Self::Unavailable
            | Self::Unreachable
            | Self::Timeout
            | Self::Cut => true,
            Self::Invalid | Self::Unauthorized | Self::NotFound | Self::ContextOverflow | Self::Malformed => {
                false
            }
        }
    }
}

impl ModelError {
    /// Creates a failure of this kind.
    pub fn new(kind: ModelErrorKind, message: impl Into<String>) -> Self {
        Self { kind, message: message.into(), retry_after: None, usage: Box::default() }
    }

    /// The failure of an answer whose end never came.
    pub(crate) fn cut() -> Self {
        Self::new(ModelErrorKind::Cut, "the model's answer ended before it was complete")
    }

    /// Returns this failure with a time to wait before the next request.
    #[must_use]
    pub fn with_retry_after(self, retry_after: Option<Duration>) -> Self {
        Self { retry_after, ..self }
    }

    /// The same failure with the tokens that it took.
    #[must_use]
    pub fn with_usage(self, usage: TokenUsage) -> Self {
        Self { usage: Box::new(usage), ..self }
    }
}

impl fmt::Display for ModelError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for ModelError {}
