//! Runs: an agent does its work once, and the work is recorded. If the process is killed, another process resumes the run.

mod past;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use eyot::{Error, ErrorKind, Result};
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use serde_json::{Map, Value};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

use crate::abort::AbortSwitch;
use crate::budget::BudgetUsage;
use crate::event::{AgentEvent, AgentEventKind, EventError, LogLevel};
use crate::failure::{AgentError, AgentResult};
use crate::harness::{DEFAULT_NAME, Harness, HarnessOptions};
use crate::journal::{EventScope, JournalRun, MAX_NOTES_AT_ONCE, RunJournal};
use crate::message::timestamp_ms;
use crate::redaction::{redact, redact_value};
use crate::step::RunSteps;
use crate::store::{AgentStore, RunLease, RunRecord, RunStatus, StoreChange};
use crate::unfinished::UnfinishedWork;
use past::RunHistory;

type Handler = Arc<dyn Fn(AgentContext) -> BoxFuture<'static, AgentResult<Value>> + Send + Sync>;

/// The agents of a program, and their runs. Clones share them.
#[derive(Clone)]
pub struct Agents {
    store: Arc<dyn AgentStore>,
    handlers: Arc<Mutex<BTreeMap<String, Handler>>>,
    notes_at_once: usize,
}

/// The context of a run, for the agent's handler.
#[derive(Clone)]
pub struct AgentContext {
    inner: Arc<RunInner>,
}

struct RunInner {
    record: RunRecord,
    store: Arc<dyn AgentStore>,
    scope: EventScope,
    harnesses: Mutex<BTreeSet<String>>,
    /// The number of log lines that earlier processes wrote and that are not written again.
    written_logs: AtomicU64,
    /// The part of its budget that each harness had used before this process.
    used_before: BTreeMap<String, BudgetUsage>,
}

/// The handle of an active run. Dropping it does not end the run.
#[derive(Debug)]
pub struct RunHandle {
    id: String,
    task: JoinHandle<AgentResult<Value>>,
    abort: AbortSwitch,
    events: mpsc::UnboundedReceiver<Arc<AgentEvent>>,
}

impl Agents {
    /// Creates a registry of agents whose runs are kept in a store.
    pub fn new(store: Arc<dyn AgentStore>) -> Self {
        Self { store, handlers: Arc::default(), notes_at_once: MAX_NOTES_AT_ONCE }
    }

    /// Writes at most so many notes of a run at once, so that a test can end a process between any two of them.
    #[cfg(feature = "testing")]
    #[must_use]
    pub fn with_notes_at_once(self, notes_at_once: usize) -> Self {
        Self { notes_at_once, ..self }
    }

    /// Registers an agent. The handler is called once for each run. If the run's process is killed, the handler is called
    /// again, and its calls to sessions return the recorded answers. The handler must make the same calls in the same order,
    /// so it may depend only on its payload and on those answers. `already_exists`: there is an agent with this name.
    pub fn register<Run, Fut>(&self, name: &str, handler: Run) -> Result<()>
    where
        Run: Fn(AgentContext) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = AgentResult<Value>> + Send + 'static,
    {
        let mut handlers = self.handlers();
        if handlers.contains_key(name) {
            return Err(Error::new(ErrorKind::AlreadyExists, format!("there is an agent `{name}` already")));
        }
        handlers.insert(name.to_owned(), Arc::new(move |context| handler(context).boxed()));
        Ok(())
    }

    /// Returns the names of the agents.
    pub fn names(&self) -> Vec<String> {
        self.handlers().keys().cloned().collect()
    }

    /// Returns the store.
    pub fn store(&self) -> &Arc<dyn AgentStore> {
        &self.store
    }

    /// Begins a run of an agent. Runs of one instance share its sandbox and its conversations. `not_found`: there is no such
    /// agent; the hint lists the names.
    pub async fn run(&self, name: &str, instance_id: &str, payload: Value) -> Result<RunHandle> {
        let handler = self.handler(name)?;
        let record = RunRecord {
            run_id: format!("run_{}", ulid::Ulid::generate()),
            instance_id: instance_id.to_owned(),
            agent_name: name.to_owned(),
            status: RunStatus::Active,
            started_ms: timestamp_ms(),
            ended_ms: None,
            payload,
            result: Value::Null,
            error: None,
        };
        let lease = self.store.begin_run(record.clone()).await?;
        let run = self.journal_run(lease, RunSteps::default(), UnfinishedWork::default());
        let journal = RunJournal::start(Some(run), 0, Arc::clone(&self.store));
        let events = journal.listen();
        let scope = EventScope::of_run(journal);
        scope.emit(run_start(&record));
        scope.journal().written().await?;
        Ok(self.start(handler, record, scope, events, RunHistory::default()))
    }

    /// Goes on with the runs whose process is gone, the oldest first. Those of agents that are not registered stay as they
    /// are, and so do those that can't be read: the log tells of them.
    pub async fn resume(&self) -> Result<Vec<RunHandle>> {
        let mut resumed = Vec::new();
        for id in self.store.abandoned_runs().await? {
            match self.resume_run(&id).await {
                Ok(run) => resumed.extend(run),
                Err(error) => tracing::error!(run = %id, %error, "go on with a run of an agent"),
            }
        }
        Ok(resumed)
    }

    /// Resumes a run whose process is gone. `None`: the run has ended, its process lives, or its agent is not registered.
    pub async fn resume_run(&self, id: &str) -> Result<Option<RunHandle>> {
        let Some(record) = self.store.run(id).await? else {
            return Err(Error::new(ErrorKind::NotFound, format!("there is no run `{id}`")));
        };
        let Ok(handler) = self.handler(&record.agent_name) else { return Ok(None) };
        let Some(lease) = self.store.take_run(id).await? else { return Ok(None) };
        let mut past = RunHistory::read(self.store.as_ref(), id).await?;
        let steps = RunSteps::known(self.store.steps(id).await?);
        let run = self.journal_run(lease, steps, std::mem::take(&mut past.unfinished));
        let journal = RunJournal::start(Some(run), past.next_index, Arc::clone(&self.store));
        let events = journal.listen();
        let scope = EventScope::of_run(journal);
        if past.next_index == 0 {
            scope.emit(run_start(&record));
        }
        Ok(Some(self.start(handler, record, scope, events, past)))
    }

    fn journal_run(&self, lease: RunLease, steps: RunSteps, unfinished: UnfinishedWork) -> JournalRun {
        let (unfinished, abort) = (Mutex::new(unfinished), AbortSwitch::default());
        JournalRun { lease, steps, unfinished, abort, notes_at_once: self.notes_at_once }
    }

    fn start(
        &self,
        handler: Handler,
        record: RunRecord,
        scope: EventScope,
        events: mpsc::UnboundedReceiver<Arc<AgentEvent>>,
        past: RunHistory,
    ) -> RunHandle {
        let (id, abort) = (record.run_id.clone(), scope.journal().abort());
        let inner = RunInner {
            record,
            store: Arc::clone(&self.store),
            scope,
            harnesses: Mutex::default(),
            written_logs: AtomicU64::new(past.logs),
            used_before: past.used,
        };
        let task = tokio::spawn(carry_out(handler, AgentContext { inner: Arc::new(inner) }));
        RunHandle { id, task, abort, events }
    }

    fn handler(&self, name: &str) -> Result<Handler> {
        let handlers = self.handlers();
        handlers.get(name).cloned().ok_or_else(|| {
            let names: Vec<String> = handlers.keys().map(|name| format!("`{name}`")).collect();
            let names = if names.is_empty() { "none".to_owned() } else { names.join(", ") };
            Error::new(ErrorKind::NotFound, format!("there is no agent `{name}`"))
                .with_hint(format!("there are: {names}"))
        })
    }

    fn handlers(&self) -> MutexGuard<'_, BTreeMap<String, Handler>> {
        self.handlers.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Calls the handler, and ends the run with its outcome.
async fn carry_out(handler: Handler, context: AgentContext) -> AgentResult<Value> {
    let started = Instant::now();
    let called = tokio::spawn(handler(context.clone())).await;
    let done = called.unwrap_or_else(|error| {
        let message = format!("the handler of the agent `{}` failed: {error}", context.agent_name());
        Err(Error::new(ErrorKind::Internal, message).into())
    });
    let scope = &context.inner.scope;
    let done = match (done, scope.journal().abort().check()) {
        (Err(AgentError::Other(error)), Err(aborted)) if error.kind() == ErrorKind::Cancelled => Err(aborted),
        (done, _) => done,
    };
    end_calls(scope).await;
    let done = match scope.journal().steps().and_then(|steps| steps.divergence(done.is_ok())) {
        Some(divergence) => Err(AgentError::Nondeterministic(divergence)),
        None => done,
    };
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
        &self.inner.record.run_id
    }

    /// Returns the id of the agent's instance.
    pub fn instance_id(&self) -> &str {
        &self.inner.record.instance_id
    }

    /// Returns the agent's name.
    pub fn agent_name(&self) -> &str {
        &self.inner.record.agent_name
    }

    /// Returns the input of the run.
    pub fn payload(&self) -> &Value {
        &self.inner.record.payload
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
        let options = HarnessOptions { instance_id: Some(self.instance_id().to_owned()), ..options };
        let journal = self.inner.scope.journal().clone();
        let abort = journal.abort();
        let made = tokio::select! {
            biased;
            () = abort.aborted() => Err(Error::new(ErrorKind::Cancelled, abort.reason())),
            made = Harness::new(options, Arc::clone(&self.inner.store), journal) => made,
        };
        let harness = made?;
        harness.restore_budget(self.inner.used_before.get(&name).copied().unwrap_or_default());
        place.keep();
        Ok(harness)
    }

    /// Writes a line into the log of the run.
    pub fn log(&self, level: LogLevel, message: &str, attributes: Map<String, Value>) {
        let logs = &self.inner.written_logs;
        let was_written =
            logs.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |logs| logs.checked_sub(1)).is_ok();
        if !was_written {
            self.inner.scope.emit(AgentEventKind::Log { level, message: message.to_owned(), attributes });
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

fn run_start(record: &RunRecord) -> AgentEventKind {
    AgentEventKind::RunStart {
        instance_id: record.instance_id.clone(),
        agent_name: record.agent_name.clone(),
        started_at: rfc3339(record.started_ms),
        payload: record.payload.clone(),
    }
}

fn rfc3339(ms: u64) -> String {
    let time = std::time::UNIX_EPOCH + std::time::Duration::from_millis(ms);
    humantime::format_rfc3339_millis(time).to_string()
}
