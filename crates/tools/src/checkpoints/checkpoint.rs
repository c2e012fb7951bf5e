//! `checkpoint`: keeps the files of a sandbox.

use eyot::{Result, SandboxName};
use eyot_engine::SnapshotOptions;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::sandbox_of;
use crate::{ToolContext, ToolDef, ToolOutput};

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Args {
    #[serde(default)]
    #[schemars(extend("default" = "default"))]
    sandbox: Option<String>,
    /// a-z, 0-9 and `-`, at most 41, of no other checkpoint; without it the answer has an id
    #[serde(default)]
    name: Option<String>,
    /// End the commands that run; otherwise they are a reason to refuse
    #[serde(default)]
    stop: bool,
}

#[derive(Serialize, JsonSchema)]
struct Answer {
    /// The name or id that restore and diff take
    checkpoint: String,
    /// The commands that were ended
    #[serde(skip_serializing_if = "Vec::is_empty")]
    stopped: Vec<String>,
}

pub(super) fn tool() -> Result<ToolDef> {
    let description = "Keep all files of a sandbox as they are now, to go back to with restore. Take one before a step that \
                       may go wrong. Files only: processes are no part of it.";
    Ok(ToolDef::typed("checkpoint", description, run)?.returns::<Answer>())
}

async fn run(context: ToolContext, args: Args) -> Result<ToolOutput> {
    let sandbox = sandbox_of(&context, args.sandbox.as_deref())?;
    let name = args.name.as_deref().map(SandboxName::parse).transpose()?;
    // Like every use, it makes the sandbox if there is none.
    context.pool.get(sandbox).await?;
    let options = SnapshotOptions { name, stop: args.stop, ..SnapshotOptions::default() };
    let taken = context.pool.snapshot(sandbox, options).await?;
    let checkpoint =
        taken.snapshot.name.map_or_else(|| taken.snapshot.id.to_string(), |name| name.to_string());
    Ok(ToolOutput::json(&Answer { checkpoint, stopped: taken.stopped }))
}
