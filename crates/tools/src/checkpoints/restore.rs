//! `restore`: gives a sandbox the files of a checkpoint again.

use eyot::Result;
use eyot_engine::RollbackOptions;
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
    checkpoint: String,
    /// End the commands that run; otherwise they are a reason to refuse
    #[serde(default)]
    stop: bool,
}

#[derive(Serialize, JsonSchema)]
struct Answer {
    ok: bool,
    /// The commands that were ended
    #[serde(skip_serializing_if = "Vec::is_empty")]
    stopped: Vec<String>,
}

pub(super) fn tool() -> Result<ToolDef> {
    let description =
        "Give a sandbox the files of a checkpoint again. Everything that changed since is lost.";
    Ok(ToolDef::typed("restore", description, run)?.returns::<Answer>())
}

async fn run(context: ToolContext, args: Args) -> Result<ToolOutput> {
    let sandbox = sandbox_of(&context, args.sandbox.as_deref())?;
    let options = RollbackOptions { snapshot: args.checkpoint, stop: args.stop, asleep_only: false };
    let done = context.pool.roll_back(sandbox, &options).await?;
    Ok(ToolOutput::json(&Answer { ok: true, stopped: done.stopped }))
}
