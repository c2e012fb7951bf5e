//! Agents: models that work in sandboxes.
//!
//! [`init()`] creates a [`Harness`]: an agent with its model, its tools and its sandbox. A [`Session`] is one conversation of
//! the agent, with [`Session::prompt`], [`Session::skill`], [`Session::task`] and [`Session::shell`]. Everything that happens
//! is published as [`AgentEvent`]s: to the listeners of a call or a harness, and to all subscribers of [`observe()`].
#![forbid(unsafe_code)]

mod abort;
mod active_runs;
mod agent_file;
mod agent_source;
mod agents;
mod budget;
mod call;
mod client_tool;
mod compaction;
mod conversation;
mod credentials;
mod event;
mod event_limit;
mod event_reader;
mod failure;
mod file_agents;
mod front_matter;
mod harness;
mod http;
mod journal;
mod mcp;
mod message;
mod model;
mod models;
mod observe;
mod past_run;
mod redaction;
mod result_tools;
#[cfg(feature = "router")]
mod router;
mod run;
mod run_events;
mod sandbox_access;
mod scripted;
mod skill;
#[cfg(feature = "testing")]
pub mod standin;
mod step;
mod store;
mod subagent;
mod system_prompt;
mod task_session;
#[cfg(feature = "opentelemetry")]
mod telemetry;
mod tool_image;
mod unfinished;
mod usage;

pub use active_runs::DEFAULT_MAX_ACTIVE_RUNS_PER_POOL;
pub use agent_file::AgentFile;
pub use agent_source::{AgentInfo, AgentSource, FoundAgent};
pub use agents::{Agents, RunRequest};
pub use budget::{Budget, BudgetLimit};
pub use call::{CallEvents, CallHandle};
pub use client_tool::{
    ClientTool, ClientToolAnswer, ClientToolCall, DEFAULT_CLIENT_TOOL_TIMEOUT_MS, MAX_CLIENT_TOOL_TIMEOUT_MS,
    MAX_CLIENT_TOOLS,
};
pub use compaction::CompactionOptions;
pub use conversation::{CompactionEntry, Conversation, ConversationEntry, MessageSource, TaskEntry};
pub use event::{AgentEvent, AgentEventKind, CompactionReason, EventError, LogLevel, OperationKind};
pub use failure::{AgentError, AgentResult};
pub use file_agents::{COMMAND_LINE_AGENT, FileAgentSettings, FileAgents};
pub use harness::{
    BUILTIN_TOOL_NAMES, DEFAULT_NAME, Harness, HarnessOptions, MAX_TASK_DEPTH, PromptOptions, PromptResponse,
    Session, ShellOptions, ShellResult, SkillChoice, SkillOptions, TaskOptions, create_tools, init,
};
pub use mcp::{McpConnection, McpServerOptions, McpTransport, connect_mcp_server, connect_mcp_servers};
pub use message::{
    AssistantMessage, ChatMessage, ContentBlock, StopReason, ToolCall, ToolResultMessage, UserMessage,
};
pub use model::{
    DEFAULT_MAX_TOKENS, Model, ModelApi, ModelError, ModelErrorKind, ModelEvent, ModelInfo, ModelRequest,
    ModelStream, ModelTurn, ThinkingLevel, ToolDeclaration,
};
pub use models::{
    ApiKey, ModelFacts, ModelOptions, ModelProviderSettings, ProviderRegistration, check_model,
    configure_provider, register_provider, resolve_model, resolve_model_with,
};
pub use observe::{MAX_WAITING_EVENTS, Subscription, observe};
pub use redaction::register_secret;
#[cfg(feature = "router")]
pub use router::{
    RouteFailure, RouterOptions, RunAccess, admin_document, admin_router, public_document, route_not_found,
    router,
};
pub use run::{AgentContext, AgentHandler, RunHandle};
pub use run_events::stored_events;
pub use sandbox_access::AgentSandbox;
pub use scripted::{ScriptedModel, ScriptedTurn};
pub use skill::{PackagedSkill, SkillMetadata};
pub use step::{AgentStep, SessionStep, StepFailure, StepKind, StepOutcome};
pub use store::{
    AgentRunOptions, AgentStore, DEFAULT_RUN_LIMIT, EngineStore, MemoryStore, RunFilter, RunLease, RunRecord,
    RunSignals, RunStatus, RunWatch, StoreChange,
};
pub use subagent::Subagent;
#[cfg(feature = "opentelemetry")]
pub use telemetry::{MAX_OPEN_SPANS, TraceOptions, TraceSubscription, trace_agents};
pub use usage::{TokenCost, TokenPrices, TokenUsage};

/// The examples of the page about agents compile.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/agents.md")]
struct AgentExamples;
