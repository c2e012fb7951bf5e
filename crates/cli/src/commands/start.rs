//! `eyot start`: starts a process that outlives this command.

use bytes::{Bytes, BytesMut};
use eyot::{Command, MAX_STDIN_BYTES, PtySize, StartOptions};
use futures_util::StreamExt;

use crate::args::StartArgs;
use crate::attach::not_started;
use crate::command_hint::shell_hint;
use crate::context::Context;
use crate::errors::Failure;
use crate::stdio::stdin_stream;

/// The terminal of a process, which nobody looks at.
const TERMINAL: PtySize = PtySize { rows: 24, cols: 80 };

pub async fn run(args: StartArgs, context: &Context) -> Result<u8, Failure> {
    let env = args.environment.resolve()?;
    let sandbox = context.awake(&args.name).await?;
    let stdin = if args.interactive { all_of_stdin().await? } else { Bytes::new() };
    let options = StartOptions {
        cwd: args.workdir,
        env,
        user: args.user,
        stdin,
        timeout_ms: args.timeout,
        pty: args.tty.then_some(TERMINAL),
        ..StartOptions::default()
    };
    let command = Command::argv(args.command);
    let hint = shell_hint(&command);
    let (cwd, user) = (options.cwd.clone(), options.user.clone());
    let process = match sandbox.start(command, options).await {
        Ok(process) => process,
        Err(error) => {
            let (cwd, user) = (cwd.as_deref(), user.as_deref());
            return Err(not_started(&sandbox, cwd, user, hint, error).await);
        }
    };
    if context.output.json {
        context.output.value(&process)?
    } else {
        context.output.text(&format!("{}\n", process.id))?
    }
    Ok(0)
}

/// Reads our standard input to its end, or to where it is more than a process takes.
async fn all_of_stdin() -> Result<Bytes, Failure> {
    let (mut input, mut read) = (stdin_stream()?, BytesMut::new());
    while read.len() <= MAX_STDIN_BYTES
        && let Some(piece) = input.next().await
    {
        read.extend_from_slice(&piece?);
    }
    Ok(read.freeze())
}
