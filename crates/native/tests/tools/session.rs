//! A model's session: a pool over a state folder of the test's own, and calls of tools.

use eyot_engine::{PoolOptions, SandboxPool};
use eyot_native::{NativeOptions, NativeProvider};
use eyot_tools::{ToolContext, ToolOutput, Toolset, handle_tool_call, toolset};
use libtest_mimic::Failed;
use serde_json::Value;

use crate::ensure;

pub struct Session {
    pub context: ToolContext,
    pub tools: Toolset,
    _folder: tempfile::TempDir,
}

impl Session {
    pub fn new() -> Result<Self, Failed> {
        Self::with(PoolOptions::default())
    }

    pub fn with(pool: PoolOptions) -> Result<Self, Failed> {
        let folder = tempfile::tempdir()?;
        let options = NativeOptions { state: folder.path().join("state"), ..NativeOptions::default() };
        let pool = SandboxPool::open(NativeProvider::new(options)?, pool)?;
        Ok(Self { context: ToolContext::new(pool), tools: toolset("pool")?, _folder: folder })
    }

    pub async fn call(&self, tool: &str, input: Value) -> ToolOutput {
        handle_tool_call(&self.context, &self.tools, tool, input).await
    }

    /// Makes a call that must succeed, and returns its answer. The text must be the same JSON.
    pub async fn ok(&self, tool: &str, input: Value) -> Result<Value, Failed> {
        let output = self.call(tool, input).await;
        ensure(!output.is_error, format!("{tool}: {}", output.as_text()))?;
        output.structured.ok_or_else(|| format!("{tool} has no structured answer").into())
    }

    /// Makes a call that must fail, and returns its error.
    pub async fn refusal(&self, tool: &str, input: Value) -> Result<String, Failed> {
        let output = self.call(tool, input).await;
        ensure(output.is_error && output.structured.is_none(), format!("{tool}: {}", output.as_text()))?;
        Ok(output.as_text())
    }

    /// Runs a command that must succeed, and returns its output.
    pub async fn shell(&self, command: &str) -> Result<String, Failed> {
        let answer = self.ok("shell", serde_json::json!({ "command": command })).await?;
        Ok(text(&answer["stdout"]))
    }

    pub async fn close(&self) -> Result<(), Failed> {
        Ok(self.context.pool.close().await?)
    }
}

pub fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}
