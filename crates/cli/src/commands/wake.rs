//! `eyot wake`: wakes sandboxes. Each is tried; failures are reported at the end.

use serde_json::json;

use super::rm::settle;
use crate::args::WakeArgs;
use crate::context::Context;
use crate::errors::Failure;

pub async fn run(args: &WakeArgs, context: &Context) -> Result<u8, Failure> {
    let (mut awake, mut failures) = (Vec::new(), Vec::new());
    for name in &args.names {
        match context.awake(name).await {
            Ok(_) => awake.push(name),
            Err(failure) => failures.push(failure),
        }
    }
    if context.output.json {
        context.output.value(&json!({ "awake": awake }))?;
    }
    settle(failures, ("woke", &awake), context)
}
