//! The driver's commands: a process of envd, whose output is its events.
//!
//! envd tells the end of a process only when nothing holds its output open any more. So a command that runs
//! for a while is watched by a second process, which sees its end in `/proc`. envd is then told to let the
//! output go, and tells the end as it was.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use eyot::{
    Command, Error, ErrorKind, ExecRequest, Execution, ExecutionControl, ExecutionEvent, ExecutionInput,
    PtySize, Result, SandboxOperationUnsupported, Signal,
};
use futures_util::StreamExt;
use tokio::sync::{mpsc, oneshot};
use tokio::time::Instant;
use tokio_util::sync::{CancellationToken, DropGuard};

use super::NAME;
use super::envd::{InputKind, ProcessRequest, SystemUser};
use super::events::{ProcessEnd, ProcessEvent, ProcessEvents};
use super::exit;
use super::link::Link;
use super::script::{RunningScript, answer, bash, in_life, next_event, start};

const RUN: &str = include_str!("run.sh");
const KILL: &str = include_str!("kill.sh");
const WATCH: &str = include_str!("watch.sh");

/// The longest argument or variable that Linux takes, in bytes.
const MAX_ARGUMENT_BYTES: usize = 131_071;
/// The most bytes of all arguments and variables, with a pointer for each; Linux takes 2 MiB, and E2B adds its own.
const MAX_ARGUMENTS_BYTES: usize = 1_900_000;
/// The bytes of a pointer and of the NUL behind an argument.
const PER_ARGUMENT_BYTES: usize = 9;
/// The bytes of input in one request.
const INPUT_BYTES: usize = 256 << 10;
/// The key that tells a program on a terminal that nothing more is typed.
const END_OF_TYPING: &[u8] = b"\x04";
/// The events that may wait for a reader.
const WAITING_EVENTS: usize = 8;
/// The age at which a command that runs is watched.
const WATCHED_AFTER: Duration = Duration::from_millis(100);
/// The silence of an ended command's output after which nobody listens any more.
const SILENT_FOR: Duration = Duration::from_millis(5);
/// The longest time for which the output of an ended command is listened to.
const LISTENED_FOR: Duration = Duration::from_millis(50);
/// The longest wait for envd to tell the end of a process once nobody listens to its output.
const END_PATIENCE: Duration = Duration::from_secs(30);

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
    let new = ProcessRequest { argv: arguments(link, request)?, user: SystemUser::Own, stdin, pty };
    let running = start(link, &new).await?;
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

/// Returns the command of a request, with the script that says whether it can be run.
fn arguments(link: &Link, request: ExecRequest) -> Result<Vec<String>> {
    let all = in_life(link, RUN, words(request));
    check_lengths(&all)?;
    Ok(all)
}

/// Returns what the script is told: the directory, the variables, the command.
fn words(request: ExecRequest) -> Vec<String> {
    let ExecRequest { command, cwd, mut env, pty, .. } = request;
    if pty.is_some() {
        env.entry("TERM".to_owned()).or_insert_with(|| "xterm-256color".to_owned());
    }
    let command = match command {
        Command::Argv(argv) => argv,
        Command::Shell(line) => vec!["bash".to_owned(), "-c".to_owned(), line],
    };
    let before = [cwd.path.as_str().to_owned(), env.len().to_string()].into_iter();
    before.chain(variables(env)).chain(command).collect()
}

/// Refuses arguments that Linux would not take.
fn check_lengths(all: &[String]) -> Result<()> {
    if all.iter().any(|argument| argument.len() > MAX_ARGUMENT_BYTES) {
        let message = format!("an argument or a variable has more than {MAX_ARGUMENT_BYTES} bytes");
        return Err(Error::new(ErrorKind::TooLarge, message));
    }
    if all.iter().map(|argument| argument.len() + PER_ARGUMENT_BYTES).sum::<usize>() > MAX_ARGUMENTS_BYTES {
        let message = format!("the arguments and variables have more than {MAX_ARGUMENTS_BYTES} bytes");
        return Err(Error::new(ErrorKind::TooLarge, message));
    }
    Ok(())
}

fn variables(env: BTreeMap<String, String>) -> impl Iterator<Item = String> {
    env.into_iter().map(|(name, value)| format!("{name}={value}"))
}

struct ProcessInput {
    link: Arc<Link>,
    pid: u32,
    kind: InputKind,
    /// A line was begun and not ended.
    is_within_line: bool,
}

impl ProcessInput {
    fn new(link: &Arc<Link>, pid: u32, kind: InputKind) -> Self {
        Self { link: Arc::clone(link), pid, kind, is_within_line: false }
    }
}

#[async_trait]
impl ExecutionInput for ProcessInput {
    async fn write(&mut self, bytes: Bytes) -> Result<()> {
        for piece in bytes.chunks(INPUT_BYTES) {
            self.link.send_input(self.pid, self.kind, piece).await?;
        }
        if let Some(last) = bytes.last() {
            self.is_within_line = !matches!(last, b'\n' | b'\r');
        }
        Ok(())
    }
}

impl Drop for ProcessInput {
    fn drop(&mut self) {
        let (link, pid, kind, is_within_line) =
            (Arc::clone(&self.link), self.pid, self.kind, self.is_within_line);
        in_background(async move {
            let closed = match kind {
                InputKind::Stdin => link.close_stdin(pid).await,
                // The first one only ends the line.
                InputKind::Terminal if is_within_line => {
                    link.send_input(pid, kind, &END_OF_TYPING.repeat(2)).await
                }
                InputKind::Terminal => link.send_input(pid, kind, END_OF_TYPING).await,
            };
            // A process that has ended has no input.
            if let Err(error) = closed {
                tracing::trace!(%error, "an input could not be closed");
            }
        });
    }
}

/// Does something that nobody waits for, where there is a runtime.
fn in_background(work: impl Future<Output = ()> + Send + 'static) {
    if let Ok(runtime) = tokio::runtime::Handle::try_current() {
        runtime.spawn(work);
    }
}

struct ProcessControl {
    link: Arc<Link>,
    pid: u32,
}

#[async_trait]
impl ExecutionControl for ProcessControl {
    async fn kill(&self) -> Result<()> {
        kill(&self.link, self.pid).await
    }

    async fn signal(&self, _: Signal) -> Result<()> {
        Err(SandboxOperationUnsupported::new("signal", NAME, &[]).into())
    }

    async fn resize(&self, size: PtySize) -> Result<()> {
        self.link.resize(self.pid, size).await
    }
}

/// Kills a process with its children, whosever they are.
async fn kill(link: &Link, pid: u32) -> Result<()> {
    let children = answer(link, bash(KILL, [pid.to_string()]), SystemUser::Root).await;
    let process = link.kill_process(pid).await;
    children.and(process)
}

/// Passes the events of a command on until its end. If nobody wants them, the command is killed.
async fn pump(link: Arc<Link>, running: RunningScript, sender: mpsc::Sender<Result<ExecutionEvent>>) {
    let RunningScript { pid, mut events, first } = running;
    let passed = async {
        if !first.is_empty() {
            sender.send(Ok(ExecutionEvent::Stdout(first))).await.map_err(|_| Unread)?;
        }
        let end = until_end(&link, pid, &mut events, &sender).await?;
        sender.send(end).await.map_err(|_| Unread)
    };
    if passed.await.is_err()
        && let Err(error) = kill(&link, pid).await
    {
        tracing::debug!(%error, "a command that nobody reads could not be killed");
    }
}

/// Nobody reads the events.
struct Unread;

async fn until_end(
    link: &Arc<Link>,
    pid: u32,
    events: &mut ProcessEvents,
    sender: &mpsc::Sender<Result<ExecutionEvent>>,
) -> Result<Result<ExecutionEvent>, Unread> {
    let (mut own_end, _watch) = watch(link, pid);
    loop {
        let event = tokio::select! {
            event = next_event(link, events) => event,
            Ok(()) = &mut own_end => return after_own_end(link, pid, events, sender).await,
            () = sender.closed() => return Err(Unread),
        };
        match passed_on(event, sender).await? {
            Some(Ok(end)) => return Ok(exit_event(&end, false)),
            Some(Err(error)) => return Ok(Err(error)),
            None => {}
        }
    }
}

/// Passes an event on. Returns what ends the events.
async fn passed_on(
    event: Result<ProcessEvent>,
    sender: &mpsc::Sender<Result<ExecutionEvent>>,
) -> Result<Option<Result<ProcessEnd>>, Unread> {
    let output = match event {
        Ok(ProcessEvent::Stdout(bytes)) => ExecutionEvent::Stdout(bytes),
        Ok(ProcessEvent::Stderr(bytes)) => ExecutionEvent::Stderr(bytes),
        Ok(ProcessEvent::End(end)) => return Ok(Some(Ok(end))),
        Ok(ProcessEvent::Start(_) | ProcessEvent::Other) => return Ok(None),
        Err(error) => return Ok(Some(Err(error))),
    };
    sender.send(Ok(output)).await.map_err(|_| Unread)?;
    Ok(None)
}

fn exit_event(end: &ProcessEnd, output_open: bool) -> Result<ExecutionEvent> {
    exit::status(end).map(|status| ExecutionEvent::Exit { status, output_open })
}

/// Listens a little longer to the output of a process that has ended. If it is still held open then, envd is told to let
/// it go.
async fn after_own_end(
    link: &Link,
    pid: u32,
    events: &mut ProcessEvents,
    sender: &mpsc::Sender<Result<ExecutionEvent>>,
) -> Result<Result<ExecutionEvent>, Unread> {
    let listened_until = Instant::now() + LISTENED_FOR;
    while Instant::now() < listened_until {
        let Ok(event) = tokio::time::timeout(SILENT_FOR, next_event(link, events)).await else { break };
        match passed_on(event, sender).await? {
            Some(Ok(end)) => return Ok(exit_event(&end, false)),
            Some(Err(error)) => return Ok(Err(error)),
            None => {}
        }
    }
    if let Err(error) = link.let_go(pid).await {
        return Ok(Err(error));
    }
    let ended = async {
        loop {
            match passed_on(next_event(link, events).await, sender).await? {
                Some(Ok(end)) => return Ok(exit_event(&end, true)),
                Some(Err(error)) => return Ok(Err(error)),
                None => {}
            }
        }
    };
    let late = Error::new(ErrorKind::Unavailable, "E2B does not say how the command ended");
    tokio::time::timeout(END_PATIENCE, ended).await.unwrap_or(Ok(Err(late)))
}

/// Has a second process watch a command that runs for a while. The receiver hears of the command's own end. The watch ends
/// when the guard is dropped.
fn watch(link: &Arc<Link>, pid: u32) -> (oneshot::Receiver<()>, DropGuard) {
    let (told, ended) = oneshot::channel();
    let stopped = CancellationToken::new();
    let (link, guard) = (Arc::clone(link), stopped.clone().drop_guard());
    tokio::spawn(async move {
        if stopped.run_until_cancelled(tokio::time::sleep(WATCHED_AFTER)).await.is_none() {
            return;
        }
        match watched(&link, pid, &stopped).await {
            // Nobody waits for it any more if the command has ended as it should.
            Ok(true) => drop(told.send(())),
            Ok(false) => {}
            Err(error) => tracing::debug!(%error, "a command could not be watched"),
        }
    });
    (ended, guard)
}

/// Watches a process. Returns whether it has ended.
async fn watched(link: &Link, pid: u32, stopped: &CancellationToken) -> Result<bool> {
    let argv = bash(WATCH, [pid.to_string()]);
    let (watcher, mut events) =
        link.start(&ProcessRequest { argv, user: SystemUser::Own, stdin: true, pty: None }).await?;
    loop {
        match stopped.run_until_cancelled(next_event(link, &mut events)).await {
            Some(Ok(ProcessEvent::Stdout(_))) => return Ok(true),
            Some(Ok(ProcessEvent::End(_))) => return Ok(false),
            Some(Ok(_)) => {}
            Some(Err(error)) => return Err(error),
            None => {
                link.close_stdin(watcher).await?;
                return Ok(false);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_argument_as_long_as_the_limit_is_taken_and_one_byte_more_is_refused() {
        let of = |length: usize| check_lengths(&["echo".to_owned(), "x".repeat(length)]);
        assert!(of(MAX_ARGUMENT_BYTES).is_ok());
        assert_eq!(of(MAX_ARGUMENT_BYTES + 1).unwrap_err().kind(), ErrorKind::TooLarge);
    }

    #[test]
    fn arguments_as_long_as_the_limit_together_are_taken_and_one_byte_more_is_refused() {
        let of = |last: usize| {
            let mut all = vec!["x".repeat(100_000 - PER_ARGUMENT_BYTES); 18];
            all.push("x".repeat(last));
            check_lengths(&all)
        };
        let last = MAX_ARGUMENTS_BYTES - 1_800_000 - PER_ARGUMENT_BYTES;
        assert!(of(last).is_ok());
        assert_eq!(of(last + 1).unwrap_err().kind(), ErrorKind::TooLarge);
    }
}
