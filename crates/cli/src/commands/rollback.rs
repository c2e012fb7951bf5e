//! `eyot rollback`: gives a sandbox the files of a snapshot again.

use eyot_engine::RollbackOptions;
use serde_json::json;

use super::snapshot::note_stopped;
use crate::args::RollbackArgs;
use crate::branch_names::in_pool;
use crate::context::Context;
use crate::errors::Failure;

pub async fn run(args: RollbackArgs, context: &Context) -> Result<u8, Failure> {
    let (pool, name) = in_pool(&args.sandbox, context).await?;
    let snapshot = args.snapshot.clone();
    let options = RollbackOptions { snapshot, stop: args.stop.stop, asleep_only: false };
    let done = pool.roll_back(&name, &options).await;
    let stopped = done.map_err(|error| context.explained(error, &args.sandbox))?.stopped;
    note_stopped(&stopped, context);
    if context.output.json {
        let facts = json!({ "sandbox": args.sandbox, "snapshot": args.snapshot, "stopped": stopped });
        context.output.value(&facts)?;
    }
    Ok(0)
}
