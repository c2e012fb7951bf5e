//! `eyot fork`: makes sandboxes that begin with the files of a snapshot or of another sandbox.

use eyot_engine::ForkOptions;
use serde_json::json;

use super::snapshot::note_stopped;
use crate::args::ForkArgs;
use crate::branch_names::in_pool;
use crate::context::Context;
use crate::errors::Failure;

pub async fn run(args: ForkArgs, context: &Context) -> Result<u8, Failure> {
    let (pool, from) = in_pool(&args.from, context).await?;
    let options = ForkOptions { from, count: args.count, name: args.name, stop: args.stop.stop };
    let forked = pool.fork(options).await.map_err(|error| context.explained(error, &args.from))?;
    note_stopped(&forked.stopped, context);
    let shown: Vec<String> = forked.names.iter().map(|name| pool.shown_name(name)).collect();
    if context.output.json {
        context.output.value(&json!({ "forks": shown, "stopped": forked.stopped }))?;
    } else {
        context.output.text(&shown.iter().map(|name| format!("{name}\n")).collect::<String>())?;
    }
    Ok(0)
}
