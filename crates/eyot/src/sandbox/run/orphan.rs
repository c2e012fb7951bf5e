//! Commands whose kill was not confirmed in time. A task waits for the end of each and tells the
//! observer once, so that nothing is lost and no caller waits.

use std::time::SystemTime;

use futures_util::future::BoxFuture;

use super::clock::Clock;
use super::live::{LiveCommand, RunStep};
use super::{RunContext, RunOptions};
use crate::driver::Execution;
use crate::error::Result;
use crate::exec::{ExecResult, Outcome, Stdin};
use crate::observer::OrphanSettlement;

/// A command that was given up, and when.
struct Orphan {
    subject: RunContext,
    started_at: SystemTime,
    abandoned_at: SystemTime,
}

impl Orphan {
    fn new(subject: &RunContext, clock: &Clock) -> Self {
        Self { subject: subject.clone(), started_at: clock.started_at, abandoned_at: SystemTime::now() }
    }

    /// Tells the observer. No caller is left to hear of an error, and a panic ends with this task.
    async fn notify_observer(self, result: Result<ExecResult>) {
        let Some(observer) = self.subject.sandbox.observer().cloned() else {
            return;
        };
        let settlement = OrphanSettlement {
            sandbox: self.subject.start.sandbox,
            command: self.subject.start.command,
            started_at: self.started_at,
            abandoned_at: self.abandoned_at,
            settled_at: SystemTime::now(),
            result,
        };
        observer.orphan_settled(settlement).await;
    }
}

/// Waits for the end of a command that was given up.
pub(super) fn adopt(mut live: Box<LiveCommand>) {
    let orphan = Orphan::new(&live.subject, &live.clock);
    tokio::spawn(async move { orphan.notify_observer(wait(&mut live).await).await });
}

/// Waits for the start of a command that was given up, kills it, and waits for its end.
pub(super) fn adopt_launch(
    subject: RunContext,
    clock: Clock,
    terms: RunOptions,
    starting: BoxFuture<'static, Result<Execution>>,
) {
    let orphan = Orphan::new(&subject, &clock);
    tokio::spawn(async move {
        let result = async {
            let mut live = LiveCommand::new(subject, clock, terms, starting.await?, Stdin::Closed)?;
            live.stop(Outcome::Cancelled);
            wait(&mut live).await
        };
        orphan.notify_observer(result.await).await;
    });
}

/// Tells the observer of a command that was given up and whose end is known, or will never be.
pub(super) fn settle(live: &LiveCommand, result: Result<ExecResult>) {
    let orphan = Orphan::new(&live.subject, &live.clock);
    tokio::spawn(orphan.notify_observer(result));
}

/// Waits for the real result, however long that takes.
async fn wait(live: &mut LiveCommand) -> Result<ExecResult> {
    live.wait_without_limit();
    loop {
        match live.step().await {
            RunStep::Event(_) | RunStep::Again | RunStep::Unconfirmed => {}
            RunStep::Ended { outcome, output_open } => {
                return Ok(ExecResult { output_open, ..live.result(outcome) });
            }
            RunStep::Lost(error) => return Err(error),
        }
    }
}
