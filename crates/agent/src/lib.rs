//! Agents: models that work in sandboxes.
#![forbid(unsafe_code)]

mod mcp;
mod message;
mod model;
mod scripted;
mod usage;

pub use mcp::{McpConnection, McpServerOptions, McpTransport, connect_mcp_server};
pub use message::{
    AssistantMessage, ChatMessage, ContentBlock, StopReason, ToolCall, ToolResultMessage, UserMessage,
};
pub use model::{
    DEFAULT_MAX_TOKENS, Model, ModelApi, ModelError, ModelErrorKind, ModelEvent, ModelInfo, ModelRequest,
    ModelStream, ModelTurn, ThinkingLevel, ToolDeclaration,
};
pub use scripted::{ScriptedModel, ScriptedTurn};
pub use usage::{TokenCost, TokenPrices, TokenUsage};
