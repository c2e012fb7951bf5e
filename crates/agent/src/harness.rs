//! Harnesses: an agent with its settings, its sandbox and its sessions.

mod noted_step;
mod session;

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use eyot::{Error, ErrorKind, Result, Sandbox};
use eyot_tools::{ToolDef, Toolset};
use serde_json::json;

use self::noted_step::{NotedStep, as_error, outcome_of};
use crate::budget::{Budget, BudgetMeter, BudgetUsage};
use crate::compaction::CompactionOptions;
use crate::conversation::{Conversation, ConversationEntry};
use crate::journal::{EventScope, RunJournal};
use crate::model::{Model, ThinkingLevel};
use crate::sandbox_access::{AgentSandbox, SandboxAccess};
use session::{SessionConfig, SessionIdentity, SessionInner, no_sandbox, thinking_of};

use crate::skill::PackagedSkill;
use crate::step::{SessionStep, StepKind};
use crate::store::{AgentStore, MemoryStore, RunRecord, StoreChange};
use crate::subagent::Subagent;
use crate::system_prompt::SessionContext;
use crate::task_session::task_session;
pub use session::{
    BUILTIN_TOOL_NAMES, MAX_TASK_DEPTH, PromptOptions, PromptResponse, Session, ShellOptions, ShellResult,
    SkillChoice, SkillOptions, TaskOptions, create_tools,
};

/// The default name of a harness and of a session.
pub const DEFAULT_NAME: &str = "default";

/// Options of a harness.
#[derive(Clone, Default)]
pub struct HarnessOptions {
    /// The name; `None`: [`DEFAULT_NAME`].
    pub name: Option<String>,
    /// The agent's instance. The same instance gets the same sandbox and conversations again; `None`: a new instance.
    pub instance_id: Option<String>,
    /// The sandbox that the agent works in.
    pub sandbox: AgentSandbox,
    /// The working directory in the sandbox; `None`: the sandbox's own.
    pub cwd: Option<String>,
    /// The model; `None`: each call must name one.
    pub model: Option<Arc<dyn Model>>,
    /// The instructions.
    pub instructions: Option<String>,
    /// The toolset for the sandbox; `None`: the provider's, or `coding` if the provider has none.
    pub toolset: Option<Toolset>,
    /// Additional tools.
    pub tools: Vec<ToolDef>,
    /// Skills, in addition to those of the workspace.
    pub skills: Vec<PackagedSkill>,
    /// The agents that may do its tasks.
    pub subagents: Vec<Subagent>,
    /// The reasoning effort of the model.
    pub thinking: ThinkingLevel,
    /// Options for the compaction of conversations.
    pub compaction: CompactionOptions,
    /// Limits on what the agent and its tasks may use.
    pub budget: Budget,
    /// The time limit for a tool call, in milliseconds; `None`: only a command's own deadline applies.
    pub tool_timeout_ms: Option<u64>,
    /// The store for conversations; `None`: the memory of this process.
    pub store: Option<Arc<dyn AgentStore>>,
}

/// An agent with its settings, its sandbox and its sessions. Clones share one harness. The sandbox outlives the harness.
#[derive(Clone)]
pub struct Harness {
    inner: Arc<HarnessInner>,
}

pub(crate) struct HarnessInner {
    name: String,
    instance_id: String,
    owner: Option<ConversationOwner>,
    store: Arc<dyn AgentStore>,
    scope: EventScope,
    source: SandboxAccess,
    config: SessionConfig,
    pub(crate) toolset: Option<Toolset>,
    pub(crate) budget: BudgetMeter,
    pub(crate) tool_timeout_ms: Option<u64>,
    /// The sessions that somebody holds. They hold the harness, so it does not hold them.
    sessions: Mutex<HashMap<String, Weak<SessionInner>>>,
}

/// The owner of an instance's conversations, if the run is of a pool. The same instance of another pool or agent has others.
struct ConversationOwner {
    pool: String,
    agent: String,
}

/// The way to open a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum SessionOpenMode {
    Get,
    Create,
    GetOrCreate,
}

impl SessionOpenMode {
    fn name(self) -> &'static str {
        match self {
            Self::Get => "get",
            Self::Create => "create",
            Self::GetOrCreate => "get or create",
        }
    }
}

/// Creates a harness. This finds or creates the sandbox, and reads the instructions and skills in the working directory.
///
/// ```
/// use eyot_agent::{AgentSandbox, HarnessOptions, PromptOptions, ScriptedModel, ScriptedTurn, init};
/// use eyot_providers::memory::MemoryProvider;
/// use std::sync::Arc;
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let model = ScriptedModel::new([
///     ScriptedTurn::call("1", "bash", serde_json::json!({"command": "echo hello > greeting"})),
///     ScriptedTurn::text("The greeting is written."),
/// ]);
/// let harness = init(HarnessOptions {
///     sandbox: AgentSandbox::of_provider(Arc::new(MemoryProvider::default())),
///     model: Some(Arc::new(model)),
///     ..HarnessOptions::default()
/// })
/// .await?;
/// let session = harness.session().await?;
/// let answer = session.prompt("Write a greeting.", PromptOptions::default()).await?;
/// assert_eq!(answer.text, "The greeting is written.");
/// assert_eq!(session.sandbox().await?.read_text("greeting").await?, "hello\n");
/// # Ok(())
/// # }
/// ```
pub async fn init(options: HarnessOptions) -> Result<Harness> {
    let store = options.store.clone().unwrap_or_else(|| Arc::new(MemoryStore::default()));
    let journal = RunJournal::start(None, 0, Arc::clone(&store));
    Harness::new(options, None, store, journal).await
}

impl Harness {
    /// Creates a harness of a run.
    pub(crate) async fn of_run(
        options: HarnessOptions,
        run: &RunRecord,
        store: Arc<dyn AgentStore>,
        journal: RunJournal,
    ) -> Result<Self> {
        let owner = run
            .pool
            .as_ref()
            .map(|pool| ConversationOwner { pool: pool.clone(), agent: run.agent_name.clone() });
        Self::new(options, owner, store, journal).await
    }

    async fn new(
        options: HarnessOptions,
        owner: Option<ConversationOwner>,
        store: Arc<dyn AgentStore>,
        journal: RunJournal,
    ) -> Result<Self> {
        let name = options.name.unwrap_or_else(|| DEFAULT_NAME.to_owned());
        let instance_id =
            options.instance_id.unwrap_or_else(|| ulid::Ulid::generate().to_string().to_lowercase());
        let source = SandboxAccess::find(options.sandbox, &instance_id, options.cwd.as_deref()).await?;
        let instructions = options.instructions.as_deref();
        let context = SessionContext::discover(&source, instructions, &options.skills).await?;
        let toolset = match options.toolset {
            Some(toolset) => Some(toolset),
            None => source.default_toolset()?,
        };
        let config = SessionConfig {
            context,
            instructions: options.instructions,
            packaged: options.skills,
            subagents: options.subagents,
            model: options.model,
            thinking: options.thinking,
            compaction: options.compaction,
            tools: options.tools,
        };
        let inner = HarnessInner {
            scope: EventScope::of_harness(journal, &name),
            name,
            instance_id,
            owner,
            store,
            source,
            config,
            toolset,
            budget: BudgetMeter::new(options.budget),
            tool_timeout_ms: options.tool_timeout_ms,
            sessions: Mutex::default(),
        };
        Ok(Self { inner: Arc::new(inner) })
    }

    /// Adds what earlier processes of the run have used.
    pub(crate) fn restore_budget(&self, before: BudgetUsage) {
        self.inner.budget.restore(before);
    }

    /// Returns the name.
    pub fn name(&self) -> &str {
        &self.inner.name
    }

    /// Returns the id of the agent's instance.
    pub fn instance_id(&self) -> &str {
        &self.inner.instance_id
    }

    /// Returns the session `default`, and creates it if needed.
    pub async fn session(&self) -> Result<Session> {
        self.session_named(DEFAULT_NAME).await
    }

    /// Returns the session with this name, and creates it if needed.
    pub async fn session_named(&self, name: &str) -> Result<Session> {
        self.inner.clone().open(name, SessionOpenMode::GetOrCreate).await
    }

    /// Returns the session with this name. `not_found`: there is none.
    pub async fn existing_session(&self, name: &str) -> Result<Session> {
        self.inner.clone().open(name, SessionOpenMode::Get).await
    }

    /// Creates the session with this name. `already_exists`: there is one.
    pub async fn new_session(&self, name: &str) -> Result<Session> {
        self.inner.clone().open(name, SessionOpenMode::Create).await
    }

    /// Deletes the session with this name and its conversation. A missing session is not an error.
    pub async fn delete_session(&self, name: &str) -> Result<()> {
        match self.inner.open_session(name) {
            Some(inner) => Session { inner }.delete().await,
            None => self.inner.delete_tree(name, &self.inner.key_of(name)).await,
        }
    }

    /// Returns the sandbox, with the harness's working directory. `invalid`: the harness has no sandbox.
    pub async fn sandbox(&self) -> Result<Sandbox> {
        self.inner.source.sandbox().await?.ok_or_else(no_sandbox)
    }

    /// Returns the events of all sessions from now on. Events are kept until they are read.
    pub fn events(&self) -> tokio::sync::mpsc::UnboundedReceiver<Arc<crate::event::AgentEvent>> {
        self.inner.scope.journal().listen()
    }
}

impl HarnessInner {
    fn sessions(&self) -> MutexGuard<'_, HashMap<String, Weak<SessionInner>>> {
        self.sessions.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn open_session(&self, name: &str) -> Option<Arc<SessionInner>> {
        self.sessions().get(name).and_then(Weak::upgrade)
    }

    /// Returns the key of a session's conversation.
    fn key_of(&self, session: &str) -> String {
        let place = match &self.owner {
            None => json!([self.instance_id, self.name, session]),
            Some(owner) => json!([owner.pool, owner.agent, self.instance_id, self.name, session]),
        };
        format!("agent-session:{place}")
    }

    /// Returns an id that is the same for all turns of a session.
    pub(crate) fn affinity_key(&self, session: &str) -> String {
        format!("{}::{}::{session}", self.instance_id, self.name)
    }

    /// Returns the key of a task's conversation.
    pub(crate) fn task_key(&self, parent: &str, task_id: &str) -> String {
        self.key_of(&task_session(parent, task_id))
    }

    pub(crate) fn forget(&self, session: &str) {
        self.sessions().remove(session);
    }

    /// Opens a session. In a run that goes on it is opened as it was then.
    async fn open(self: Arc<Self>, name: &str, mode: SessionOpenMode) -> Result<Session> {
        if name.is_empty() || name.starts_with("task:") {
            let message = format!("use session `{name}`: a name must not be empty or begin with `task:`");
            return Err(Error::new(ErrorKind::Invalid, message));
        }
        let mut step = self.session_step(name, SessionStep::Open, mode.name())?;
        if let Some(known) = step.known_end() {
            known?;
            return self.find(name, SessionOpenMode::GetOrCreate, None).await;
        }
        let done = step.ended(outcome_of(Ok(())));
        let found = Arc::clone(&self).find(name, mode, Some(done)).await;
        if let Err(error) = &found
            && [ErrorKind::NotFound, ErrorKind::AlreadyExists].contains(&error.kind())
        {
            self.scope.journal().note_all(step.ended(outcome_of(Err(error))));
        }
        found
    }

    /// Finds a session, or makes it. The change notes its step; `None`: a process before this one noted it.
    async fn find(
        self: Arc<Self>,
        name: &str,
        mode: SessionOpenMode,
        step: Option<Vec<StoreChange>>,
    ) -> Result<Session> {
        let key = self.key_of(name);
        // It may have been open until now, with something still to be written.
        self.scope.journal().written().await?;
        let open = self.open_session(name);
        let is_there = match mode {
            SessionOpenMode::GetOrCreate => true,
            _ => open.is_some() || self.store.conversation(&key).await?.is_some(),
        };
        match (mode, is_there) {
            (SessionOpenMode::Get, false) => {
                return Err(self.about(name, ErrorKind::NotFound, "does not exist"));
            }
            (SessionOpenMode::Create, true) => {
                return Err(self.about(name, ErrorKind::AlreadyExists, "already exists"));
            }
            _ => {}
        }
        // The conversation is the run's from here on, so that what is read stays as it is. One that was opened before is the
        // run's already, or was deleted since.
        if let Some(step) = step {
            let changes = [StoreChange::Begin { key: key.clone() }].into_iter().chain(step).collect();
            self.store.commit(self.scope.journal().lease(), changes).await?;
        }
        if let Some(inner) = open {
            return Ok(Session { inner });
        }
        let kept = self.store.conversation(&key).await?;
        let conversation = Conversation::from_entries(kept.unwrap_or_default());
        let (source, scope) = (self.source.clone(), self.scope.of_session(name));
        let place = SessionIdentity { name: name.to_owned(), key, source, scope, depth: 0 };
        let session = SessionInner::new(place, Arc::clone(&self), self.config.clone(), conversation);
        let mut sessions = self.sessions();
        // Another caller may have opened it meanwhile.
        if let Some(inner) = sessions.get(name).and_then(Weak::upgrade) {
            return Ok(Session { inner });
        }
        let inner = Arc::new(session);
        sessions.retain(|_, session| session.strong_count() > 0);
        sessions.insert(name.to_owned(), Arc::downgrade(&inner));
        Ok(Session { inner })
    }

    fn about(&self, session: &str, kind: ErrorKind, why: &str) -> Error {
        Error::new(kind, format!("session `{session}` {why} in harness `{}`", self.name))
    }

    /// Opens the session of a task.
    pub(crate) async fn open_task(
        self: &Arc<Self>,
        parent: &SessionInner,
        task_id: &str,
        subagent: Option<&Subagent>,
        cwd: Option<&str>,
    ) -> Result<Arc<SessionInner>> {
        let source = match cwd {
            Some(cwd) => parent.source.at(cwd).await?,
            None => parent.source.clone(),
        };
        let config = task_config(&parent.config, subagent, &source).await?;
        let name = task_session(&parent.name, task_id);
        let key = self.key_of(&name);
        self.scope.journal().note_all(vec![StoreChange::Begin { key: key.clone() }]);
        self.scope.journal().written().await?;
        let kept = self.store.conversation(&key).await?.unwrap_or_default();
        let scope = parent.scope.of_task(&parent.name, task_id, &name);
        let place = SessionIdentity { name, key, source, scope, depth: parent.depth + 1 };
        let conversation = Conversation::from_entries(kept);
        Ok(Arc::new(SessionInner::new(place, Arc::clone(self), config, conversation)))
    }

    /// Deletes the conversation of a session with those of its tasks. In a run that goes on, what was deleted then stays as
    /// it is.
    pub(crate) async fn delete_tree(&self, session: &str, key: &str) -> Result<()> {
        let mut step = self.session_step(session, SessionStep::Delete, "")?;
        if let Some(known) = step.known_end() {
            return known;
        }
        self.scope.journal().written().await?;
        let (mut keys, mut next) = (vec![key.to_owned()], 0);
        while let Some(key) = keys.get(next) {
            let entries = self.store.conversation(key).await?.unwrap_or_default();
            keys.extend(entries.into_iter().filter_map(|entry| match entry {
                ConversationEntry::Task(task) => Some(task.key),
                _ => None,
            }));
            next += 1;
        }
        let deletions = keys.into_iter().map(|key| StoreChange::Delete { key });
        self.scope.journal().note_all(deletions.chain(step.ended(outcome_of(Ok(())))).collect());
        self.scope.journal().written().await
    }

    /// The next step of a session that is about the session itself.
    fn session_step(&self, session: &str, kind: SessionStep, asked: &str) -> Result<NotedStep> {
        let scope = self.scope.of_session(session);
        NotedStep::next(&scope, StepKind::Session(kind), json!(asked), Default::default).map_err(as_error)
    }
}

/// Returns the settings of a task's session: the subagent's, or else those of the session that starts the task.
async fn task_config(
    parent: &SessionConfig,
    subagent: Option<&Subagent>,
    source: &SandboxAccess,
) -> Result<SessionConfig> {
    let named = subagent.cloned().unwrap_or_default();
    let instructions = named.instructions.or_else(|| parent.instructions.clone());
    let packaged = named.skills.unwrap_or_else(|| parent.packaged.clone());
    Ok(SessionConfig {
        context: SessionContext::discover(source, instructions.as_deref(), &packaged).await?,
        instructions,
        packaged,
        subagents: if subagent.is_some() { named.subagents } else { parent.subagents.clone() },
        model: named.model.or_else(|| parent.model.clone()),
        thinking: thinking_of(subagent, parent.thinking),
        compaction: named.compaction.unwrap_or_else(|| parent.compaction.clone()),
        tools: named.tools.unwrap_or_else(|| parent.tools.clone()),
    })
}
