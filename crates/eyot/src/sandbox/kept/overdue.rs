//! The deadline of a kept command, which its backend keeps: a backend that is itself stopped must not hold up a reader.

use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt;
use futures_util::stream::{self, BoxStream};
use tokio::time::{Instant, sleep_until, timeout};

use crate::driver::{KeptAttachment, SandboxDriver};
use crate::error::Result;
use crate::exec::{ExecResult, Outcome};
use crate::kept::{KeptEvent, KeptInfo};
use crate::sandbox::run::{ANSWER_MS, KILL_CONFIRM_MS, unstarted_result};

type KeptEventStream = BoxStream<'static, Result<KeptEvent>>;

/// Events, and the moment at which their command is to have ended.
struct DeadlineWatch {
    events: KeptEventStream,
    driver: Arc<dyn SandboxDriver>,
    deadline: Instant,
    /// The result if the backend does not answer then.
    overdue: ExecResult,
    is_over: bool,
}

/// These events; when the deadline has passed and the backend does not answer, an end that says so.
pub(super) fn with_deadline(
    driver: Arc<dyn SandboxDriver>,
    info: &KeptInfo,
    events: KeptEventStream,
) -> KeptEventStream {
    let (Some(timeout_ms), None) = (info.timeout_ms, &info.result) else { return events };
    let left = Duration::from_millis(timeout_ms.saturating_sub(info.age_ms));
    let Some(deadline) = Instant::now().checked_add(left) else { return events };
    let overdue = never_started(Some(timeout_ms), Duration::from_millis(timeout_ms));
    let watch = DeadlineWatch { events, driver, deadline, overdue, is_over: false };
    stream::unfold(watch, DeadlineWatch::next).boxed()
}

impl DeadlineWatch {
    async fn next(mut self) -> Option<(Result<KeptEvent>, Self)> {
        if self.is_over {
            return None;
        }
        let event = tokio::select! {
            biased;
            event = self.events.next() => event,
            () = unanswered(&*self.driver, self.deadline) => Some(Ok(KeptEvent::End(Box::new(self.overdue.clone())))),
        }?;
        self.is_over = matches!(event, Err(_) | Ok(KeptEvent::End(_)));
        Some((event, self))
    }
}

/// Returns once the deadline has passed and the backend does not answer, or has not ended the command in the time that a kill
/// may take.
async fn unanswered(driver: &dyn SandboxDriver, deadline: Instant) {
    sleep_until(deadline).await;
    if timeout(Duration::from_millis(ANSWER_MS), driver.kept_commands()).await.is_ok() {
        sleep_until(deadline + Duration::from_millis(KILL_CONFIRM_MS)).await;
    }
}

/// The result of a command whose backend did not answer by its deadline.
pub(super) fn never_started(timeout_ms: Option<u64>, lasted: Duration) -> ExecResult {
    let duration_ms = u64::try_from(lasted.as_millis()).unwrap_or(u64::MAX);
    ExecResult { duration_ms, may_still_be_running: true, ..unstarted_result(Outcome::TimedOut, timeout_ms) }
}

/// The hold of a command that has ended before anybody knew its id.
pub(super) fn ended(result: ExecResult) -> KeptAttachment {
    let info = KeptInfo {
        id: String::new(),
        command: String::new(),
        is_terminal: false,
        started_ms: 0,
        age_ms: result.duration_ms,
        is_attached: true,
        timeout_ms: result.timeout_ms,
        first: 1,
        next: 1,
        result: Some(result.clone()),
    };
    KeptAttachment { info, events: stream::iter([Ok(KeptEvent::End(Box::new(result)))]).boxed(), input: None }
}
