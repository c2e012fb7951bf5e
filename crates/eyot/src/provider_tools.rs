//! Tools that a provider brings: what a model is shown, as data, and what answers its calls.

use async_trait::async_trait;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::error::Result;
use crate::sandbox::Sandbox;

/// A tool as a model is shown it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ProviderTool {
    /// The name: 1 to 64 letters, digits, `_` or `-`.
    pub name: String,
    /// The description.
    pub description: String,
    /// The JSON Schema of its arguments, an object. Calls are held against it before they are answered. With a property
    /// `sandbox` a call may name one of the session's sandboxes; else it is the default one.
    pub input_schema: Value,
    /// It changes no file and no process, and reaches nothing outside of the sandboxes.
    #[serde(default)]
    pub read_only: bool,
}

/// The answer of a call.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct ProviderToolAnswer {
    /// The text that the model reads.
    pub text: String,
    /// The same as data.
    pub structured: Option<Value>,
    /// The call failed, or what it ran did.
    pub is_error: bool,
}

/// The tools of a provider, which replace the default list. See [`crate::SandboxProvider::tools`].
///
/// They are the provider's own view of its sandboxes: a browser's clicks, a notebook's cells. What does not belong to a
/// sandbox, such as a tool for sub-tasks, is appended by the program that shows the list.
#[async_trait]
pub trait ProviderTools: Send + Sync + 'static {
    /// Declares them. Names are distinct, and the list is the same for the provider's whole life.
    fn declare(&self) -> Vec<ProviderTool>;

    /// Answers a call in a sandbox, whose handle keeps its rules and tells its observer. The arguments were checked. An
    /// error is told to the model as its sentence. Dropping the future ends the call.
    async fn call(&self, sandbox: &Sandbox, name: &str, arguments: Value) -> Result<ProviderToolAnswer>;
}
