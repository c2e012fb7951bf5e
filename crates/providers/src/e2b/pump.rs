//! The events of a command, from envd's stream to its end.
//!
//! envd tells the end of a process only when nothing holds its output open any more. So a command that runs
//! for a while is watched by a second process, which sees its end in `/proc`. envd is then told to let the
//! output go, and tells the end as it was.

use std::sync::Arc;
use std::time::Duration;

use eyot::{Error, ErrorKind, ExecutionEvent, Result};
use tokio::sync::{mpsc, oneshot};
use tokio::time::Instant;
use tokio_util::sync::{CancellationToken, DropGuard};
use uuid::Uuid;

use super::envd::{ProcessRequest, SystemUser};
use super::envd_process::EnvdProcess;
use super::events::{ProcessEnd, ProcessEvent, ProcessEvents};
use super::exit;
use super::link::Link;
use super::script::{RunningScript, in_life};

const WATCH: &str = include_str!("watch.sh");

/// The age at which a command that runs is watched.
const WATCHED_AFTER: Duration = Duration::from_millis(100);
/// The silence of an ended command's output after which nobody listens any more: longer than it takes to send a lost packet
/// again.
const SILENT_FOR: Duration = Duration::from_millis(250);
/// The longest time that is spent waiting for the output of an ended command. What its reader takes does not count.
const LISTENED_FOR: Duration = Duration::from_secs(2);
/// The most output that can be on its way when a command ends. More comes from what it left behind.
const MAX_ON_THE_WAY_BYTES: usize = 16 << 20;
/// The longest wait for envd to tell the end of a process once nobody listens to its output.
const END_PATIENCE: Duration = Duration::from_secs(30);

/// Passes the events of a command on until its end. If nobody wants them, the command is killed.
pub(super) async fn pump(
    link: Arc<Link>,
    running: RunningScript,
    sender: mpsc::Sender<Result<ExecutionEvent>>,
) {
    let RunningScript { process, mut events, first, mut ending } = running;
    let passed = async {
        if !first.is_empty() {
            sender.send(Ok(ExecutionEvent::Stdout(first))).await.map_err(|_| ReaderGone)?;
        }
        until_end(&link, &process, &mut events, &sender).await
    };
    let end = passed.await;
    // A command whose end can't be heard of would have no deadline any more.
    if end.as_ref().is_ok_and(|end| !may_run_on(end)) {
        ending.pid = None;
    }
    ending.end().await;
    if let Ok(end) = end {
        // Nobody may wait for it any more.
        drop(sender.send(end).await);
    }
}

/// Tells whether a command may run on after such an end of its events.
fn may_run_on(end: &Result<ExecutionEvent>) -> bool {
    end.as_ref().is_err_and(|error| error.kind() != ErrorKind::Destroyed && !error.is_sleeping())
}

/// Nobody reads the events.
struct ReaderGone;

async fn until_end(
    link: &Arc<Link>,
    process: &EnvdProcess,
    events: &mut ProcessEvents,
    sender: &mpsc::Sender<Result<ExecutionEvent>>,
) -> Result<Result<ExecutionEvent>, ReaderGone> {
    let (mut own_end, _watch) = watch(link, process.pid);
    loop {
        let event = tokio::select! {
            event = link.next_event(events) => event,
            Ok(()) = &mut own_end => return after_own_end(link, process, events, sender).await,
            () = sender.closed() => return Err(ReaderGone),
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
) -> Result<Option<Result<ProcessEnd>>, ReaderGone> {
    let output = match event {
        Ok(ProcessEvent::Stdout(bytes)) => ExecutionEvent::Stdout(bytes),
        Ok(ProcessEvent::Stderr(bytes)) => ExecutionEvent::Stderr(bytes),
        Ok(ProcessEvent::End(end)) => return Ok(Some(Ok(end))),
        Ok(ProcessEvent::Start(_) | ProcessEvent::Other) => return Ok(None),
        Err(error) => return Ok(Some(Err(error))),
    };
    sender.send(Ok(output)).await.map_err(|_| ReaderGone)?;
    Ok(None)
}

fn output_bytes(event: &Result<ProcessEvent>) -> usize {
    match event {
        Ok(ProcessEvent::Stdout(bytes) | ProcessEvent::Stderr(bytes)) => bytes.len(),
        _ => 0,
    }
}

fn exit_event(end: &ProcessEnd, output_open: bool) -> Result<ExecutionEvent> {
    exit::status(end).map(|status| ExecutionEvent::Exit { status, output_open })
}

/// Listens a little longer to the output of a process that has ended. If it is still held open then, envd is told to let
/// it go.
async fn after_own_end(
    link: &Link,
    process: &EnvdProcess,
    events: &mut ProcessEvents,
    sender: &mpsc::Sender<Result<ExecutionEvent>>,
) -> Result<Result<ExecutionEvent>, ReaderGone> {
    let (mut listened, mut bytes) = (Duration::ZERO, 0);
    while listened < LISTENED_FOR && bytes < MAX_ON_THE_WAY_BYTES {
        let asked = Instant::now();
        let Ok(event) = tokio::time::timeout(SILENT_FOR, link.next_event(events)).await else { break };
        listened += asked.elapsed();
        bytes += output_bytes(&event);
        match passed_on(event, sender).await? {
            Some(Ok(end)) => return Ok(exit_event(&end, false)),
            Some(Err(error)) => return Ok(Err(error)),
            None => {}
        }
    }
    if let Err(error) = link.let_go(process).await {
        return Ok(Err(error));
    }
    let ended = async {
        loop {
            match passed_on(link.next_event(events).await, sender).await? {
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
    let (argv, tag) = (in_life(link, WATCH, [pid.to_string()]), Uuid::new_v4().to_string());
    let new = ProcessRequest { argv, stdin: true, ..ProcessRequest::of(SystemUser::Own) };
    let (watcher, mut events) = link.start(&new, Some(&tag)).await?;
    let watcher = EnvdProcess { pid: watcher, tag };
    loop {
        match stopped.run_until_cancelled(link.next_event(&mut events)).await {
            Some(Ok(ProcessEvent::Stdout(_))) => return Ok(true),
            Some(Ok(ProcessEvent::End(_))) => return Ok(false),
            Some(Ok(_)) => {}
            Some(Err(error)) => return Err(error),
            None => {
                link.close_stdin(&watcher).await?;
                return Ok(false);
            }
        }
    }
}
