//! Agents: models that work in sandboxes.
#![forbid(unsafe_code)]

mod message;
mod model;
mod models;
mod scripted;
#[cfg(feature = "testing")]
pub mod standin;
mod usage;

pub use message::{
    AssistantMessage, ChatMessage, ContentBlock, StopReason, ToolCall, ToolResultMessage, UserMessage,
};
pub use model::{
    DEFAULT_MAX_TOKENS, Model, ModelApi, ModelError, ModelErrorKind, ModelEvent, ModelInfo, ModelRequest,
    ModelStream, ModelTurn, ThinkingLevel, ToolDeclaration,
};
pub use models::{
    ApiKey, ModelFacts, ModelOptions, ModelProviderSettings, ProviderRegistration, RetryModel,
    configure_provider, register_provider, resolve_model, resolve_model_with,
};
pub use scripted::{ScriptedModel, ScriptedTurn};
pub use usage::{TokenCost, TokenPrices, TokenUsage};
