//! `eyot sleep`: puts sandboxes to sleep: their processes end, their files stay. Each is tried;
//! failures are reported at the end.

use serde_json::json;

use super::rm::settle;
use crate::args::SleepArgs;
use crate::context::Context;
use crate::errors::Failure;

pub async fn run(args: &SleepArgs, context: &Context) -> Result<u8, Failure> {
    let (mut asleep, mut failures) = (Vec::new(), Vec::new());
    for name in &args.names {
        let (provider, found) = context.find(name).await?;
        match provider.sleep(&found).await {
            Ok(()) => asleep.push(name),
            Err(error) => failures.push(context.explained(error, name)),
        }
    }
    if context.output.json {
        context.output.value(&json!({ "asleep": asleep }))?;
    }
    settle(failures, context)
}
