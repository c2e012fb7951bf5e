//! Sessions: each is one conversation of an agent, with the calls that can be made to it.

mod compacting;
mod operation;
mod prompt;
mod response;
mod resuming;
mod shell;
mod task;
mod tool_batch;
mod toolbox;
mod turns;

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use eyot::{Error, ErrorKind, Result};
use eyot_tools::ToolDef;
use serde_json::{Value, json};
use tokio::sync::Notify;

use super::HarnessInner;
use crate::abort::AbortSwitch;
use crate::call::CallHandle;
use crate::compaction::CompactionOptions;
use crate::conversation::{Conversation, ConversationEntry};
use crate::event::OperationKind;
use crate::failure::AgentResult;
use crate::journal::EventScope;
use crate::message::ContentBlock;
use crate::model::{Model, ThinkingLevel};
use crate::sandbox_access::SandboxAccess;
use crate::skill::{KnownSkill, PackagedSkill};
use crate::subagent::Subagent;
use crate::system_prompt::SessionContext;

pub use response::PromptResponse;
pub use shell::{ShellOptions, ShellResult};
pub(crate) use task::thinking_of;
pub use toolbox::{BUILTIN_TOOL_NAMES, create_tools};

/// The most levels that tasks may nest.
pub const MAX_TASK_DEPTH: u32 = 4;

/// A conversation of an agent. A session runs one call at a time. Clones share one session.
#[derive(Clone)]
pub struct Session {
    pub(crate) inner: Arc<SessionInner>,
}

/// The settings of a session.
#[derive(Clone)]
pub(crate) struct SessionConfig {
    pub(crate) context: SessionContext,
    pub(crate) instructions: Option<String>,
    pub(crate) packaged: Vec<PackagedSkill>,
    pub(crate) subagents: Vec<Subagent>,
    pub(crate) model: Option<Arc<dyn Model>>,
    pub(crate) thinking: ThinkingLevel,
    pub(crate) compaction: CompactionOptions,
    pub(crate) tools: Vec<ToolDef>,
}

pub(crate) struct SessionInner {
    place: SessionIdentity,
    pub(crate) harness: Arc<HarnessInner>,
    pub(crate) config: SessionConfig,
    conversation: Mutex<Conversation>,
    active: Mutex<Option<(OperationKind, AbortSwitch)>>,
    /// Tells that the session's operation has ended.
    ended: Notify,
    is_over: AtomicBool,
}

/// The identity of a session: its name, its key and its depth.
pub(crate) struct SessionIdentity {
    pub(crate) name: String,
    /// The conversation's key in the store.
    pub(crate) key: String,
    pub(crate) source: SandboxAccess,
    pub(crate) scope: EventScope,
    /// The number of tasks around this session.
    pub(crate) depth: u32,
}

impl std::ops::Deref for SessionInner {
    type Target = SessionIdentity;

    fn deref(&self) -> &SessionIdentity {
        &self.place
    }
}

/// Options of a prompt. They apply to this call only.
#[derive(Clone, Default)]
pub struct PromptOptions {
    /// A JSON Schema for the result, which is then in [`PromptResponse::data`].
    pub result: Option<Value>,
    /// Additional tools.
    pub tools: Vec<ToolDef>,
    /// The model, instead of the session's.
    pub model: Option<Arc<dyn Model>>,
    /// The reasoning effort, instead of the session's.
    pub thinking: Option<ThinkingLevel>,
    /// Images that go with the prompt.
    pub images: Vec<ContentBlock>,
}

/// Options of a skill.
#[derive(Clone, Default)]
pub struct SkillOptions {
    /// The arguments of the skill.
    pub arguments: serde_json::Map<String, Value>,
    /// The options of the prompt.
    pub prompt: PromptOptions,
}

/// Options of a task.
#[derive(Clone, Default)]
pub struct TaskOptions {
    /// The subagent that does the task; `None`: an agent with this session's settings.
    pub agent: Option<String>,
    /// The working directory; `None`: the session's.
    pub cwd: Option<String>,
    /// The options of the prompt.
    pub prompt: PromptOptions,
}

/// The choice of a skill to run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SkillChoice {
    /// The skill that the session knows by this name.
    Named(String),
    /// A skill that the caller provides.
    Packaged(PackagedSkill),
}

impl SkillChoice {
    fn name(&self) -> &str {
        match self {
            Self::Named(name) => name,
            Self::Packaged(skill) => &skill.head().name,
        }
    }
}

impl From<&str> for SkillChoice {
    fn from(name: &str) -> Self {
        Self::Named(name.to_owned())
    }
}

impl From<PackagedSkill> for SkillChoice {
    fn from(skill: PackagedSkill) -> Self {
        Self::Packaged(skill)
    }
}

impl Session {
    /// Returns the name, which is unique in the harness.
    pub fn name(&self) -> &str {
        &self.inner.name
    }

    /// Sends a prompt to the model, and lets the model work until it answers.
    pub fn prompt(&self, text: &str, options: PromptOptions) -> CallHandle<PromptResponse> {
        let (session, text) = (Arc::clone(&self.inner), text.to_owned());
        let asked = json!([text, options.result]);
        self.call(move |abort| async move {
            session
                .operate(OperationKind::Prompt, asked, abort, async move |operation| {
                    operation.prompt(text, options).await
                })
                .await
        })
    }

    /// Has the model run a skill.
    pub fn skill(&self, skill: impl Into<SkillChoice>, options: SkillOptions) -> CallHandle<PromptResponse> {
        let (session, skill) = (Arc::clone(&self.inner), skill.into());
        let asked = json!([skill.name(), options.arguments, options.prompt.result]);
        self.call(move |abort| async move {
            session
                .operate(OperationKind::Skill, asked, abort, async move |operation| {
                    operation.skill(skill, options).await
                })
                .await
        })
    }

    /// Runs a task in a new session that ends with the task. This conversation does not record it.
    pub fn task(&self, text: &str, options: TaskOptions) -> CallHandle<PromptResponse> {
        let (session, text) = (Arc::clone(&self.inner), text.to_owned());
        let asked = json!([text, options.agent, options.cwd, options.prompt.result]);
        self.call(move |abort| async move {
            session
                .operate(OperationKind::Task, asked, abort, async move |operation| {
                    operation.task(text, options).await.map(|done| done.response)
                })
                .await
        })
    }

    /// Runs a command in the sandbox. The next prompt shows the model the command and its output.
    pub fn shell(&self, command: &str, options: ShellOptions) -> CallHandle<ShellResult> {
        let (session, command) = (Arc::clone(&self.inner), command.to_owned());
        let names: Vec<&String> = options.env.keys().collect();
        let asked = json!([command, options.cwd, names]);
        self.call(move |abort| async move {
            session
                .operate(OperationKind::Shell, asked, abort, async move |operation| {
                    operation.shell(command, options).await
                })
                .await
        })
    }

    /// Compacts the conversation now. A short conversation stays unchanged.
    pub fn compact(&self) -> CallHandle<()> {
        let session = Arc::clone(&self.inner);
        self.call(move |abort| async move {
            session
                .operate(OperationKind::Compact, Value::Null, abort, async move |operation| {
                    operation.compact().await
                })
                .await
        })
    }

    /// Returns the sandbox, with the session's working directory, for files and commands that the conversation does not
    /// record. `invalid`: the session has no sandbox.
    pub async fn sandbox(&self) -> Result<eyot::Sandbox> {
        self.inner.source.sandbox().await?.ok_or_else(no_sandbox)
    }

    /// Returns the conversation so far.
    pub fn conversation(&self) -> Conversation {
        self.inner.lock().clone()
    }

    /// Aborts what goes on, waits for its end, and deletes the conversation with those of its tasks.
    pub async fn delete(&self) -> Result<()> {
        self.inner.close("the session was deleted");
        self.inner.until_idle().await;
        self.inner.harness.forget(&self.inner.name);
        self.inner.harness.delete_tree(&self.inner.name, &self.inner.key).await
    }

    fn call<T, Run, Fut>(&self, run: Run) -> CallHandle<T>
    where
        T: Send + 'static,
        Run: FnOnce(AbortSwitch) -> Fut,
        Fut: Future<Output = AgentResult<T>> + Send + 'static,
    {
        let abort = AbortSwitch::default();
        CallHandle::new(abort.clone(), &self.inner.scope, run(abort))
    }
}

impl SessionInner {
    pub(crate) fn new(
        place: SessionIdentity,
        harness: Arc<HarnessInner>,
        config: SessionConfig,
        conversation: Conversation,
    ) -> Self {
        let conversation = Mutex::new(conversation);
        Self {
            place,
            harness,
            config,
            conversation,
            active: Mutex::new(None),
            ended: Notify::new(),
            is_over: AtomicBool::new(false),
        }
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, Conversation> {
        self.conversation.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn active(&self) -> MutexGuard<'_, Option<(OperationKind, AbortSwitch)>> {
        self.active.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Aborts the running call and refuses new ones.
    pub(crate) fn close(&self, reason: &str) {
        self.is_over.store(true, Ordering::Relaxed);
        if let Some((_, abort)) = &*self.active() {
            abort.abort(reason);
        }
    }

    /// Waits until nothing goes on.
    async fn until_idle(&self) {
        loop {
            let ended = self.ended.notified();
            if self.active().is_none() {
                return;
            }
            ended.await;
        }
    }

    fn is_over(&self) -> bool {
        self.is_over.load(Ordering::Relaxed)
    }

    /// Adds an entry to the conversation.
    fn append(&self, entry: ConversationEntry) {
        self.lock().push(entry.clone());
        self.scope.journal().append(&self.key, entry);
    }

    fn skill(&self, name: &str) -> Option<&KnownSkill> {
        self.config.context.skills.iter().find(|skill| skill.name() == name)
    }
}

pub(crate) fn no_sandbox() -> Error {
    Error::new(ErrorKind::Invalid, "the agent has no sandbox").with_hint("give the harness one")
}
