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
        let (provider, found) = context.find(name).await?;
        match provider.sleep(&found).await {
            Ok(()) => asleep.push(name),
            // With --all somebody else may have been faster, which is as good.
            Err(error) if args.all && matches!(error.kind(), ErrorKind::NotFound | ErrorKind::Destroyed) => {}
            Err(error) => failures.push(context.explained(error, name)),
        }
    }
    if context.output.json {
        context.output.value(&json!({ "asleep": asleep }))?;
    }
    settle(failures, context)
}

/// Returns the ids of the sandboxes that run.
async fn running(context: &Context) -> Result<Vec<String>, Failure> {
    let all = context.provider().await?.list().await?;
    let running = all.iter().filter(|info| info.status == SandboxStatus::Running);
    Ok(running.map(|info| info.id.to_string()).collect())
}
