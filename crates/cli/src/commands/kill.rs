//! `eyot kill`: sends a signal to a started process's group, or kills its whole tree.

use serde_json::json;

use crate::args::KillArgs;
use crate::context::{Context, with_process_hint};
use crate::errors::Failure;

pub async fn run(args: &KillArgs, context: &Context) -> Result<u8, Failure> {
    let signal = (!args.tree).then_some(args.signal);
    context.sandbox(&args.name).await?.kill(args.process, signal).await.map_err(with_process_hint)?;
    if context.output.json {
        context.output.value(&json!({ "process": args.process, "signal": signal, "tree": args.tree }))?;
    }
    Ok(0)
}
