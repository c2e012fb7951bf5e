//! The driver's commands: each is a process of envd, which a script becomes once it has seen that the command can run.

use std::collections::BTreeMap;
use std::sync::Arc;

use eyot::{
    Command, Error, ErrorKind, ExecRequest, Execution, ExecutionInput, Result, SandboxOperationUnsupported,
};
use futures_util::StreamExt;
use tokio::sync::mpsc;

use super::NAME;
use super::envd::{InputKind, ProcessRequest, SystemUser};
use super::link::Link;
use super::process_io::{ProcessControl, ProcessInput};
use super::pump::pump;
use super::script::{in_life, start};

const RUN: &str = include_str!("run.sh");

/// The longest argument or variable that Linux takes, in bytes.
const MAX_ARGUMENT_BYTES: usize = 131_071;
/// The most bytes of all arguments and variables, with a pointer for each; Linux takes 2 MiB, and E2B adds its own.
const MAX_ARGUMENTS_BYTES: usize = 1_900_000;
/// The bytes of a pointer and of the NUL behind an argument.
const PER_ARGUMENT_BYTES: usize = 9;
/// The events that may wait for a reader.
const WAITING_EVENTS: usize = 8;

/// Starts a command.
pub(super) async fn exec(link: &Arc<Link>, request: ExecRequest) -> Result<Execution> {
    let refused = |option| Err(SandboxOperationUnsupported::new("exec", NAME, &[option]).into());
    if request.user.is_some() {
        return refused("user");
    }
    if request.cwd.beneath.is_some() {
        return refused("beneath");
    }
    let (stdin, pty) = (request.stdin, request.pty);
    let new = process(link, request);
    check_lengths(new.argv.iter().chain(new.env.values()))?;
    let starting = Arc::clone(link);
    // A start whose caller leaves goes on until it is known what there is to kill.
    let running = tokio::spawn(async move { start(&starting, &new).await }).await;
    let running = running
        .map_err(|error| Error::new(ErrorKind::Internal, "a task ended early").with_source(error))??;
    let (pid, link) = (running.pid, Arc::clone(link));
    let kind = if pty.is_some() { InputKind::Terminal } else { InputKind::Stdin };
    let input = stdin.then(|| ProcessInput::new(&link, pid, kind));
    if pty.is_some() && !stdin {
        // As the input of a terminal that nobody types into: it ends at once.
        drop(ProcessInput::new(&link, pid, kind));
    }
    let control = Arc::new(ProcessControl { link: Arc::clone(&link), pid });
    let (sender, receiver) = mpsc::channel(WAITING_EVENTS);
    tokio::spawn(pump(link, running, sender));
    let events = futures_util::stream::unfold(receiver, |mut receiver| async {
        receiver.recv().await.map(|event| (event, receiver))
    });
    let input = input.map(|input| Box::new(input) as Box<dyn ExecutionInput>);
    Ok(Execution { events: events.fuse().boxed(), input, control })
}

/// Returns the process of a request. The command's variables are for it alone, so they have other names on the way to
/// the script. They are not among the arguments, which E2B logs.
fn process(link: &Link, request: ExecRequest) -> ProcessRequest {
    let ExecRequest { command, cwd, mut env, pty, stdin, .. } = request;
    if pty.is_some() {
        env.entry("TERM".to_owned()).or_insert_with(|| "xterm-256color".to_owned());
    }
    let command = match command {
        Command::Argv(argv) => argv,
        Command::Shell(line) => vec!["bash".to_owned(), "-c".to_owned(), line],
    };
    let before = [cwd.path.as_str().to_owned(), env.len().to_string()].into_iter();
    let argv = in_life(link, RUN, before.chain(command));
    let env: BTreeMap<String, String> = env
        .into_iter()
        .enumerate()
        .map(|(number, (name, value))| (format!("EYOT_VARIABLE_{number}"), format!("{name}={value}")))
        .collect();
    ProcessRequest { argv, env, stdin, pty, ..ProcessRequest::of(SystemUser::Own) }
}

/// Refuses arguments and variables that Linux would not take.
fn check_lengths<'a>(all: impl Iterator<Item = &'a String>) -> Result<()> {
    let mut total = 0;
    for argument in all {
        if argument.len() > MAX_ARGUMENT_BYTES {
            let message = format!("an argument or a variable has more than {MAX_ARGUMENT_BYTES} bytes");
            return Err(Error::new(ErrorKind::TooLarge, message));
        }
        total += argument.len() + PER_ARGUMENT_BYTES;
    }
    if total > MAX_ARGUMENTS_BYTES {
        let message = format!("the arguments and variables have more than {MAX_ARGUMENTS_BYTES} bytes");
        return Err(Error::new(ErrorKind::TooLarge, message));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_argument_as_long_as_the_limit_is_taken_and_one_byte_more_is_refused() {
        let of = |length: usize| check_lengths(["echo".to_owned(), "x".repeat(length)].iter());
        assert!(of(MAX_ARGUMENT_BYTES).is_ok());
        assert_eq!(of(MAX_ARGUMENT_BYTES + 1).unwrap_err().kind(), ErrorKind::TooLarge);
    }

    #[test]
    fn arguments_as_long_as_the_limit_together_are_taken_and_one_byte_more_is_refused() {
        let of = |last: usize| {
            let mut all = vec!["x".repeat(100_000 - PER_ARGUMENT_BYTES); 18];
            all.push("x".repeat(last));
            check_lengths(all.iter())
        };
        let last = MAX_ARGUMENTS_BYTES - 1_800_000 - PER_ARGUMENT_BYTES;
        assert!(of(last).is_ok());
        assert_eq!(of(last + 1).unwrap_err().kind(), ErrorKind::TooLarge);
    }
}
