//! `write_file`: a text file, replaced as a whole or added to.

use eyot::{Result, WriteMode, WriteOptions};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::MAX_FILE_BYTES;
use crate::locks::lock_changes;
use crate::{ToolContext, ToolDef, ToolOutput};

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Args {
    #[serde(default)]
    #[schemars(extend("default" = "default"))]
    sandbox: Option<String>,
    path: String,
    content: String,
    /// Add at the end, instead of replacing the file
    #[serde(default)]
    append: bool,
}

#[derive(Serialize, JsonSchema)]
struct Answer {
    ok: bool,
    /// Bytes of the whole file
    size: u64,
}

pub(super) fn tool() -> Result<ToolDef> {
    let description = "Write content to a file in the sandbox. Parent directories are made.";
    Ok(ToolDef::typed("write_file", description, run)?.returns::<Answer>().with_plain_numbers())
}

async fn run(context: ToolContext, args: Args) -> Result<ToolOutput> {
    let sandbox = context.sandbox(args.sandbox.as_deref()).await?;
    let mode = if args.append { WriteMode::Append } else { WriteMode::Replace };
    let options = WriteOptions { mode, max_file_bytes: Some(MAX_FILE_BYTES), ..WriteOptions::default() };
    // An edit by another toolset reads, changes and writes: nothing comes in between.
    let _guard = lock_changes(&sandbox).await;
    let size = sandbox.write_with(&args.path, args.content, options).await?;
    Ok(ToolOutput::json(&Answer { ok: true, size }))
}
