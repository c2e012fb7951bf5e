//! `eyot exec`: runs a command in an existing sandbox.

use eyot::Command;

use crate::args::ExecArgs;
use crate::attach::{self, Attachment};
use crate::command_hint::note_without_terminal;
use crate::context::Context;
use crate::errors::Failure;
use crate::signals::Signals;

pub async fn run(args: ExecArgs, context: &Context) -> Result<u8, Failure> {
    let again = format!("eyot exec -it {}", args.name);
    note_without_terminal(&args.command, args.terminal, &again, context.output);
    let attachment = Attachment {
        command: Command::argv(args.command),
        cwd: args.workdir,
        env: args.environment.resolve()?,
        user: args.user,
        timeout_ms: args.timeout.or(args.timeout_ms),
        max_output_bytes: args.max_output_bytes,
        terminal: args.terminal,
    };
    let sandbox = context.awake(&args.name).await?;
    // From here on a signal must not leave the command running.
    let mut signals = Signals::listen()?;
    attach::run(&sandbox, attachment, &mut signals, context.output).await
}
