//! Models: messages in, a stream of events out.
//!
//! [`Model`] is all that the loop knows of a model. `models` has those behind an HTTP API, [`crate::ScriptedModel`] is one
//! in this process that says what a test wrote down for it.

use std::fmt;
use std::time::Duration;

use async_trait::async_trait;
use futures_util::stream::BoxStream;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::message::{ChatMessage, ContentBlock, StopReason};
use crate::usage::{TokenPrices, TokenUsage};

/// The most tokens that a model writes in one turn where nobody says another number.
pub const DEFAULT_MAX_TOKENS: u32 = 4096;

/// A model: messages in, a stream of events out.
#[async_trait]
pub trait Model: Send + Sync {
    /// Returns what is known of the model.
    fn info(&self) -> &ModelInfo;

    /// Asks for one turn. The stream ends with [`ModelEvent::Done`] or with an error; one that ends without either was cut.
    /// Dropping the stream ends the turn.
    async fn stream(&self, request: ModelRequest) -> Result<ModelStream, ModelError>;
}

/// The events of one turn.
pub type ModelStream = BoxStream<'static, Result<ModelEvent, ModelError>>;

/// The facts about a model.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ModelInfo {
    /// The id, as its provider knows it.
    pub id: String,
    /// The provider, such as `anthropic`.
    pub provider: String,
    /// The protocol it is asked by.
    pub api: ModelApi,
    /// The most tokens that a conversation with it may have; 0: it is not known.
    pub context_window: u64,
    /// The most tokens that it writes in one turn.
    pub max_tokens: u32,
    /// It can reason before it answers.
    pub reasoning: bool,
    /// It can see images.
    pub images: bool,
    /// The prices of its tokens.
    pub prices: TokenPrices,
}

/// The protocol by which a model is asked.
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

/// The effort that a model puts into reasoning before it answers.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ThinkingLevel {
    /// None.
    Off,
    /// The least.
    Minimal,
    /// Little.
    Low,
    /// The usual.
    #[default]
    Medium,
    /// Much.
    High,
    /// The most.
    XHigh,
}

/// One turn that is asked for.
#[derive(Debug, Clone, PartialEq)]
pub struct ModelRequest {
    /// Instructions that stand before the conversation.
    pub system_prompt: Option<String>,
    /// The conversation. The last message is not the model's.
    pub messages: Vec<ChatMessage>,
    /// The tools that the model may call.
    pub tools: Vec<ToolDeclaration>,
    /// The most tokens that it may write; `None`: [`ModelInfo::max_tokens`].
    pub max_tokens: Option<u32>,
    /// The effort of its reasoning, where it can reason.
    pub thinking: ThinkingLevel,
    /// An id that is the same for all turns of a conversation, for the provider's caches.
    pub session_id: Option<String>,
}

/// A tool as a model is shown it.
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
    /// Reasoning ended; all of its text.
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

/// A turn that is complete.
#[derive(Debug, Clone, PartialEq)]
pub struct ModelTurn {
    /// Text, reasoning and tool calls, in the order in which they came.
    pub content: Vec<ContentBlock>,
    /// The reason for which it ended.
    pub stop_reason: StopReason,
    /// The tokens that it took, without their price.
    pub usage: TokenUsage,
}

/// A turn failed.
#[derive(Debug, Clone, PartialEq)]
pub struct ModelError {
    /// The kind, for code to match on.
    pub kind: ModelErrorKind,
    /// One sentence. It never has a key in it.
    pub message: String,
    /// The time that the provider asks to be left alone, where it says one.
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
    /// The key is missing, wrong, or may not use the model.
    Unauthorized,
    /// There is no such model, or no such address.
    NotFound,
    /// The conversation is longer than the model can read.
    ContextOverflow,
    /// The caller asked too often (429).
    RateLimited,
    /// The provider has too much to do (529, 503).
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
    /// A failure of this kind.
    pub fn new(kind: ModelErrorKind, message: impl Into<String>) -> Self {
        Self { kind, message: message.into(), retry_after: None, usage: Box::default() }
    }

    /// The failure of an answer whose end never came.
    pub(crate) fn cut() -> Self {
        Self::new(ModelErrorKind::Cut, "the model's answer ended before it was complete")
    }

    /// The same failure with the time that the provider asks to be left alone.
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
