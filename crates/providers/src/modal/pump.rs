//! The events of a command, from its two outputs to its end.
//!
//! Modal tells the end of a process whatever holds its output open, so the outputs are listened to a little
//! longer, and let go if they are still open then.

use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use eyot::{Error, ErrorKind, ExecutionEvent, ExitStatus, Result};
use tokio::sync::mpsc;
use tokio::time::Instant;

use super::link::ModalLink;
use super::output::{ModalOutput, OutputReader};
use super::script::{StartedScript, end};
use super::wire::{ExecEnd, STDERR};

/// The silence of an ended command's output after which nobody listens any more: longer than it takes to send a lost packet
/// again.
const SILENT_FOR: Duration = Duration::from_millis(250);
/// The longest time that is spent waiting for the output of an ended command. What its reader takes does not count.
const LISTENED_FOR: Duration = Duration::from_secs(2);
/// The time for which a stream must have been open before its silence says anything: the service may be far away.
const NEW_STREAM_FOR: Duration = Duration::from_secs(1);
/// The longest time that is spent taking up outputs of an ended command that have broken off.
const TAKEN_UP_FOR: Duration = Duration::from_secs(60);
/// The most output that can be on its way when a command ends. More comes from what it left behind.
const MAX_ON_THE_WAY_BYTES: usize = 64 << 20;

/// Passes the events of a command on until its end. If nobody wants them, the command is killed.
pub(super) async fn pump(
    link: Arc<ModalLink>,
    running: StartedScript,
    sender: mpsc::Sender<Result<ExecutionEvent>>,
) {
    let StartedScript { process, stdout, first, mut ending } = running;
    let mut outputs = CommandOutputs {
        stderr: Some(OutputReader::new(&link, &process.exec_id, STDERR).into_stream()),
        stdout: Some(stdout.into_stream()),
    };
    let passed = async {
        if !first.is_empty() {
            sender.send(Ok(ExecutionEvent::Stdout(first))).await.map_err(|_| EventsUnread)?;
        }
        until_end(&link, &process.exec_id, &mut outputs, &sender).await
    };
    let end = passed.await;
    // A command whose end can't be heard of would have no deadline any more.
    if end.as_ref().is_ok_and(|end| !may_run_on(end)) {
        ending.process = None;
    }
    ending.end().await;
    if let Ok(end) = end {
        // Nobody may wait for it any more.
        drop(sender.send(end).await);
    }
}

/// Tells whether a command may run on after such an end of its events.
fn may_run_on(end: &Result<ExecutionEvent>) -> bool {
    end.as_ref().is_err_and(|error| error.kind() != ErrorKind::Destroyed)
}

/// Nobody reads the events.
struct EventsUnread;

/// The outputs of a command that have not ended.
struct CommandOutputs {
    stdout: Option<ModalOutput>,
    stderr: Option<ModalOutput>,
}

impl CommandOutputs {
    fn have_ended(&self) -> bool {
        self.stdout.is_none() && self.stderr.is_none()
    }

    /// Tells whether the silence of those that are left says something: their streams are open, and have been for a while.
    fn are_heard(&self) -> bool {
        let is_heard =
            |output: &ModalOutput| output.opened().is_some_and(|opened| opened.elapsed() >= NEW_STREAM_FOR);
        self.stdout.iter().chain(&self.stderr).all(is_heard)
    }

    /// Waits for the next output; `None`: one of them has ended. It may be dropped while it waits: nothing is lost.
    async fn next(&mut self) -> Result<Option<ExecutionEvent>> {
        tokio::select! {
            told = next_of(&mut self.stdout) => Ok(told?.map(ExecutionEvent::Stdout)),
            told = next_of(&mut self.stderr) => Ok(told?.map(ExecutionEvent::Stderr)),
        }
    }
}

async fn next_of(output: &mut Option<ModalOutput>) -> Result<Option<Bytes>> {
    let Some(stream) = output else { return std::future::pending().await };
    let told = stream.next().await.transpose()?;
    if told.is_none() {
        *output = None;
    }
    Ok(told)
}

async fn until_end(
    link: &Arc<ModalLink>,
    exec_id: &str,
    outputs: &mut CommandOutputs,
    sender: &mpsc::Sender<Result<ExecutionEvent>>,
) -> Result<Result<ExecutionEvent>, EventsUnread> {
    let mut end = pin!(end(link, exec_id));
    loop {
        let told = tokio::select! {
            told = outputs.next() => told,
            ended = &mut end => {
                return match ended {
                    Ok(ended) => after_end(ended, outputs, sender).await,
                    Err(error) => Ok(Err(error)),
                };
            }
            () = sender.closed() => return Err(EventsUnread),
        };
        match told {
            Ok(Some(output)) => sender.send(Ok(output)).await.map_err(|_| EventsUnread)?,
            Ok(None) => {}
            Err(error) => return Ok(Err(error)),
        }
    }
}

/// Listens a little longer to the outputs of a process that has ended. The silence of one that has broken off says nothing: it
/// is taken up first, so that its last bytes are not lost.
async fn after_end(
    end: ExecEnd,
    outputs: &mut CommandOutputs,
    sender: &mpsc::Sender<Result<ExecutionEvent>>,
) -> Result<Result<ExecutionEvent>, EventsUnread> {
    let (mut listened, mut unheard, mut bytes) = (Duration::ZERO, Duration::ZERO, 0);
    while !outputs.have_ended() && listened < LISTENED_FOR && bytes < MAX_ON_THE_WAY_BYTES {
        let asked = Instant::now();
        let told = tokio::time::timeout(SILENT_FOR, outputs.next()).await;
        let are_heard = outputs.are_heard();
        let waited = if are_heard { &mut listened } else { &mut unheard };
        *waited += asked.elapsed();
        if unheard >= TAKEN_UP_FOR {
            return Ok(Err(not_heard()));
        }
        let told = match told {
            Ok(told) => told,
            Err(_) if are_heard => break,
            Err(_) => continue,
        };
        match told {
            Ok(Some(output)) => {
                bytes += output_bytes(&output);
                sender.send(Ok(output)).await.map_err(|_| EventsUnread)?;
            }
            Ok(None) => {}
            Err(error) => return Ok(Err(error)),
        }
    }
    let output_open = !outputs.have_ended();
    Ok(status(end).map(|status| ExecutionEvent::Exit { status, output_open }))
}

fn not_heard() -> Error {
    Error::new(ErrorKind::Unavailable, "the command has ended, and its last output can't be read")
        .with_unknown_effect_if(true)
}

fn output_bytes(event: &ExecutionEvent) -> usize {
    match event {
        ExecutionEvent::Stdout(bytes) | ExecutionEvent::Stderr(bytes) => bytes.len(),
        ExecutionEvent::Exit { .. } => 0,
    }
}

fn status(end: ExecEnd) -> Result<ExitStatus> {
    match end {
        ExecEnd::Code(code) if code >= 0 => Ok(ExitStatus::Exited(code)),
        ExecEnd::Signal(signal) if signal > 0 => Ok(ExitStatus::Signaled(signal)),
        _ => Err(Error::new(ErrorKind::Unavailable, "Modal does not say how the command ended")),
    }
}
