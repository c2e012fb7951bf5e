//! `write_file`: a whole text file.

use std::sync::Arc;

use eyot::Result;
use schemars::JsonSchema;
use serde::Deserialize;

use super::options::WorkspaceToolsOptions;
use super::policy_error;
use crate::context::ToolContext;
use crate::definition::ToolDef;
use crate::locks::lock_changes;
use crate::output::ToolOutput;

const DESCRIPTION: &str = "Write a text file inside the sandbox workspace. Creates parent directories.";

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Args {
    /// Relative file path inside the sandbox.
    #[schemars(length(min = 1))]
    path: String,
    /// Complete text content to write.
    content: String,
}

pub(super) fn tool(options: Arc<WorkspaceToolsOptions>) -> Result<ToolDef> {
    ToolDef::typed("write_file", DESCRIPTION, move |context: ToolContext, asked: Args| {
        let most = options.write_file.max_bytes;
        async move {
            let Args { path, content } = asked;
            if most.is_some_and(|most| content.len() as u64 > most) {
                return Err(policy_error("File content exceeds sandbox tool policy.".to_owned()));
            }
            let sandbox = context.sandbox(None).await?;
            // Beside a tool that edits, the edit must not write what this replaces.
            let _guard = lock_changes(&sandbox).await;
            sandbox.workspace().write_file(&path, content).await?;
            Ok(ToolOutput::text(format!("Wrote {path}")))
        }
    })
}
