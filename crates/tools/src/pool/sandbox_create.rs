//! `sandbox_create`: a sandbox of a name, unless it is there.

use eyot::Result;
use eyot_engine::PoolCreate;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::image;
use crate::{ToolContext, ToolDef, ToolOutput};

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Args {
    /// a-z, 0-9 and `-`, at most 41
    sandbox: String,
    /// Without it, the pool's own default where there is no node:22; the answer says which
    #[serde(default)]
    #[schemars(extend("default" = image::PREFERRED))]
    image: Option<String>,
    /// It sleeps when nobody has used it for so many milliseconds (1000 at least), and wakes with its files when it is used
    // One that slept after less would do so again before the call that woke it was done.
    #[serde(default)]
    #[schemars(range(min = 1_000, max = 9_007_199_254_740_992_u64), extend("default" = 600_000))]
    sleep_after_ms: Option<u64>,
}

#[derive(Serialize, JsonSchema)]
struct Answer {
    sandbox: String,
    /// false: it was there already, and stays as it is
    created: bool,
    /// What it is made of
    image: String,
    /// In what it differs from what was asked for
    #[serde(skip_serializing_if = "Vec::is_empty")]
    differs: Vec<String>,
}

pub(super) fn tool() -> Result<ToolDef> {
    let description = "Create a named sandbox. No-op if it already exists. Every sandbox has its own files, processes \
                       and network; the other tools make theirs on first use.";
    Ok(ToolDef::typed("sandbox_create", description, run)?
        .returns::<Answer>()
        .additive()
        .with_plain_numbers())
}

async fn run(context: ToolContext, args: Args) -> Result<ToolOutput> {
    let create = PoolCreate { sleep_after_ms: args.sleep_after_ms, ..PoolCreate::default() };
    let created = match &args.image {
        Some(named) => image::create_of(&context.pool, &args.sandbox, named, create).await?,
        None => image::create_of_default(&context.pool, &args.sandbox, create).await?,
    };
    Ok(ToolOutput::json(&Answer {
        sandbox: created.sandbox.to_string(),
        created: created.created,
        image: created.image,
        differs: created.differs,
    }))
}
