//! `eyot fork`: makes sandboxes that begin with the files of a snapshot or of another sandbox.

use eyot_engine::{DEFAULT_SANDBOX, ForkOptions};
use serde_json::json;

use super::snapshot::note_stopped;
use crate::args::ForkArgs;
use crate::branch_names::in_pool;
use crate::context::Context;
use crate::errors::Failure;

pub async fn run(args: ForkArgs, context: &Context) -> Result<u8, Failure> {
    let (pool, from) = in_pool(&args.from, context).await?;
    let options = ForkOptions { count: args.count, name: args.name, stop: args.stop.stop };
    // As `create` does: only the pool `default` tells the provider below the names.
    let is_default = pool.name().as_str() == DEFAULT_SANDBOX;
    let provider = if is_default { pool.as_host_provider() } else { pool.as_provider() };
    let forked = provider.fork(&from, &options).await;
    let forked = forked.map_err(|error| context.explained(error, &args.from))?;
    note_stopped(&forked.stopped, context);
    let shown =
        forked.names.iter().map(|name| eyot_engine::shown_name(pool.name(), name)).collect::<Vec<_>>();
    if context.output.json {
        context.output.value(&json!({ "forks": shown, "stopped": forked.stopped }))?;
    } else {
        context.output.text(&shown.iter().map(|name| format!("{name}\n")).collect::<String>())?;
    }
    Ok(0)
}
