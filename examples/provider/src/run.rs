//! A command: one process of the host in a process group of its own, and the task that looks after it.

use std::io;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::Stdio;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use eyot::{
    Bytes, CancellationToken, Command, Error, ErrorKind, ExecRequest, Execution, ExecutionControl,
    ExecutionEvent, ExecutionInput, ExitStatus, PtySize, Result, SandboxOperationUnsupported, Signal,
};
use futures_util::StreamExt;
use futures_util::stream::{self, BoxStream};
use rustix::process::{Pid, Signal as HostSignal, kill_process_group};
use tokio::io::AsyncWriteExt;
use tokio::process::{Child, ChildStdin};
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep_until};
use tokio_util::io::ReaderStream;
use tokio_util::task::TaskTracker;

use crate::NAME;

/// The time for which output is read on after the end, as `ExecutionEvent` says.
const QUIET: Duration = Duration::from_millis(5);
const LINGER: Duration = Duration::from_millis(50);

/// Starts a command, and a task that ends with it.
pub(crate) fn start(
    request: ExecRequest,
    cwd: &Path,
    root: &Path,
    commands: &TaskTracker,
    gone: &CancellationToken,
) -> Result<Execution> {
    let mut child = spawn(&request, cwd, root)?;
    let input = child.stdin.take().map(|pipe| Box::new(Input(pipe)) as Box<dyn ExecutionInput>);
    let (kill, (sender, pieces)) = (CancellationToken::new(), mpsc::channel(8));
    let last = commands.spawn(look_after(child, sender, kill.clone(), gone.clone()));
    // Dropping the events drops the guard, which orders the kill.
    let state = (pieces, kill.clone().drop_guard());
    let pieces =
        stream::unfold(state, async |(mut pieces, guard)| Some((pieces.recv().await?, (pieces, guard))));
    let last = stream::once(async move {
        last.await.unwrap_or_else(|panic| Err(Error::new(ErrorKind::Internal, panic.to_string())))
    });
    Ok(Execution { events: pieces.chain(last).boxed(), input, control: Arc::new(Control(kill)) })
}

fn spawn(request: &ExecRequest, cwd: &Path, root: &Path) -> Result<Child> {
    let unsupported = |option: &str| Error::from(SandboxOperationUnsupported::new("exec", NAME, &[option]));
    // The handle refuses all of this by the capabilities; a driver that is asked all the same refuses, too.
    let argv = match &request.command {
        Command::Argv(argv) => argv,
        Command::Shell(_) => return Err(unsupported("shell")),
    };
    if request.pty.is_some() || request.user.is_some() {
        return Err(unsupported("pty or user"));
    }
    let (program, arguments) =
        argv.split_first().ok_or_else(|| Error::invalid("command", "must not be empty"))?;
    let mut command = tokio::process::Command::new(program);
    command.args(arguments).current_dir(cwd).process_group(0);
    // Nothing of the host's own environment.
    command.env_clear().env("PATH", "/usr/local/bin:/usr/bin:/bin").env("LANG", "C.UTF-8");
    command.env("HOME", root.join("home/user")).env("TMPDIR", root.join("tmp")).envs(&request.env);
    command.stdin(if request.stdin { Stdio::piped() } else { Stdio::null() });
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    command.spawn().map_err(Error::file)
}

/// The end of the command's own process.
struct End {
    status: ExitStatus,
    /// Output is read no longer than until then.
    until: Instant,
}

/// Delivers the output, carries out a kill, and returns the last event.
async fn look_after(
    mut child: Child,
    events: mpsc::Sender<Result<ExecutionEvent>>,
    kill: CancellationToken,
    gone: CancellationToken,
) -> Result<ExecutionEvent> {
    let group = child.id().and_then(|id| Pid::from_raw(id.cast_signed()));
    let mut output = output_of(&mut child);
    // A piece that its reader has not taken yet, and since when. Until then no more is read: the command waits, and
    // nothing else does.
    let mut piece: Option<(Result<ExecutionEvent>, Instant)> = None;
    let (mut end, mut is_open): (Option<End>, bool) = (None, true);
    let (mut is_killed, mut is_gone) = (false, false);
    while is_open || piece.is_some() || end.is_none() {
        let quiet = end.as_ref().map_or_else(Instant::now, |end| end.until.min(Instant::now() + QUIET));
        tokio::select! {
            biased;
            () = gone.cancelled(), if !is_gone => {
                (is_gone, piece, is_open) = (true, None, false);
                kill.cancel();
            }
            () = kill.cancelled(), if !is_killed => {
                is_killed = true;
                // The number is still the group's: its first process has not been waited for.
                if let (Some(group), None) = (group, &end) {
                    kill_process_group(group, HostSignal::KILL).map_err(|error| Error::file(error.into()))?;
                }
            }
            place = events.reserve(), if piece.is_some() => match (place, piece.take()) {
                (Ok(place), Some((event, since))) => {
                    place.send(event);
                    // A slow reader loses nothing of what the command wrote.
                    if let Some(end) = &mut end {
                        end.until += since.elapsed();
                    }
                }
                // The reader is gone, and its guard has ordered the kill.
                _ => is_open = false,
            },
            status = child.wait(), if end.is_none() => {
                end = Some(End { status: exit_status(status)?, until: Instant::now() + LINGER });
            }
            read = output.next(), if is_open && piece.is_none() => match read {
                Some(read) => piece = Some((read.map_err(Error::file), Instant::now())),
                None => is_open = false,
            },
            () = sleep_until(quiet), if end.is_some() && piece.is_none() => break,
        }
    }
    match end {
        _ if is_gone => Err(Error::new(ErrorKind::Destroyed, "the sandbox has been destroyed")),
        Some(end) => Ok(ExecutionEvent::Exit { status: end.status, output_open: is_open }),
        None => Err(Error::new(ErrorKind::Internal, "the command's end was not seen")),
    }
}

/// Both streams, in the order in which they arrive.
fn output_of(child: &mut Child) -> BoxStream<'static, io::Result<ExecutionEvent>> {
    let stdout = stream::iter(child.stdout.take()).flat_map(ReaderStream::new);
    let stderr = stream::iter(child.stderr.take()).flat_map(ReaderStream::new);
    let stdout = stdout.map(|bytes| bytes.map(ExecutionEvent::Stdout));
    stream::select(stdout, stderr.map(|bytes| bytes.map(ExecutionEvent::Stderr))).boxed()
}

fn exit_status(status: io::Result<std::process::ExitStatus>) -> Result<ExitStatus> {
    let status = status.map_err(Error::file)?;
    match (status.code(), status.signal()) {
        (Some(code), _) => Ok(ExitStatus::Exited(code)),
        (None, Some(signal)) => Ok(ExitStatus::Signaled(signal)),
        (None, None) => Err(Error::new(ErrorKind::Internal, "the command ended in no known way")),
    }
}

struct Input(ChildStdin);

#[async_trait]
impl ExecutionInput for Input {
    async fn write(&mut self, bytes: Bytes) -> Result<()> {
        self.0.write_all(&bytes).await.map_err(Error::file)
    }
}

struct Control(CancellationToken);

#[async_trait]
impl ExecutionControl for Control {
    async fn kill(&self) -> Result<()> {
        self.0.cancel();
        Ok(())
    }

    async fn signal(&self, _: Signal) -> Result<()> {
        Err(SandboxOperationUnsupported::new("signal", NAME, &[]).into())
    }

    async fn resize(&self, _: PtySize) -> Result<()> {
        Err(SandboxOperationUnsupported::new("resize", NAME, &[]).into())
    }
}
