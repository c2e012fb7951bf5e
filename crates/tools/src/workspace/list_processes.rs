//! `list_processes`: every started process that is still known.

use eyot::Result;
use schemars::JsonSchema;
use serde::Deserialize;

use super::answer;
use crate::context::ToolContext;
use crate::definition::ToolDef;
use crate::output::ToolOutput;

const DESCRIPTION: &str = "List managed sandbox processes and their current status.";

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Args {}

pub(super) fn tool() -> Result<ToolDef> {
    ToolDef::typed("list_processes", DESCRIPTION, async |context: ToolContext, Args {}| {
        let processes = context.sandbox(None).await?.processes().await?;
        let parts = processes.iter().map(|process| Some(answer::process(process, false)));
        Ok(ToolOutput::text(if processes.is_empty() {
            "No managed processes.".to_owned()
        } else {
            answer::joined(parts)
        }))
    })
    .map(ToolDef::read_only)
}
