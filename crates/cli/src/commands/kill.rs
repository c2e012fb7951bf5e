//! `eyot kill`: sends a signal to a started process's group, or kills its whole tree.

use eyot::{Error, ErrorKind, ProcessId, ProcessStatus, Sandbox};
use serde_json::json;

use crate::args::KillArgs;
use crate::context::{Context, with_process_hint};
use crate::errors::Failure;

pub async fn run(args: &KillArgs, context: &Context) -> Result<u8, Failure> {
    let signal = (!args.tree).then_some(args.signal);
    let sandbox = context.sandbox(&args.name).await?;
    let had_ended = has_ended(&sandbox, args.process).await;
    let killed = sandbox.kill(args.process, signal).await;
    killed.map_err(|error| with_process_hint(error, &args.name)).map_err(with_tree_hint)?;
    if had_ended && signal.is_some() {
        context.output.note(&format!("{} had ended already: no signal was sent", args.process));
    }
    if context.output.json {
        context.output.value(&json!({ "process": args.process, "signal": signal, "tree": args.tree }))?;
    }
    Ok(0)
}

/// Tells whether a process is known to have ended.
async fn has_ended(sandbox: &Sandbox, process: ProcessId) -> bool {
    let all = sandbox.processes().await.unwrap_or_default();
    all.iter().any(|one| one.id == process && matches!(one.status, ProcessStatus::Ended(_)))
}

/// Names the way that every provider has, where signals can't be sent.
fn with_tree_hint(error: Error) -> Error {
    if error.kind() == ErrorKind::Unsupported {
        return error.with_hint("`--tree` kills it with everything that it has started");
    }
    error
}
