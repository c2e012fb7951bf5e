//! `eyot wait`: waits for a started process and exits with its exit code.

use eyot::{Outcome, ProcessStatus};

use crate::args::WaitArgs;
use crate::context::Context;
use crate::errors::{FAILED, Failure};

pub async fn run(args: &WaitArgs, context: &Context) -> Result<u8, Failure> {
    let process = context.sandbox(&args.name).await?.wait(args.process).await?;
    if context.output.json {
        context.output.value(&process)?;
    }
    let code = match process.status {
        ProcessStatus::Ended(status) => Outcome::from(status).exit_code(),
        ProcessStatus::Running => i32::from(FAILED),
    };
    Ok(u8::try_from(code).unwrap_or(FAILED))
}
