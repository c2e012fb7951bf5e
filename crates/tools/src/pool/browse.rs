//! `browse`: a port of a sandbox as a URL.

use eyot::Result;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{ToolContext, ToolDef, ToolOutput};

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Args {
    #[serde(default)]
    #[schemars(extend("default" = "default"))]
    sandbox: Option<String>,
    #[schemars(range(min = 1, max = 65_535))]
    port: u16,
}

#[derive(Serialize, JsonSchema)]
struct Answer {
    url: String,
}

pub(super) fn tool() -> Result<ToolDef> {
    let description = "Expose a port from the sandbox and return its URL, for whoever runs you to open. A server that \
                       listens on 127.0.0.1 is enough; other sandboxes can't reach it.";
    Ok(ToolDef::typed("browse", description, run)?.returns::<Answer>().additive().with_plain_numbers())
}

async fn run(context: ToolContext, args: Args) -> Result<ToolOutput> {
    let preview = context.pool.browse(context.name(args.sandbox.as_deref()), args.port).await?;
    Ok(ToolOutput::json(&Answer { url: preview.url }))
}
