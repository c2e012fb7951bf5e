//! A command while it runs, one step at a time: what comes first of an event, the deadline, the cancellation and the
//! confirmation of a kill.

use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use futures_util::stream::BoxStream;
use futures_util::{FutureExt, StreamExt};
use tokio::time::{Instant, Sleep};
use tokio_util::sync::CancellationToken;

use super::clock::{Clock, arrived};
use super::watchdog::Watchdog;
use super::{ANSWER_MS, KILL_CONFIRM_MS, RunContext, RunOptions, order_kill};
use crate::driver::{Execution, ExecutionControl, ExecutionEvent};
use crate::error::{Error, ErrorKind, Result};
use crate::exec::{ExecEvent, ExecResult, Outcome, Stdin};
use crate::sandbox::capture::Capture;
use crate::sandbox::stdin::{StdinFeed, feed};

pub(super) struct LiveCommand {
    pub(super) subject: RunContext,
    pub(super) clock: Clock,
    cancel: Option<CancellationToken>,
    stdout: Capture,
    stderr: Capture,
    events: BoxStream<'static, Result<ExecutionEvent>>,
    control: Arc<dyn ExecutionControl>,
    feed: Option<StdinFeed>,
    watchdog: Option<Watchdog>,
    stopping: Option<PendingKill>,
}

/// A kill that was ordered.
struct PendingKill {
    outcome: Outcome,
    order: Option<BoxFuture<'static, Result<()>>>,
    /// The time at which it must be confirmed, if the order is taken.
    until: Instant,
    /// Until when the order must be taken, and then until when the kill must be confirmed. `None`:
    /// there is no time limit any more.
    grace: Option<Pin<Box<Sleep>>>,
}

/// The result of one step.
pub(super) enum RunStep {
    /// Output.
    Event(ExecEvent),
    /// Something else; take another step.
    Again,
    /// The driver says how it ended.
    Ended { outcome: Outcome, output_open: bool },
    /// The driver does not know any more.
    Lost(Error),
    /// The grace is over and the kill not confirmed.
    Unconfirmed,
}

impl LiveCommand {
    pub(super) fn new(
        subject: RunContext,
        clock: Clock,
        terms: RunOptions,
        execution: Execution,
        stdin: Stdin,
    ) -> Result<Self> {
        let Execution { events, input, control } = execution;
        Ok(Self {
            stdout: Capture::new(terms.max_output_bytes),
            stderr: Capture::new(terms.max_output_bytes),
            feed: feed(stdin, input)?,
            watchdog: Watchdog::set(&clock, &terms, &control),
            cancel: terms.cancel,
            stopping: None,
            subject,
            clock,
            events,
            control,
        })
    }

    pub(super) fn control(&self) -> Arc<dyn ExecutionControl> {
        self.control.clone()
    }

    /// Cancellation comes first, so that a command that ended in the same moment is cancelled all the same; the deadline
    /// comes before output, or a flood would keep it off.
    pub(super) async fn step(&mut self) -> RunStep {
        if let Some(stopping) = &mut self.stopping {
            return match stopping.next(&mut self.events).await {
                Some(event) => self.take(event),
                None => RunStep::Unconfirmed,
            };
        }
        tokio::select! {
            biased;
            () = arrived(&mut self.clock.cancelled) => self.stop(Outcome::Cancelled),
            () = arrived(&mut self.clock.deadline) => return self.expired(),
            () = arrived(&mut self.clock.expired) => return self.expired(),
            fed = arrived(&mut self.feed) => if let Err(error) = fed {
                tracing::debug!(%error, "a command's input stream failed; the command is cancelled");
                self.stop(Outcome::Cancelled);
            },
            event = self.events.next() => return self.take(event),
        }
        RunStep::Again
    }

    /// The deadline passed. If the end is there already it was in time, unless a watchdog forced it.
    fn expired(&mut self) -> RunStep {
        let ready = self.events.next().now_or_never();
        let ended = matches!(ready, Some(Some(Ok(ExecutionEvent::Exit { .. }))));
        if !ended || self.watchdog.as_ref().is_some_and(Watchdog::has_fired) {
            self.stop(Outcome::TimedOut);
        }
        ready.map_or(RunStep::Again, |event| self.take(event))
    }

    /// Orders the kill; from now on only its confirmation is waited for.
    pub(super) fn stop(&mut self, outcome: Outcome) {
        self.feed = None;
        let control = self.control.clone();
        self.stopping = Some(PendingKill {
            outcome,
            order: Some(Box::pin(async move { order_kill(control.as_ref(), outcome).await })),
            until: Instant::now() + Duration::from_millis(KILL_CONFIRM_MS),
            grace: Some(Box::pin(tokio::time::sleep(Duration::from_millis(ANSWER_MS)))),
        });
    }

    /// From now on it may take as long as it likes.
    pub(super) fn wait_without_limit(&mut self) {
        if let Some(stopping) = &mut self.stopping {
            stopping.grace = None;
        }
    }

    fn take(&mut self, event: Option<Result<ExecutionEvent>>) -> RunStep {
        match event {
            Some(Ok(ExecutionEvent::Stdout(bytes))) => {
                self.stdout.push(&bytes);
                RunStep::Event(ExecEvent::Stdout(bytes))
            }
            Some(Ok(ExecutionEvent::Stderr(bytes))) => {
                self.stderr.push(&bytes);
                RunStep::Event(ExecEvent::Stderr(bytes))
            }
            Some(Ok(ExecutionEvent::Exit { status, output_open })) => {
                RunStep::Ended { outcome: status.into(), output_open }
            }
            Some(Err(error)) => RunStep::Lost(error),
            None => RunStep::Lost(Error::new(ErrorKind::Unavailable, "its end was never reported")),
        }
    }

    /// Returns the outcome that it was stopped with, if it was stopped.
    pub(super) fn stop_outcome(&self) -> Option<Outcome> {
        self.stopping.as_ref().map(|stopping| stopping.outcome)
    }

    /// Returns the outcome of a command that ended this way: why it was stopped, if it was; never a
    /// success that the caller had cancelled.
    pub(super) fn outcome(&self, exit: Outcome) -> Outcome {
        let cancelled = self.cancel.as_ref().is_some_and(CancellationToken::is_cancelled);
        self.stop_outcome().or(cancelled.then_some(Outcome::Cancelled)).unwrap_or(exit)
    }

    /// The result at the end.
    pub(super) fn result(&mut self, outcome: Outcome) -> ExecResult {
        ExecResult {
            outcome,
            stdout_bytes: self.stdout.total(),
            stderr_bytes: self.stderr.total(),
            stdout: self.stdout.take(),
            stderr: self.stderr.take(),
            duration_ms: self.clock.elapsed_ms(),
            timeout_ms: self.clock.timeout_ms,
            may_still_be_running: false,
            output_open: false,
        }
    }

    /// Returns the result so far of a command whose kill was not confirmed.
    pub(super) fn unconfirmed_result(&self) -> ExecResult {
        ExecResult {
            outcome: self.stop_outcome().unwrap_or(Outcome::Cancelled),
            stdout: self.stdout.snapshot(),
            stderr: self.stderr.snapshot(),
            stdout_bytes: self.stdout.total(),
            stderr_bytes: self.stderr.total(),
            duration_ms: self.clock.elapsed_ms(),
            timeout_ms: self.clock.timeout_ms,
            may_still_be_running: true,
            output_open: false,
        }
    }
}

impl PendingKill {
    /// The next event, or `None` once the grace is over. An order that failed is no reason to wait less than for one that
    /// was taken: the command may be ending by itself.
    async fn next(
        &mut self,
        events: &mut BoxStream<'static, Result<ExecutionEvent>>,
    ) -> Option<Option<Result<ExecutionEvent>>> {
        loop {
            tokio::select! {
                biased;
                ordered = arrived(&mut self.order) => {
                    if let Err(error) = ordered {
                        tracing::warn!(%error, "the kill of a command could not be ordered");
                    }
                    if let Some(grace) = &mut self.grace {
                        grace.as_mut().reset(self.until);
                    }
                }
                () = arrived(&mut self.grace) => return None,
                event = events.next() => return Some(event),
            }
        }
    }
}
