//! `eyot kill`: sends a signal to a started process's group, or kills its whole tree.

use eyot::{Error, ErrorKind};
use serde_json::json;

use crate::args::KillArgs;
use crate::context::{Context, with_process_hint};
use crate::errors::Failure;

pub async fn run(args: &KillArgs, context: &Context) -> Result<u8, Failure> {
    let signal = (!args.tree).then_some(args.signal);
    let killed = context.sandbox(&args.name).await?.kill(args.process, signal).await;
    killed.map_err(|error| with_process_hint(error, &args.name)).map_err(with_tree_hint)?;
    if context.output.json {
        context.output.value(&json!({ "process": args.process, "signal": signal, "tree": args.tree }))?;
    }
    Ok(0)
}

/// Names the way that every provider has, where signals can't be sent.
fn with_tree_hint(error: Error) -> Error {
    if error.kind() == ErrorKind::Unsupported {
        return error.with_hint("`--tree` kills it with everything that it has started");
    }
    error
}
