//! The tool table from outside: what models are shown, what they are told when a call is wrong, and tools of one's own.

#![allow(clippy::unwrap_used)]

mod calls;
mod commands;
mod golden;
mod own;
mod policies;
mod provider;
#[path = "../../../eyot/tests/handle/scripted.rs"]
#[allow(dead_code)]
mod scripted;
mod sets;
mod upstream;

use std::sync::Arc;

use eyot_engine::{PoolOptions, SandboxPool};
use eyot_tools::{ToolContext, ToolOutput, Toolset, handle_tool_call, toolset};
use serde_json::Value;

/// A context over a provider that only writes down what it is asked.
fn context(driver: &Arc<scripted::Scripted>) -> ToolContext {
    let provider = Arc::new(scripted::Provider::of(driver));
    ToolContext::new(SandboxPool::open(provider, PoolOptions::default()).unwrap())
}

/// A call of a tool of the toolset `pool`, over a provider whose log is empty if the arguments are refused.
async fn call(name: &str, input: Value) -> ToolOutput {
    call_of(&toolset("pool").unwrap(), name, input).await
}

async fn call_of(tools: &Toolset, name: &str, input: Value) -> ToolOutput {
    handle_tool_call(&context(&scripted::Scripted::new(&[])), tools, name, input).await
}

/// Returns the sentence of a refused call.
async fn refusal(name: &str, input: Value) -> String {
    let output = call(name, input).await;
    assert!(output.is_error, "{output:?}");
    output.as_text()
}
