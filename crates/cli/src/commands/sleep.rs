//! `eyot sleep`: puts sandboxes to sleep: their processes end, their files stay. Each is tried;
//! failures are reported at the end.

use eyot::{ErrorKind, SandboxStatus};
use serde_json::json;

use super::rm::settle;
use crate::args::SleepArgs;
use crate::context::Context;
use crate::errors::Failure;

pub async fn run(args: &SleepArgs, context: &Context) -> Result<u8, Failure> {
    let (mut asleep, mut failures) = (Vec::new(), Vec::new());
    let all = if args.all { running(context).await? } else { Vec::new() };
    for name in args.names.iter().chain(&all) {
        match sleep(name, args.all, context).await {
            Ok(true) => asleep.push(name),
            Ok(false) => {}
            Err(failure) => failures.push(failure),
        }
    }
    if context.output.json {
        context.output.value(&json!({ "asleep": asleep }))?;
    }
    settle(failures, ("stopped", &asleep), context)
}

/// Puts a sandbox to sleep. `false`: it is gone, and may be, because somebody else was faster.
async fn sleep(name: &str, may_be_gone: bool, context: &Context) -> Result<bool, Failure> {
    let (provider, found) = context.find(name).await?;
    match provider.sleep(&found).await {
        Ok(()) => Ok(true),
        Err(error) if may_be_gone && matches!(error.kind(), ErrorKind::NotFound | ErrorKind::Destroyed) => {
            Ok(false)
        }
        Err(error) => Err(context.explained(error, name).into()),
    }
}

/// Returns the ids of the sandboxes that run.
async fn running(context: &Context) -> Result<Vec<String>, Failure> {
    let all = context.provider().await?.list().await?;
    let running = all.iter().filter(|info| info.status == SandboxStatus::Running);
    Ok(running.map(|info| info.id.to_string()).collect())
}
