//! `write`: a whole file.

use eyot::{Result, WriteOptions};
use schemars::JsonSchema;
use serde::Deserialize;

use super::{MAX_FILE_BYTES, units};
use crate::context::ToolContext;
use crate::definition::ToolDef;
use crate::locks::lock_changes;
use crate::output::ToolOutput;

const DESCRIPTION: &str =
    "Write content to a file. Creates the file and parent directories if they do not exist.";

#[derive(Debug, Deserialize, JsonSchema)]
struct Args {
    /// Path to the file to write
    path: String,
    /// Content to write to the file
    content: String,
}

pub(super) fn tool() -> Result<ToolDef> {
    ToolDef::typed("write", DESCRIPTION, async |context: ToolContext, asked: Args| {
        let sandbox = context.sandbox(None).await?;
        let Args { path, content } = asked;
        let answer = format!("Successfully wrote {} bytes to {path}", units::length(&content));
        let options = WriteOptions { max_file_bytes: Some(MAX_FILE_BYTES), ..WriteOptions::default() };
        // An edit that has read the file must not write what this replaces.
        let _guard = lock_changes(&sandbox).await;
        sandbox.write_with(&path, content, options).await?;
        Ok(ToolOutput::text(answer))
    })
}
