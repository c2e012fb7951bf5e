//! The driver's commands: each is a process of envd, which a script becomes once it has seen that the command can run.

use std::collections::BTreeMap;
use std::sync::Arc;

use async_trait::async_trait;
use eyot::{
    Command, ConfinedPath, Error, ErrorKind, ExecRequest, Execution, ExecutionInput, Result,
    SandboxOperationUnsupported,
};
use futures_util::StreamExt;
use tokio::sync::mpsc;

use super::NAME;
use super::driver::ScriptedSandbox;
use super::envd::{ProcessRequest, SystemUser};
use super::envd_process::InputKind;
use super::link::Link;
use super::process_io::{ProcessControl, ProcessInput};
use super::pump::pump;
use super::script::{in_life, start};

pub(crate) const RUN: &str = include_str!("run.sh");

/// The longest argument or variable that Linux takes, in bytes.
const MAX_ARGUMENT_BYTES: usize = 131_071;
/// The most bytes of all arguments and variables, with a pointer for each; Linux takes 2 MiB, and E2B adds its own.
const MAX_ARGUMENTS_BYTES: usize = 1_900_000;
/// The bytes of a pointer and of the NUL behind an argument.
const PER_ARGUMENT_BYTES: usize = 9;
/// The events that may wait for a reader.
const WAITING_EVENTS: usize = 8;

#[async_trait]
impl ScriptedSandbox for Link {
    fn check(&self) -> Result<()> {
        Self::check(self)
    }

    async fn exec(self: Arc<Self>, request: ExecRequest) -> Result<Execution> {
        exec(&self, request).await
    }

    fn vendor_id(&self) -> &str {
        &self.id
    }

    async fn end(&self) -> Result<()> {
        self.client.kill(&self.id).await
    }

    fn let_go(&self) {
        self.destroyed.cancel();
    }
}

/// Starts a command.
async fn exec(link: &Arc<Link>, request: ExecRequest) -> Result<Execution> {
    let refused = |option| Err(SandboxOperationUnsupported::new("exec", NAME, &[option]).into());
    if request.user.is_some() {
        return refused("user");
    }
    if request.cwd.beneath.is_some() {
        return refused("beneath");
    }
    let (stdin, pty) = (request.stdin, request.pty);
    let new = process(link, request);
    let variables = new.env.iter().map(|(name, value)| name.len() + "=".len() + value.len());
    check_lengths(new.argv.iter().map(String::len).chain(variables))?;
    let starting = Arc::clone(link);
    // A start whose caller leaves goes on until it is known what there is to kill.
    let running = tokio::spawn(async move { start(&starting, &new).await }).await;
    let running = running
        .map_err(|error| Error::new(ErrorKind::Internal, "a task ended early").with_source(error))??;
    let (process, link) = (running.process.clone(), Arc::clone(link));
    let kind = if pty.is_some() { InputKind::Terminal } else { InputKind::Stdin };
    let input = stdin.then(|| ProcessInput::new(&link, &process, kind));
    if pty.is_some() && !stdin {
        // As the input of a terminal that nobody types into: it ends at once.
        drop(ProcessInput::new(&link, &process, kind));
    }
    let control = Arc::new(ProcessControl { link: Arc::clone(&link), process });
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
    let argv = in_life(link, RUN, run_arguments(&cwd, env.len(), command));
    let env = hidden(env);
    ProcessRequest { argv, env, stdin, pty, ..ProcessRequest::of(SystemUser::Own) }
}

/// Returns the arguments of `run.sh` after the life.
pub(crate) fn run_arguments(
    cwd: &ConfinedPath,
    variables: usize,
    command: Command,
) -> impl Iterator<Item = String> {
    let command = match command {
        Command::Argv(argv) => argv,
        Command::Shell(line) => vec!["bash".to_owned(), "-c".to_owned(), line],
    };
    [cwd.path.as_str().to_owned(), variables.to_string()].into_iter().chain(command)
}

/// Returns variables under the names that they have on their way to `run.sh`.
pub(crate) fn hidden(env: BTreeMap<String, String>) -> BTreeMap<String, String> {
    env.into_iter()
        .enumerate()
        .map(|(number, (name, value))| (format!("EYOT_VARIABLE_{number}"), format!("{name}={value}")))
        .collect()
}

/// Refuses arguments and variables, of these lengths on their way, that Linux would not take.
pub(crate) fn check_lengths(all: impl Iterator<Item = usize>) -> Result<()> {
    let mut total = 0;
    for length in all {
        if length > MAX_ARGUMENT_BYTES {
            let message = format!("an argument or a variable has more than {MAX_ARGUMENT_BYTES} bytes");
            return Err(Error::new(ErrorKind::TooLarge, message));
        }
        total += length + PER_ARGUMENT_BYTES;
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
        let of = |length: usize| check_lengths(["echo".len(), length].into_iter());
        assert!(of(MAX_ARGUMENT_BYTES).is_ok());
        assert_eq!(of(MAX_ARGUMENT_BYTES + 1).unwrap_err().kind(), ErrorKind::TooLarge);
    }

    #[test]
    fn arguments_as_long_as_the_limit_together_are_taken_and_one_byte_more_is_refused() {
        let of = |last: usize| {
            let mut all = vec![100_000 - PER_ARGUMENT_BYTES; 18];
            all.push(last);
            check_lengths(all.into_iter())
        };
        let last = MAX_ARGUMENTS_BYTES - 1_800_000 - PER_ARGUMENT_BYTES;
        assert!(of(last).is_ok());
        assert_eq!(of(last + 1).unwrap_err().kind(), ErrorKind::TooLarge);
    }
}
