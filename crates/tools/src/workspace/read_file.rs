//! `read_file`: a page of a text file.

use std::sync::Arc;

use eyot::{PageOptions, Result};
use schemars::JsonSchema;
use serde::Deserialize;

use super::options::{ReadFilePolicy, WorkspaceToolsOptions};
use super::policy_error;
use crate::context::ToolContext;
use crate::definition::ToolDef;
use crate::output::ToolOutput;

const DESCRIPTION: &str = "Read a bounded page of a text file from the sandbox workspace. Continue with nextStartLine when \
                           provided.";

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Args {
    /// Relative file path inside the sandbox.
    #[schemars(length(min = 1))]
    path: String,
    /// One-based first line to read. Defaults to 1.
    #[schemars(extend("exclusiveMinimum" = 0, "maximum" = 9_007_199_254_740_991_i64))]
    start_line: Option<i64>,
    /// Maximum lines to return. Defaults to 500.
    #[schemars(extend("exclusiveMinimum" = 0, "maximum" = 10_000))]
    line_count: Option<i64>,
}

pub(super) fn tool(options: Arc<WorkspaceToolsOptions>) -> Result<ToolDef> {
    ToolDef::typed("read_file", DESCRIPTION, move |context: ToolContext, asked: Args| {
        let policy = options.read_file.clone();
        async move {
            let page = page(&asked, &policy)?;
            let workspace = context.sandbox(None).await?.workspace();
            Ok(ToolOutput::json(&workspace.read_text_file_page(&asked.path, page).await?))
        }
    })
    .map(ToolDef::read_only)
}

/// The part of the file that is asked for, if it may be.
fn page(asked: &Args, policy: &ReadFilePolicy) -> Result<PageOptions> {
    let positive = |number: Option<i64>| number.and_then(|number| u64::try_from(number).ok());
    let line_count = positive(asked.line_count).unwrap_or(policy.default_line_count);
    let most = policy.max_line_count;
    if line_count > most {
        let message = format!("File read line count exceeds sandbox tool policy ({line_count} > {most}).");
        return Err(policy_error(message));
    }
    let start_line = positive(asked.start_line).unwrap_or(1);
    Ok(PageOptions { start_line, line_count, max_bytes: policy.max_bytes })
}
