//! The tools that a model works with, declared as JSON Schemas, and what answers its calls. One
//! table serves Rust, the command line, HTTP and MCP alike.
//!
//! A [`Toolset`] is a list of [`ToolDef`]s; [`toolset()`] has the ones that come with Eyot, and your own stand beside them.
//! [`handle_tool_call()`] checks a call's arguments against the tool's schema, runs it and answers with a [`ToolOutput`]:
//! it never fails and never panics, for its answer is for a model to read.
#![forbid(unsafe_code)]

mod anthropic;
mod arguments;
mod call;
mod change;
mod checkpoints;
mod clip;
mod coding;
mod context;
mod definition;
mod format;
mod locks;
mod names;
mod of_provider;
mod output;
mod pool;
mod prompt;
mod registry;
mod running;
mod schema;
mod set;
mod workspace;

pub use anthropic::{AnthropicToolsOptions, anthropic_tools};
pub use call::{handle_tool_call, panic_message};
pub use clip::{ClippedText, MAX_TEXT_BYTES, clip};
pub use coding::{bash_answer, show_lines};
pub use context::{ToolContext, ToolProgress};
pub use definition::{MAX_TOOL_NAME_BYTES, ToolDef};
pub use format::ToolFormat;
pub use of_provider::{PROVIDER_TOOLSET, default_tools, toolset_over};
pub use output::{ToolContent, ToolOutput};
pub use registry::{toolset, toolset_names};
pub use set::Toolset;
pub use workspace::{
    ExecPolicy, ProcessPolicy, ReadFilePolicy, WorkspaceTool, WorkspaceToolsOptions, WriteFilePolicy,
    workspace_tools,
};

/// The examples of the page about tools compile.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/tools.md")]
struct DocExamples;
