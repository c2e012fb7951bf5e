//! `stop_process`: asks a started process to end, and kills it if it does not.

use std::sync::Arc;

use eyot::{ProcessStatus, Result};
use schemars::JsonSchema;
use serde::Deserialize;

use super::answer;
use super::options::WorkspaceToolsOptions;
use super::read_process_logs::{or_unknown_process, parse_process_id};
use crate::context::ToolContext;
use crate::definition::ToolDef;
use crate::output::ToolOutput;

const DESCRIPTION: &str = "Stop a managed sandbox process.";

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Args {
    /// Managed process identifier.
    #[schemars(length(min = 1))]
    process_id: String,
}

pub(super) fn tool(options: Arc<WorkspaceToolsOptions>) -> Result<ToolDef> {
    ToolDef::typed("stop_process", DESCRIPTION, move |context: ToolContext, asked: Args| {
        let grace_ms = options.process.stop_grace_period_ms;
        async move {
            let id = asked.process_id.as_str();
            let process = parse_process_id(id)?;
            let sandbox = context.sandbox(None).await?;
            let before = sandbox.processes().await?;
            let runs = |of: &eyot::ProcessInfo| of.id == process && of.status == ProcessStatus::Running;
            let stopped = before.iter().any(runs);
            let ended = sandbox.stop(process, grace_ms).await.map_err(or_unknown_process(id))?;
            Ok(ToolOutput::text(answer::process(&ended, stopped)))
        }
    })
}
