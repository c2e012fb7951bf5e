//! `eyot commit`: makes an image of a snapshot or of a sandbox as it is now.

use eyot_engine::CommitOptions;

use super::snapshot::note_stopped;
use crate::args::CommitArgs;
use crate::branch_names::in_pool;
use crate::context::Context;
use crate::errors::Failure;

pub async fn run(args: CommitArgs, context: &Context) -> Result<u8, Failure> {
    let (pool, from) = in_pool(&args.from, context).await?;
    let options = CommitOptions { from, reference: args.reference, stop: args.stop.stop };
    let committed = pool.commit(options).await.map_err(|error| context.explained(error, &args.from))?;
    note_stopped(&committed.stopped, context);
    if context.output.json {
        context.output.value(&committed)?;
    } else {
        context.output.text(&format!("{}\n", committed.image.name))?;
    }
    Ok(0)
}
