//! One run of an agent: its context, its handle, and its end.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use eyot::{Error, ErrorKind, Result};
use eyot_tools::ToolDef;
use futures_util::future::BoxFuture;
use serde_json::{Map, Value};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

use crate::abort::AbortSwitch;
use crate::active_runs::ActivePlace;
use crate::budget::BudgetUsage;
use crate::client_tool::{DEFAULT_CLIENT_TOOL_TIMEOUT_MS, WaitingCalls};
use crate::event::{AgentEvent, AgentEventKind, EventError, LogLevel};
use crate::failure::{AgentError, AgentResult};
use crate::harness::{DEFAULT_NAME, Harness, HarnessOptions};
use crate::journal::EventScope;
use crate::past_run::RunHistory;
use crate::redaction::{redact, redact_value};
use crate::store::{AgentStore, RunRecord, StoreChange};

/// The handler of an agent, which does the work of a run.
pub type AgentHandler = Arc<dyn Fn(AgentContext) -> BoxFuture<'static, AgentResult<Value>> + Send + Sync>;

/// The context of a run, for the agent's handler.
#[derive(Clone)]
pub struct AgentContext {
    inner: Arc<RunInner>,
}

struct RunInner {
    parts: RunParts,
    harnesses: Mutex<BTreeSet<String>>,
    /// The number of log lines that earlier processes wrote and that are not written again.
    written_logs: AtomicU64,
    /// The part of its budget that each harness had used before this process.
    used_before: BTreeMap<String, BudgetUsage>,
    /// An earlier process told an `idle`.
    had_told_idle: bool,
}

/// The parts of a run.
pub(crate) struct RunParts {
    pub(crate) record: RunRecord,
    pub(crate) store: Arc<dyn AgentStore>,
    pub(crate) scope: EventScope,
    /// The calls of the caller's own tools.
    pub(crate) client_calls: WaitingCalls,
    pub(crate) _place: ActivePlace,
}

/// The handle of an active run. Dropping it does not end the run.
#[derive(Debug)]
pub struct RunHandle {
    id: String,
    task: JoinHandle<AgentResult<Value>>,
    abort: AbortSwitch,
    events: mpsc::UnboundedReceiver<Arc<AgentEvent>>,
}

/// Calls the handler, and ends the run with its outcome.
async fn carry_out(handler: AgentHandler, context: AgentContext) -> AgentResult<Value> {
    let started = Instant::now();
    let called = tokio::spawn(handler(context.clone())).await;
    let done = called.unwrap_or_else(|error| {
        let message = format!("the handler of the agent `{}` failed: {error}", context.agent_name());
        Err(Error::new(ErrorKind::Internal, message).into())
    });
    let RunParts { record, scope, .. } = &context.inner.parts;
    let done = match (done, scope.journal().abort().check()) {
        (Err(AgentError::Other(error)), Err(aborted)) if error.kind() == ErrorKind::Cancelled => Err(aborted),
        (done, _) => done,
    };
    end_calls(scope).await;
    let done = match scope.journal().steps().and_then(|steps| steps.divergence(done.is_ok())) {
        Some(divergence) => Err(AgentError::Nondeterministic(divergence)),
        None => done,
    };
    let has_told_idle = context.inner.had_told_idle || scope.journal().has_told_idle();
    if record.options.tells_idle && !has_told_idle {
        scope.emit(AgentEventKind::Idle);
    }
    let (result, error) = match &done {
        Ok(result) => (redact_value(result.clone()), None),
        Err(error) => {
            let error = error.to_event();
            (Value::Null, Some(EventError { message: redact(error.message), ..error }))
        }
    };
    let end = AgentEventKind::RunEnd {
        result: result.clone(),
        is_error: error.is_some(),
        error: error.clone(),
        duration_ms: u64::try_from(started.elapsed().as_millis()).unwrap_or(u64::MAX),
    };
    scope.emit_with(end, vec![StoreChange::End { result, error }]);
    scope.journal().written().await?;
    done
}

/// Ends the calls that the handler has left, and what a process before this one did.
async fn end_calls(scope: &EventScope) {
    let journal = scope.journal();
    journal.abort().abort("the run has ended");
    journal.calls().close();
    journal.calls().wait().await;
    let left = journal.unfinished().map(|mut unfinished| unfinished.end_all());
    for (origin, end) in left.into_iter().flatten() {
        scope.at(origin).emit(end);
    }
}

impl AgentContext {
    /// Returns the run's id.
    pub fn run_id(&self) -> &str {
        &self.inner.parts.record.run_id
    }

    /// Returns the id of the agent's instance.
    pub fn instance_id(&self) -> &str {
        &self.inner.parts.record.instance_id
    }

    /// Returns the agent's name.
    pub fn agent_name(&self) -> &str {
        &self.inner.parts.record.agent_name
    }

    /// Returns the pool whose callers may see the run; `None`: it is of no pool.
    pub fn pool(&self) -> Option<&str> {
        self.inner.parts.record.pool.as_deref()
    }

    /// Returns the input of the run.
    pub fn payload(&self) -> &Value {
        &self.inner.parts.record.payload
    }

    /// Creates a harness of the run. The instance and the store are those of the run; the options can't change them.
    /// `already_exists`: the run has a harness with this name.
    pub async fn init(&self, options: HarnessOptions) -> Result<Harness> {
        let name = options.name.clone().unwrap_or_else(|| DEFAULT_NAME.to_owned());
        let Some(place) = HarnessName::take(self, &name) else {
            let message = format!("init() has already been called with name \"{name}\" in this run");
            return Err(
                Error::new(ErrorKind::AlreadyExists, message).with_hint("give the harness another name")
            );
        };
        let tools = [options.tools, self.client_tools()?].concat();
        let options = HarnessOptions { instance_id: Some(self.instance_id().to_owned()), tools, ..options };
        let RunParts { record, store, scope, .. } = &self.inner.parts;
        let (store, journal) = (Arc::clone(store), scope.journal().clone());
        let abort = journal.abort();
        let made = tokio::select! {
            biased;
            () = abort.aborted() => Err(Error::new(ErrorKind::Cancelled, abort.reason())),
            made = Harness::of_run(options, record, store, journal) => made,
        };
        let harness = made?;
        harness.restore_budget(self.inner.used_before.get(&name).copied().unwrap_or_default());
        place.keep();
        Ok(harness)
    }

    /// Returns the tools that the run's caller answers itself.
    fn client_tools(&self) -> Result<Vec<ToolDef>> {
        let RunParts { record, client_calls, .. } = &self.inner.parts;
        let timeout_ms = record.options.tool_timeout_ms.unwrap_or(DEFAULT_CLIENT_TOOL_TIMEOUT_MS);
        let tools = record.options.tools.iter();
        tools.map(|tool| tool.to_def(client_calls, &record.run_id, timeout_ms)).collect()
    }

    /// Writes a line into the log of the run.
    pub fn log(&self, level: LogLevel, message: &str, attributes: Map<String, Value>) {
        let logs = &self.inner.written_logs;
        let was_written =
            logs.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |logs| logs.checked_sub(1)).is_ok();
        if !was_written {
            self.inner.parts.scope.emit(AgentEventKind::Log {
                level,
                message: message.to_owned(),
                attributes,
            });
        }
    }

    fn harnesses(&self) -> MutexGuard<'_, BTreeSet<String>> {
        self.inner.harnesses.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The name of a harness that is made. Dropped before it is kept, it is free again.
struct HarnessName<'a> {
    context: &'a AgentContext,
    name: Option<String>,
}

impl<'a> HarnessName<'a> {
    /// `None`: the run has a harness of this name.
    fn take(context: &'a AgentContext, name: &str) -> Option<Self> {
        let is_new = context.harnesses().insert(name.to_owned());
        is_new.then(|| Self { context, name: Some(name.to_owned()) })
    }

    fn keep(mut self) {
        self.name = None;
    }
}

impl Drop for HarnessName<'_> {
    fn drop(&mut self) {
        if let Some(name) = &self.name {
            self.context.harnesses().remove(name);
        }
    }
}

impl RunHandle {
    /// Starts a run: its handler is called on a task of its own.
    pub(crate) fn start(
        handler: AgentHandler,
        parts: RunParts,
        events: mpsc::UnboundedReceiver<Arc<AgentEvent>>,
        past: RunHistory,
    ) -> Self {
        let (id, abort) = (parts.record.run_id.clone(), parts.scope.journal().abort());
        let inner = RunInner {
            parts,
            harnesses: Mutex::default(),
            written_logs: AtomicU64::new(past.logs),
            used_before: past.used,
            had_told_idle: past.has_told_idle,
        };
        let task = tokio::spawn(carry_out(handler, AgentContext { inner: Arc::new(inner) }));
        Self { id, task, abort, events }
    }

    /// Returns the run's id.
    pub fn id(&self) -> &str {
        &self.id
    }

    /// Returns the next event, or `None` after the last one. For a resumed run, only new events are returned.
    pub async fn next_event(&mut self) -> Option<Arc<AgentEvent>> {
        self.events.recv().await
    }

    /// Aborts the current and all later calls of the run's sessions. They fail with [`AgentError::Aborted`], and the run ends
    /// when its handler returns.
    pub fn abort(&self, reason: &str) {
        self.abort.abort(reason);
    }

    /// Waits for the end of the run, and returns its result.
    pub async fn result(self) -> AgentResult<Value> {
        // Nobody reads its events any more.
        let Self { task, events, .. } = self;
        drop(events);
        task.await.unwrap_or_else(|error| {
            Err(Error::new(ErrorKind::Internal, "the task of a run ended early").with_source(error).into())
        })
    }
}
