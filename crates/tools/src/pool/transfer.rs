//! `transfer`: a file or a tree from one sandbox to another.

use eyot::Result;
use eyot_engine::Transfer;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{ToolContext, ToolDef, ToolOutput};

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Args {
    from_sandbox: String,
    from_path: String,
    to_sandbox: String,
    /// What the copy is called there, not a directory to put it in; parents are made
    to_path: String,
    /// Copy a directory with everything below it
    #[serde(default)]
    recursive: bool,
}

#[derive(Serialize, JsonSchema)]
struct Answer {
    ok: bool,
    bytes: u64,
    files: u64,
}

pub(super) fn tool() -> Result<ToolDef> {
    let description = "Copy files between sandboxes. Permission bits and symbolic links are kept; a directory needs a \
                       to_path that is free, or an empty directory.";
    Ok(ToolDef::typed("transfer", description, run)?.returns::<Answer>().with_plain_numbers())
}

async fn run(context: ToolContext, args: Args) -> Result<ToolOutput> {
    let what = Transfer { from_path: args.from_path, to_path: args.to_path, recursive: args.recursive };
    let copied = context.pool.transfer(&args.from_sandbox, &args.to_sandbox, &what).await?;
    Ok(ToolOutput::json(&Answer { ok: true, bytes: copied.bytes, files: copied.files }))
}
