//! The agents of a program, and their runs.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use eyot::{Error, ErrorKind, Result};
use futures_util::FutureExt;
use futures_util::stream::BoxStream;
use serde_json::Value;
use tokio::sync::watch;

use crate::abort::AbortSwitch;
use crate::active_runs::{ActivePlace, ActiveRuns, DEFAULT_MAX_ACTIVE_RUNS_PER_POOL};
use crate::agent_source::{AgentInfo, AgentSource, FoundAgent};
use crate::client_tool::{ClientTool, ClientToolAnswer, ClientToolCall, WaitingCalls};
use crate::event::{AgentEvent, AgentEventKind, rfc3339};
use crate::failure::AgentResult;
use crate::journal::{EventScope, JournalRun, MAX_NOTES_AT_ONCE, RunJournal};
use crate::message::timestamp_ms;
use crate::past_run::RunHistory;
use crate::run::{AgentContext, AgentHandler, RunHandle, RunParts};
use crate::run_events::{follow_run, no_run};
use crate::step::RunSteps;
use crate::store::{AgentRunOptions, AgentStore, RunLease, RunRecord, RunStatus};
use crate::unfinished::UnfinishedWork;

/// The agents of a program, and their runs. Clones share them.
#[derive(Clone)]
pub struct Agents {
    store: Arc<dyn AgentStore>,
    registered: Arc<Mutex<BTreeMap<String, FoundAgent>>>,
    source: Option<Arc<dyn AgentSource>>,
    active: ActiveRuns,
    client_calls: WaitingCalls,
    max_active_runs_per_pool: usize,
    notes_at_once: usize,
}

/// A request for a run of an agent.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct RunRequest {
    /// The agent.
    pub agent: String,
    /// The agent's instance. Runs of one instance share its sandbox and its conversations.
    pub instance_id: String,
    /// The pool whose callers may see the run. An instance of one pool has nothing to do with that of another.
    pub pool: Option<String>,
    /// The name of the sandbox that the agent works in, for lists; `None`: as the agent's source says.
    pub sandbox: Option<String>,
    /// The input.
    pub payload: Value,
    /// The wishes of the caller beside the input.
    pub options: AgentRunOptions,
}

impl Agents {
    /// Creates a registry of agents whose runs are kept in a store.
    pub fn new(store: Arc<dyn AgentStore>) -> Self {
        Self {
            store,
            registered: Arc::default(),
            source: None,
            active: ActiveRuns::default(),
            client_calls: WaitingCalls::default(),
            max_active_runs_per_pool: DEFAULT_MAX_ACTIVE_RUNS_PER_POOL,
            notes_at_once: MAX_NOTES_AT_ONCE,
        }
    }

    /// Writes at most so many notes of a run at once, so that a test can end a process between any two of them.
    #[cfg(feature = "testing")]
    #[must_use]
    pub fn with_notes_at_once(self, notes_at_once: usize) -> Self {
        Self { notes_at_once, ..self }
    }

    /// Adds agents that are looked up at each run. A registered agent wins over one of the source with the same name.
    #[must_use]
    pub fn with_source(self, source: Arc<dyn AgentSource>) -> Self {
        Self { source: Some(source), ..self }
    }

    /// Sets how many runs of one pool may be active in this process; by default
    /// [`DEFAULT_MAX_ACTIVE_RUNS_PER_POOL`]. Runs of no pool are not counted.
    #[must_use]
    pub fn with_max_active_runs_per_pool(self, max_active_runs_per_pool: usize) -> Self {
        Self { max_active_runs_per_pool, ..self }
    }

    /// Registers an agent. The handler is called once for each run. If the run's process is killed, the handler is called
    /// again, and its calls to sessions return the recorded answers. The handler must make the same calls in the same order,
    /// so it may depend only on its payload and on those answers. Callers over HTTP can't start it, unless the router lets them
    /// start every agent. `already_exists`: there is an agent with this name.
    pub fn register<Run, Fut>(&self, name: &str, handler: Run) -> Result<()>
    where
        Run: Fn(AgentContext) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = AgentResult<Value>> + Send + 'static,
    {
        self.add(AgentInfo { name: name.to_owned(), ..AgentInfo::default() }, handler)
    }

    /// Registers an agent like [`Agents::register`], which callers over HTTP can start.
    pub fn register_webhook<Run, Fut>(&self, name: &str, handler: Run) -> Result<()>
    where
        Run: Fn(AgentContext) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = AgentResult<Value>> + Send + 'static,
    {
        self.add(AgentInfo { name: name.to_owned(), webhook: true, ..AgentInfo::default() }, handler)
    }

    fn add<Run, Fut>(&self, info: AgentInfo, handler: Run) -> Result<()>
    where
        Run: Fn(AgentContext) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = AgentResult<Value>> + Send + 'static,
    {
        let mut registered = self.registered();
        let name = info.name.clone();
        if registered.contains_key(&name) {
            return Err(Error::new(ErrorKind::AlreadyExists, format!("there is an agent `{name}` already")));
        }
        let handler: AgentHandler = Arc::new(move |context| handler(context).boxed());
        registered.insert(name, FoundAgent { info, handler, sandbox_of: None });
        Ok(())
    }

    /// Returns the agents, sorted by name.
    pub async fn list(&self) -> Result<Vec<AgentInfo>> {
        let mut agents: BTreeMap<String, AgentInfo> = BTreeMap::new();
        if let Some(source) = self.source.clone() {
            let found = blocking(move || source.agents()).await?;
            agents.extend(found.into_iter().map(|info| (info.name.clone(), info)));
        }
        agents.extend(self.registered().iter().map(|(name, agent)| (name.clone(), agent.info.clone())));
        Ok(agents.into_values().collect())
    }

    /// Returns the agent of this name, if there is one.
    pub async fn find(&self, name: &str) -> Result<Option<FoundAgent>> {
        if let Some(agent) = self.registered().get(name) {
            return Ok(Some(agent.clone()));
        }
        let Some(source) = self.source.clone() else { return Ok(None) };
        let name = name.to_owned();
        blocking(move || source.find(&name)).await
    }

    /// Returns the agent of this name, if callers may start it: every agent, or with `webhooks_only` those that are offered to
    /// callers over HTTP. `not_found`: there is no such agent; the hint lists the names. `permission`: it is not offered.
    pub async fn startable(&self, name: &str, webhooks_only: bool) -> Result<FoundAgent> {
        let agent = self.existing(name).await?;
        if webhooks_only && !agent.info.webhook {
            let message = format!("the agent `{name}` can't be started over HTTP");
            let hint = "whoever runs the server puts `webhook: true` into the agent's file";
            return Err(Error::new(ErrorKind::Permission, message).with_hint(hint));
        }
        Ok(agent)
    }

    /// Returns the store.
    pub fn store(&self) -> &Arc<dyn AgentStore> {
        &self.store
    }

    /// Begins a run of an agent, of no pool. `not_found`: there is no such agent; the hint lists the names.
    pub async fn run(&self, name: &str, instance_id: &str, payload: Value) -> Result<RunHandle> {
        let (agent, instance_id) = (name.to_owned(), instance_id.to_owned());
        self.begin(RunRequest { agent, instance_id, payload, ..RunRequest::default() }).await
    }

    /// Begins a run of an agent. `not_found`: there is no such agent; the hint lists the names. `quota`: too many runs of the
    /// pool are active. `invalid`: a tool of the caller is none.
    pub async fn begin(&self, request: RunRequest) -> Result<RunHandle> {
        let agent = self.existing(&request.agent).await?;
        self.begin_found(agent, request).await
    }

    /// Begins a run of an agent that was found already, as [`Agents::begin`]. A run that is in the store goes on, even if the
    /// caller does not wait for this.
    pub async fn begin_found(&self, agent: FoundAgent, request: RunRequest) -> Result<RunHandle> {
        ClientTool::check(&request.options.tools, request.options.tool_timeout_ms)?;
        let agents = self.clone();
        // On a task of its own: dropped in between, it would leave a run that nobody carries out.
        let begun = tokio::spawn(async move { agents.begin_now(agent, request).await }).await;
        begun.map_err(|error| {
            Error::new(ErrorKind::Internal, "the begin of a run ended early").with_source(error)
        })?
    }

    async fn begin_now(&self, agent: FoundAgent, request: RunRequest) -> Result<RunHandle> {
        let run_id = new_run_id()?;
        let sandbox_of = agent.sandbox_of.map(|name| name(&request.agent, &request.instance_id));
        let RunRequest { agent: agent_name, instance_id, pool, sandbox, payload, options } = request;
        let abort = AbortSwitch::default();
        let max = self.max_active_runs_per_pool;
        let place = self.active.take(&run_id, pool.as_deref(), abort.clone(), max)?;
        let record = RunRecord {
            run_id,
            pool,
            instance_id,
            agent_name,
            sandbox: sandbox.or(sandbox_of),
            status: RunStatus::Active,
            started_ms: timestamp_ms(),
            ended_ms: None,
            payload,
            options,
            result: Value::Null,
            error: None,
        };
        let lease = self.store.begin_run(record.clone()).await?;
        let run = self.journal_run(lease, RunSteps::default(), UnfinishedWork::default(), abort);
        let journal = RunJournal::start(Some(run), 0, Arc::clone(&self.store));
        let events = journal.listen();
        let scope = EventScope::of_run(journal);
        scope.emit(run_start(&record));
        scope.journal().written().await?;
        let parts = self.parts(record, scope, place);
        Ok(RunHandle::start(agent.handler, parts, events, RunHistory::default()))
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
            return Err(no_run(id));
        };
        let Some(agent) = self.find(&record.agent_name).await? else { return Ok(None) };
        let Some(lease) = self.store.take_run(id).await? else { return Ok(None) };
        let mut past = RunHistory::read(self.store.as_ref(), id).await?;
        let steps = RunSteps::known(self.store.steps(id).await?);
        let abort = AbortSwitch::default();
        let place = self.active.take(id, record.pool.as_deref(), abort.clone(), usize::MAX)?;
        let run = self.journal_run(lease, steps, std::mem::take(&mut past.unfinished), abort);
        let journal = RunJournal::start(Some(run), past.next_index, Arc::clone(&self.store));
        let events = journal.listen();
        let scope = EventScope::of_run(journal);
        if past.next_index == 0 {
            scope.emit(run_start(&record));
        }
        let parts = self.parts(record, scope, place);
        Ok(Some(RunHandle::start(agent.handler, parts, events, past)))
    }

    /// Aborts the calls of a run's sessions; the run ends when its handler returns. A run that has ended is fine.
    /// `not_found`: there is no such run. `conflict`: another process runs it, or nobody does.
    pub async fn abort(&self, id: &str, reason: &str) -> Result<()> {
        if let Some(abort) = self.active.abort_of(id) {
            abort.abort(reason);
            return Ok(());
        }
        match self.store.run(id).await? {
            None => Err(no_run(id)),
            Some(record) if record.status != RunStatus::Active => Ok(()),
            Some(_) => {
                let message = format!("abort run `{id}`: it is not active in this process");
                let hint = "resume it first if its process is gone, or end the process that runs it";
                Err(Error::new(ErrorKind::Conflict, message).with_hint(hint))
            }
        }
    }

    /// Streams the events of a run from the number `from` on: those that are stored, and then the new ones, until its last
    /// one. An event is told once it is stored. `not_found`: there is no such run.
    pub async fn follow(&self, id: &str, from: u64) -> Result<BoxStream<'static, Result<AgentEvent>>> {
        follow_run(Arc::clone(&self.store), id, from).await
    }

    /// Returns the calls of a run that wait for its caller.
    pub fn client_tool_calls(&self, id: &str) -> Vec<ClientToolCall> {
        self.client_calls.of_run(id)
    }

    /// Returns a receiver that changes whenever a call begins or ends to wait for a caller.
    pub fn client_tool_changes(&self) -> watch::Receiver<u64> {
        self.client_calls.changes()
    }

    /// Answers a call of a run that waits for its caller. `not_found`: no such call waits.
    pub fn answer_client_tool_call(&self, id: &str, call: &str, answer: ClientToolAnswer) -> Result<()> {
        self.client_calls.answer(id, call, answer)
    }

    fn journal_run(
        &self,
        lease: RunLease,
        steps: RunSteps,
        unfinished: UnfinishedWork,
        abort: AbortSwitch,
    ) -> JournalRun {
        JournalRun {
            lease,
            steps,
            unfinished: Mutex::new(unfinished),
            abort,
            notes_at_once: self.notes_at_once,
        }
    }

    fn parts(&self, record: RunRecord, scope: EventScope, place: ActivePlace) -> RunParts {
        let (store, client_calls) = (Arc::clone(&self.store), self.client_calls.clone());
        RunParts { record, store, scope, client_calls, _place: place }
    }

    async fn existing(&self, name: &str) -> Result<FoundAgent> {
        if let Some(agent) = self.find(name).await? {
            return Ok(agent);
        }
        let names: Vec<String> = self.list().await?.iter().map(|info| format!("`{}`", info.name)).collect();
        let hint = match names.as_slice() {
            [] => "there are none: a server's agents are files NAME.md in the folder that `eyot serve --agents` names".to_owned(),
            names => format!("there are: {}", names.join(", ")),
        };
        Err(Error::new(ErrorKind::NotFound, format!("there is no agent `{name}`")).with_hint(hint))
    }

    fn registered(&self) -> MutexGuard<'_, BTreeMap<String, FoundAgent>> {
        self.registered.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Runs a function on a thread that may block.
async fn blocking<T: Send + 'static>(work: impl FnOnce() -> Result<T> + Send + 'static) -> Result<T> {
    let done = tokio::task::spawn_blocking(work).await;
    done.map_err(|error| Error::new(ErrorKind::Internal, "a blocking task ended early").with_source(error))?
}

/// Returns the id of a new run. Of two runs that begin in the same millisecond, the second has the greater id, as lists need.
fn new_run_id() -> Result<String> {
    static IDS: Mutex<ulid::Generator> = Mutex::new(ulid::Generator::new());
    let mut ids = IDS.lock().unwrap_or_else(PoisonError::into_inner);
    let id = ids.generate().map_err(|_| {
        Error::new(ErrorKind::Unavailable, "begin a run: there are no more ids in this millisecond")
    })?;
    Ok(format!("run_{id}"))
}

fn run_start(record: &RunRecord) -> AgentEventKind {
    AgentEventKind::RunStart {
        instance_id: record.instance_id.clone(),
        agent_name: record.agent_name.clone(),
        started_at: rfc3339(record.started_ms),
        payload: record.payload.clone(),
    }
}
