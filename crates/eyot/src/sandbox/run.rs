//! A command from its launch to its one result: the driver's events in order, then the end. Everything happens while the
//! caller polls, without a task, a channel or a timer that the call did not ask for.

mod clock;
mod live;
mod orphan;
mod watchdog;

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use tokio_util::sync::CancellationToken;

use super::Sandbox;
use crate::driver::{ExecRequest, Execution, ExecutionControl};
use crate::error::{Error, ErrorKind, Result};
use crate::exec::{ExecEvent, ExecResult, Outcome, Stdin};
use crate::observer::{ExecEndEvent, ExecStartEvent};
use clock::{Clock, arrived};
use live::{LiveCommand, RunStep};

/// The time that a kill may take to be confirmed before the caller is told that the command may
/// still be running, in milliseconds.
pub const KILL_CONFIRM_MS: u64 = 5_000;

/// The time that a backend may take to show any sign of life when a command is to be stopped, in
/// milliseconds: to take the order of its kill, or to say that it has started. After that the
/// caller is told that the command may still be running: a backend that is itself stopped must not
/// hold a deadline.
pub const ANSWER_MS: u64 = 750;

/// The limits of a command, whatever its driver says.
pub(super) struct RunOptions {
    pub(super) timeout_ms: Option<u64>,
    pub(super) max_output_bytes: u64,
    pub(super) cancel: Option<CancellationToken>,
    /// The command is streamed. Deadline and cancellation must hold even while the caller does not poll, and the deadline
    /// counts as passed once this is cancelled.
    pub(super) expired: Option<CancellationToken>,
}

/// The result of a launch.
pub(super) enum LaunchOutcome {
    /// It runs.
    Running(CommandRun),
    /// It ended, or never began.
    Ended(ExecResult),
}

/// A command that runs, or is being killed.
pub(super) struct CommandRun {
    /// `None` after the end.
    live: Option<Box<LiveCommand>>,
}

/// The command that is run: its sandbox, and what the observer was told.
#[derive(Clone)]
pub(super) struct RunContext {
    pub(super) sandbox: Sandbox,
    pub(super) start: ExecStartEvent,
}

/// Launches a command that was checked. Deadline and cancellation count from here.
pub(super) async fn launch(
    subject: RunContext,
    request: ExecRequest,
    stdin: Stdin,
    terms: RunOptions,
) -> Result<LaunchOutcome> {
    let mut clock = Clock::start(&terms);
    let driver = subject.sandbox.driver().clone();
    let mut starting: BoxFuture<'static, _> = Box::pin(async move { driver.exec(request).await });
    let stop = tokio::select! {
        biased;
        started = &mut starting => {
            let execution = started.map_err(|error| subject.failed(error))?;
            let live = LiveCommand::new(subject, clock, terms, execution, stdin)?;
            return Ok(LaunchOutcome::Running(CommandRun::new(live)));
        }
        () = arrived(&mut clock.cancelled) => Outcome::Cancelled,
        () = arrived(&mut clock.deadline) => Outcome::TimedOut,
        () = arrived(&mut clock.expired) => Outcome::TimedOut,
    };
    stop_launch(subject, clock, terms, starting, stop).await
}

/// Stops a command that is still being started: only its start can say what there is to kill.
async fn stop_launch(
    subject: RunContext,
    clock: Clock,
    terms: RunOptions,
    mut starting: BoxFuture<'static, Result<Execution>>,
    outcome: Outcome,
) -> Result<LaunchOutcome> {
    let result = unstarted_result(outcome, clock.timeout_ms);
    match tokio::time::timeout(Duration::from_millis(ANSWER_MS), &mut starting).await {
        Ok(Ok(execution)) => {
            let mut live = LiveCommand::new(subject, clock, terms, execution, Stdin::Closed)?;
            live.stop(outcome);
            Ok(LaunchOutcome::Running(CommandRun::new(live)))
        }
        Ok(Err(error)) => {
            tracing::debug!(%error, "a command that was to be stopped could not be started");
            Ok(LaunchOutcome::Ended(ExecResult { duration_ms: clock.elapsed_ms(), ..result }))
        }
        Err(_elapsed) => {
            let duration_ms = clock.elapsed_ms();
            orphan::adopt_launch(subject, clock, terms, starting);
            Ok(LaunchOutcome::Ended(ExecResult { duration_ms, may_still_be_running: true, ..result }))
        }
    }
}

/// Orders the kill of a command, and tells the backend if a deadline is the reason.
async fn order_kill(control: &dyn ExecutionControl, outcome: Outcome) -> Result<()> {
    match outcome {
        Outcome::TimedOut => control.expire().await,
        _ => control.kill().await,
    }
}

/// The result of a command that never ran.
pub(super) fn unstarted_result(outcome: Outcome, timeout_ms: Option<u64>) -> ExecResult {
    ExecResult {
        outcome,
        stdout: bytes::Bytes::new(),
        stderr: bytes::Bytes::new(),
        stdout_bytes: 0,
        stderr_bytes: 0,
        duration_ms: 0,
        timeout_ms,
        may_still_be_running: false,
        output_open: false,
    }
}

impl CommandRun {
    fn new(live: LiveCommand) -> Self {
        Self { live: Some(Box::new(live)) }
    }

    /// The control; `None` after the end.
    pub(super) fn control(&self) -> Option<Arc<dyn ExecutionControl>> {
        self.live.as_ref().map(|live| live.control())
    }

    /// The next event; after the end or an error, nothing.
    pub(super) async fn next(&mut self) -> Option<Result<ExecEvent>> {
        loop {
            match self.live.as_mut()?.step().await {
                RunStep::Event(event) => return Some(Ok(event)),
                RunStep::Again => {}
                RunStep::Ended { outcome, output_open } => {
                    let mut live = self.live.take()?;
                    let outcome = live.outcome(outcome);
                    let result = ExecResult { output_open, ..live.result(outcome) };
                    return Some(live.subject.end(result).await);
                }
                RunStep::Lost(error) => return Some(self.lost(error).await),
                RunStep::Unconfirmed => {
                    let live = self.live.take()?;
                    let (subject, result) = (live.subject.clone(), live.unconfirmed_result());
                    orphan::adopt(live);
                    return Some(subject.end(result).await);
                }
            }
        }
    }

    /// The driver lost the command. That is the caller's error, unless the caller had given it up already.
    async fn lost(&mut self, error: Error) -> Result<ExecEvent> {
        let Some(mut live) = self.live.take() else {
            return Err(error);
        };
        let Some(outcome) = live.stop_outcome() else {
            return Err(live.subject.failed(error));
        };
        if error.kind() == ErrorKind::Destroyed {
            let result = live.result(outcome);
            return live.subject.end(result).await;
        }
        let result = live.unconfirmed_result();
        orphan::settle(&live, Err(error));
        live.subject.end(result).await
    }
}

impl RunContext {
    /// Tells the observer of the end, and makes it the last event.
    async fn end(&self, result: ExecResult) -> Result<ExecEvent> {
        self.report_end(&result).await?;
        Ok(ExecEvent::End(result))
    }

    /// Tells the observer that a command is about to start.
    pub(super) async fn report_start(&self) -> Result<()> {
        match self.sandbox.observer() {
            Some(observer) => observer.exec_started(&self.start).await,
            None => Ok(()),
        }
    }

    /// Tells the observer that a command ended.
    pub(super) async fn report_end(&self, result: &ExecResult) -> Result<()> {
        let Some(observer) = self.sandbox.observer() else {
            return Ok(());
        };
        observer.exec_ended(&ExecEndEvent { start: self.start.clone(), result: result.clone() }).await
    }

    fn failed(&self, error: Error) -> Error {
        self.sandbox.failed("run", shorten(&self.start.command.to_string()))(error)
    }
}

/// The beginning of a text that may be megabytes long, for an error's sentence.
pub(super) fn shorten(text: &str) -> String {
    const MAX_CHARS: usize = 80;
    let mut short: String = text.chars().take(MAX_CHARS).collect();
    if short.len() < text.len() {
        short.push('…');
    }
    short
}
