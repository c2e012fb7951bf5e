//! `eyot wait`: waits for a started process and exits with its exit code.

use std::future::pending;
use std::time::Duration;

use eyot::{Error, ErrorKind, Outcome};

use crate::args::WaitArgs;
use crate::context::{Context, with_process_hint};
use crate::durations::humane;
use crate::errors::{FAILED, Failure};

pub async fn run(args: &WaitArgs, context: &Context) -> Result<u8, Failure> {
    let sandbox = context.sandbox(&args.name).await?;
    let process = tokio::select! {
        process = sandbox.wait(args.process) => process.map_err(|error| with_process_hint(error, &args.name))?,
        failure = over(args) => return Err(failure),
    };
    if context.output.json {
        context.output.value(&process)?;
    }
    let code = process.outcome().map_or(i32::from(FAILED), |outcome| outcome.exit_code());
    Ok(u8::try_from(code).unwrap_or(FAILED))
}

/// Waits until the time is over that the user is ready to wait.
async fn over(args: &WaitArgs) -> Failure {
    let Some(timeout_ms) = args.timeout else { return pending().await };
    tokio::time::sleep(Duration::from_millis(timeout_ms)).await;
    let WaitArgs { name, process, .. } = args;
    let message = format!("wait for {process} in `{name}`: it has not ended after {}", humane(timeout_ms));
    let error = Error::new(ErrorKind::Timeout, message)
        .with_hint(format!("it goes on; `eyot kill {name} {process}` ends it"));
    Failure::with_code(error, u8::try_from(Outcome::TimedOut.exit_code()).unwrap_or(FAILED))
}
