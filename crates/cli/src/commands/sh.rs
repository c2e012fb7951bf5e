//! `eyot sh`: runs a shell on a new terminal, or a script from a pipe.

use eyot::{Command, Sandbox};

use crate::args::{ShArgs, TerminalArgs};
use crate::attach::{self, Attachment};
use crate::context::Context;
use crate::errors::{COMMAND_NOT_FOUND, Failure};
use crate::signals::Signals;
use crate::terminal;

pub async fn run(args: ShArgs, context: &Context) -> Result<u8, Failure> {
    // The shell's terminal shows what happens; a JSON object could only come when it is over.
    if context.output.json && terminal::stdin_is_terminal() {
        return Err(Failure::usage("a shell on a terminal has no result to print as JSON"));
    }
    let sandbox = context.awake(&args.name).await?;
    let mut signals = Signals::listen()?;
    match shell("bash", &args, &sandbox, &mut signals, context).await {
        Err(failure) if failure.exit_code() == COMMAND_NOT_FOUND => {
            shell("sh", &args, &sandbox, &mut signals, context).await
        }
        other => other,
    }
}

async fn shell(
    program: &str,
    args: &ShArgs,
    sandbox: &Sandbox,
    signals: &mut Signals,
    context: &Context,
) -> Result<u8, Failure> {
    let tty = terminal::stdin_is_terminal();
    let attachment = Attachment {
        command: Command::argv([program]),
        cwd: args.workdir.clone(),
        env: args.environment.resolve()?,
        user: args.user.clone(),
        // A person is not a command that forgot to end.
        timeout_ms: Some(eyot::Limits::MAX),
        max_output_bytes: None,
        terminal: TerminalArgs { interactive: true, tty },
    };
    attach::run(sandbox, attachment, signals, context.output).await
}
