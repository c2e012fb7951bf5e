//! `eyot wait`: waits for a started process and exits with its exit code.

use crate::args::WaitArgs;
use crate::context::{Context, with_process_hint};
use crate::errors::{FAILED, Failure};

pub async fn run(args: &WaitArgs, context: &Context) -> Result<u8, Failure> {
    let process = context
        .sandbox(&args.name)
        .await?
        .wait(args.process)
        .await
        .map_err(|error| with_process_hint(error, &args.name))?;
    if context.output.json {
        context.output.value(&process)?;
    }
    let code = process.outcome().map_or(i32::from(FAILED), |outcome| outcome.exit_code());
    Ok(u8::try_from(code).unwrap_or(FAILED))
}
