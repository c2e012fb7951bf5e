//! `eyot start`: starts a process that outlives this command.

use eyot::{Command, ErrorKind, StartOptions};

use crate::args::{StartArgs, resolve_env};
use crate::attach::{shell_hint, shell_line};
use crate::context::Context;
use crate::errors::Failure;

pub async fn run(args: StartArgs, context: &Context) -> Result<u8, Failure> {
    let env = resolve_env(&args.env, |name| std::env::var(name).ok())?;
    let sandbox = context.awake(&args.name).await?;
    let options = StartOptions { cwd: args.workdir, env, user: args.user };
    let command = Command::argv(args.command);
    let line = shell_line(&command);
    let process = sandbox.start(command, options).await.map_err(|error| match line {
        Some(line) if error.kind() == ErrorKind::NotFound => error.with_hint(shell_hint(&line)),
        _ => error,
    })?;
    if context.output.json {
        context.output.value(&process)?
    } else {
        context.output.text(&format!("{}\n", process.id))?
    }
    Ok(0)
}
