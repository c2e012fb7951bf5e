//! Operations of a session: one at a time, each with a start event and an end event.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Instant;

use eyot_tools::panic_message;
use futures_util::FutureExt;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::SessionInner;
use crate::abort::AbortSwitch;
use crate::conversation::ConversationEntry;
use crate::event::{AgentEventKind, LogLevel, OperationKind};
use crate::failure::{AgentError, AgentResult};
use crate::harness::noted_step::NotedStep;
use crate::journal::EventScope;
use crate::step::{StepFailure, StepOutcome};
use crate::store::StoreChange;
use crate::usage::TokenUsage;

/// A running operation.
pub(super) struct Operation {
    pub(super) session: Arc<SessionInner>,
    pub(super) scope: EventScope,
    pub(super) abort: AbortSwitch,
    /// The number of entries that the conversation had before the operation.
    pub(super) from: usize,
    /// Set if an earlier process began the operation.
    pub(super) is_resumed: bool,
}

/// The result of an operation.
pub(super) trait OperationResult: Serialize + DeserializeOwned {
    /// Returns the result for the event.
    fn to_event(&self) -> Value;

    /// Returns the result for the record of the step.
    fn to_outcome(&self) -> Value {
        serde_json::to_value(self).unwrap_or_default()
    }

    /// Returns the tokens that the operation took.
    fn usage(&self) -> Option<TokenUsage> {
        None
    }
}

impl OperationResult for () {
    fn to_event(&self) -> Value {
        Value::Null
    }
}

/// A guard that reserves the session for one operation. Dropping it frees the session.
struct OperationGuard<'a>(&'a SessionInner);

impl Drop for OperationGuard<'_> {
    fn drop(&mut self) {
        *self.0.active() = None;
        self.0.ended.notify_waiters();
    }
}

impl SessionInner {
    /// Runs an operation. `asked` holds the arguments; a resumed run compares them with the recorded ones. `conflict`:
    /// another operation is running, or the session was deleted.
    pub(super) async fn operate<T: OperationResult>(
        self: Arc<Self>,
        kind: OperationKind,
        asked: Value,
        abort: AbortSwitch,
        run: impl AsyncFnOnce(Operation) -> AgentResult<T>,
    ) -> AgentResult<T> {
        let _place = self.begin(kind, &abort).await?;
        abort.check()?;
        self.scope.journal().abort().check()?;
        let mut step = self.next_step(kind, asked)?;
        let scope = self.scope.of_operation(&step.step.operation_id);
        if let Some(outcome) = step.step.outcome.clone() {
            return outcome.into_result();
        }
        if step.is_known() {
            if let Some(mut unfinished) = scope.journal().unfinished() {
                unfinished.take_operation(&step.step.operation_id);
            }
        } else {
            scope.emit_with(AgentEventKind::OperationStart { operation_kind: kind }, step.change());
        }
        let started = Instant::now();
        let operation = Operation {
            session: Arc::clone(&self),
            scope: scope.clone(),
            abort: abort.clone(),
            from: step.step.from,
            is_resumed: step.is_known(),
        };
        // On the heap: the work of an operation is a large future, and this one holds it several times.
        let run = Box::pin(run(operation));
        let run = AssertUnwindSafe(self.within_budget(&abort, run)).catch_unwind();
        let done = run.await.unwrap_or_else(|panic| {
            let message = format!("the {} has a defect: {}", kind.as_str(), panic_message(panic.as_ref()));
            Err(eyot::Error::new(eyot::ErrorKind::Internal, message).into())
        });
        let outcome = match &done {
            Ok(result) => StepOutcome::Done(result.to_outcome()),
            Err(error) => StepOutcome::Failed(StepFailure::of(error)),
        };
        scope.emit_all_with(
            vec![ended(kind, elapsed_ms(started), &done), AgentEventKind::Idle],
            step.ended(outcome),
        );
        // The process may be killed right after the caller gets the result, so the result is recorded first.
        scope.journal().written().await?;
        done
    }

    /// Returns the step of the operation. Outside of a run it is a new step, which is not recorded.
    fn next_step(&self, kind: OperationKind, asked: Value) -> AgentResult<NotedStep> {
        NotedStep::next(&self.scope, kind.into(), asked, || {
            (format!("op_{}", ulid::Ulid::generate()), self.lock().entries().len())
        })
    }

    /// Takes the session's place for an operation. The end of one that was aborted is waited for.
    async fn begin(&self, kind: OperationKind, abort: &AbortSwitch) -> AgentResult<OperationGuard<'_>> {
        loop {
            let ended = self.ended.notified();
            if let Some(place) = self.try_begin(kind, abort)? {
                return Ok(place);
            }
            tokio::select! {
                () = ended => {}
                () = abort.aborted() => return Err(abort.error()),
            }
        }
    }

    /// `None`: an operation that was aborted has not ended yet.
    fn try_begin(&self, kind: OperationKind, abort: &AbortSwitch) -> AgentResult<Option<OperationGuard<'_>>> {
        if self.is_over() {
            return Err(AgentError::conflict(format!("session `{}` has been deleted", self.name)));
        }
        let mut active = self.active();
        match &*active {
            Some((_, other)) if other.check().is_err() => return Ok(None),
            Some((other, _)) => {
                let message = format!("session `{}` is already running {}", self.name, other.as_str());
                let error = eyot::Error::new(eyot::ErrorKind::Conflict, message);
                return Err(error.with_hint("use another session to work in parallel").into());
            }
            None => *active = Some((kind, abort.clone())),
        }
        Ok(Some(OperationGuard(self)))
    }

    /// Runs the operation, and aborts it when the budget's time is over or the run is aborted.
    async fn within_budget<T>(
        &self,
        abort: &AbortSwitch,
        run: impl Future<Output = AgentResult<T>>,
    ) -> AgentResult<T> {
        let (budget, run_abort) = (&self.harness.budget, self.scope.journal().abort());
        let out_of_time = async {
            match budget.deadline() {
                Some(deadline) => tokio::time::sleep_until(deadline.into()).await,
                None => std::future::pending().await,
            }
        };
        let mut run = std::pin::pin!(run);
        tokio::select! {
            biased;
            done = &mut run => done,
            () = run_abort.aborted() => {
                abort.abort(run_abort.reason());
                run.await
            }
            () = out_of_time => {
                let limit = budget.duration_limit();
                abort.abort(&limit.to_string());
                run.await.map_err(|_| AgentError::Budget(limit))
            }
        }
    }
}

impl Operation {
    /// Returns whether a process before this one had begun to write it into the conversation.
    pub(super) fn has_begun(&self) -> bool {
        self.is_resumed && !self.session.lock().entries_from(self.from).is_empty()
    }

    /// Adds an entry to the conversation.
    pub(super) fn append(&self, entry: ConversationEntry) {
        self.session.append(entry);
    }

    /// Adds an entry to the conversation, and its event in the same transaction.
    pub(super) fn append_with_event(&self, entry: ConversationEntry, kind: AgentEventKind) {
        self.session.lock().push(entry.clone());
        self.scope.emit_with_entry(kind, &self.session.key, entry);
    }

    /// Adds entries to the conversation, and their event in the same transaction.
    pub(super) fn append_all_with_event(
        &self,
        entries: impl Iterator<Item = ConversationEntry>,
        kind: AgentEventKind,
    ) {
        let mut conversation = self.session.lock();
        let changes = entries.map(|entry| {
            conversation.push(entry.clone());
            StoreChange::Append { key: self.session.key.clone(), entry: Box::new(entry) }
        });
        self.scope.emit_with(kind, changes.collect());
    }

    /// Writes a line into the log of the run.
    pub(super) fn log(&self, level: LogLevel, message: String) {
        self.scope.emit(AgentEventKind::Log { level, message, attributes: serde_json::Map::new() });
    }
}

fn ended<T: OperationResult>(
    operation_kind: OperationKind,
    duration_ms: u64,
    done: &AgentResult<T>,
) -> AgentEventKind {
    match done {
        Ok(result) => AgentEventKind::Operation {
            operation_kind,
            duration_ms,
            is_error: false,
            error: None,
            result: result.to_event(),
            usage: result.usage(),
        },
        Err(error) => AgentEventKind::Operation {
            operation_kind,
            duration_ms,
            is_error: true,
            error: Some(error.to_event()),
            result: Value::Null,
            usage: None,
        },
    }
}

/// Returns the time since `since`, in milliseconds.
pub(super) fn elapsed_ms(since: Instant) -> u64 {
    u64::try_from(since.elapsed().as_millis()).unwrap_or(u64::MAX)
}
