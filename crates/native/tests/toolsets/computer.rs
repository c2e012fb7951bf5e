//! A pool over a state folder of the test's own, and a toolset that a model would have.

use eyot::{Capabilities, Sandbox, SandboxProvider};
use eyot_engine::{PoolOptions, SandboxPool};
use eyot_native::{NativeOptions, NativeProvider};
use eyot_tools::{
    ToolContext, ToolOutput, Toolset, WorkspaceToolsOptions, handle_tool_call, toolset, workspace_tools,
};
use libtest_mimic::Failed;
use serde_json::Value;
use tokio::runtime::Handle;

/// A model's computer: tools, and the pool behind them.
pub struct Computer {
    pub context: ToolContext,
    pub tools: Toolset,
    _folder: tempfile::TempDir,
}

impl Computer {
    /// Makes a computer with the toolset of this name.
    pub fn new(name: &str) -> Result<Self, Failed> {
        Self::with(toolset(name)?)
    }

    /// Makes a computer with Anvia's tools and these options.
    pub fn of_workspace(options: WorkspaceToolsOptions) -> Result<Self, Failed> {
        Self::make(|capabilities| workspace_tools(options, capabilities))
    }

    /// Makes a computer with these tools.
    pub fn with(tools: Toolset) -> Result<Self, Failed> {
        Self::make(|_| Ok(tools))
    }

    fn make(tools: impl FnOnce(&Capabilities) -> eyot::Result<Toolset>) -> Result<Self, Failed> {
        let folder = tempfile::tempdir()?;
        let state = folder.path().join("state");
        let provider = NativeProvider::new(NativeOptions { state, ..NativeOptions::default() })?;
        let tools = tools(provider.capabilities())?;
        let pool = SandboxPool::open(provider, PoolOptions::default())?;
        Ok(Self { context: ToolContext::new(pool), tools, _folder: folder })
    }

    /// Returns the sandbox behind the calls.
    pub async fn sandbox(&self) -> Result<Sandbox, Failed> {
        Ok(self.context.sandbox(None).await?)
    }

    /// Makes a call.
    pub async fn call(&self, tool: &str, input: Value) -> ToolOutput {
        handle_tool_call(&self.context, &self.tools, tool, input).await
    }

    /// Makes a call that must succeed, and returns its text.
    pub async fn ok(&self, tool: &str, input: Value) -> Result<String, Failed> {
        let answer = self.call(tool, input).await;
        if answer.is_error {
            Err(format!("{tool} failed: {}", answer.as_text()).into())
        } else {
            Ok(answer.as_text())
        }
    }

    /// Makes a call that must fail, and returns its error.
    pub async fn error(&self, tool: &str, input: Value) -> Result<String, Failed> {
        let answer = self.call(tool, input).await;
        if answer.is_error {
            Ok(answer.as_text())
        } else {
            Err(format!("{tool} succeeded: {}", super::shorten(&answer.as_text())).into())
        }
    }
}

/// Removes the pool's sandboxes when a test ends, even if it fails.
impl Drop for Computer {
    fn drop(&mut self) {
        let closed = self.context.pool.close();
        if let Err(error) = tokio::task::block_in_place(|| Handle::current().block_on(closed)) {
            eprintln!("a test's pool was not closed: {error}");
        }
    }
}
