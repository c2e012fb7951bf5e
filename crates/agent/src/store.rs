//! Stores for runs, their events and their conversations.

mod in_engine;
mod in_memory;
mod watch;

use std::sync::Arc;

use async_trait::async_trait;
use eyot::Result;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::client_tool::ClientTool;
use crate::conversation::ConversationEntry;
use crate::event::{AgentEvent, EventError};
use crate::step::AgentStep;

pub use in_engine::EngineStore;
use in_engine::KeptLease;
pub use in_memory::MemoryStore;
pub use watch::{RunSignals, RunWatch};

/// A store for runs, their events and their conversations.
#[async_trait]
pub trait AgentStore: Send + Sync {
    /// Returns the entries of the conversation with this key, or `None` if there is no such conversation.
    async fn conversation(&self, key: &str) -> Result<Option<Vec<ConversationEntry>>>;

    /// Writes all of these changes in order, or none of them. Changes to a run need its lease. `conflict`: the run was taken
    /// over, or has ended.
    async fn commit(&self, lease: Option<&RunLease>, changes: Vec<StoreChange>) -> Result<()>;

    /// Begins a run, which the caller owns as long as the lease lives. `already_exists`: there is one with this id.
    async fn begin_run(&self, run: RunRecord) -> Result<RunLease>;

    /// Takes over an active run whose owner is gone. `None`: the run has ended, or its owner lives. `not_found`: there is no
    /// such run.
    async fn take_run(&self, id: &str) -> Result<Option<RunLease>>;

    /// Returns the ids of the active runs whose owner is gone, the oldest first.
    async fn abandoned_runs(&self) -> Result<Vec<String>>;

    /// Returns the run with this id, if there is one.
    async fn run(&self, id: &str) -> Result<Option<RunRecord>>;

    /// Returns the runs that match a filter, newest first.
    async fn runs(&self, filter: RunFilter) -> Result<Vec<RunRecord>>;

    /// Returns the instances of an agent that have runs, sorted: those of these pools (`None`: all), behind `after`, at most
    /// `limit`.
    async fn instances(
        &self,
        agent: &str,
        pools: Option<&[String]>,
        after: &str,
        limit: u64,
    ) -> Result<Vec<String>>;

    /// Watches a run, which may be one of another process.
    async fn watch_run(&self, id: &str) -> Result<RunWatch>;

    /// Returns at most `limit` events of a run, from the number `from` on.
    async fn events(&self, run: &str, from: u64, limit: u64) -> Result<Vec<AgentEvent>>;

    /// Returns the steps of a run, with their sessions and numbers.
    async fn steps(&self, run: &str) -> Result<Vec<(String, u64, AgentStep)>>;
}

/// The right to write a run. Dropping the last clone releases the run.
#[derive(Debug, Clone)]
pub struct RunLease {
    id: Arc<str>,
    /// The lease in the engine's store, if the run is kept there.
    kept: Option<Arc<KeptLease>>,
}

impl RunLease {
    /// Returns the run's id.
    pub fn id(&self) -> &str {
        &self.id
    }
}

/// A run of an agent.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RunRecord {
    /// The id: `run_` and a ULID.
    pub run_id: String,
    /// The pool whose callers may see the run; `None`: it is of no pool.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pool: Option<String>,
    /// The agent's instance.
    pub instance_id: String,
    /// The agent.
    pub agent_name: String,
    /// The name of the sandbox that the agent works in, if it is known before the run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sandbox: Option<String>,
    /// The state.
    pub status: RunStatus,
    /// The start, in milliseconds since 1970 (UTC).
    pub started_ms: u64,
    /// The end, in milliseconds since 1970 (UTC).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended_ms: Option<u64>,
    /// The input.
    #[serde(default)]
    pub payload: Value,
    /// The wishes of the caller beside the input.
    #[serde(default, skip_serializing_if = "AgentRunOptions::is_usual")]
    pub options: AgentRunOptions,
    /// The result.
    #[serde(default, skip_serializing_if = "Value::is_null")]
    pub result: Value,
    /// The failure.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<EventError>,
}

impl RunRecord {
    /// Returns the run without its input, its options and its result.
    fn brief(&self) -> Self {
        Self {
            payload: Value::Null,
            options: AgentRunOptions::default(),
            result: Value::Null,
            run_id: self.run_id.clone(),
            pool: self.pool.clone(),
            instance_id: self.instance_id.clone(),
            agent_name: self.agent_name.clone(),
            sandbox: self.sandbox.clone(),
            status: self.status,
            started_ms: self.started_ms,
            ended_ms: self.ended_ms,
            error: self.error.clone(),
        }
    }
}

/// Wishes of the caller of a run beside the input.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct AgentRunOptions {
    /// The tools that the caller runs itself. Every harness of the run has them.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub tools: Vec<ClientTool>,
    /// The time in which the caller answers a call of its tools, in milliseconds; `None`:
    /// [`crate::DEFAULT_CLIENT_TOOL_TIMEOUT_MS`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tool_timeout_ms: Option<u64>,
    /// Tells `idle` before the end, if the run has not told it.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub tells_idle: bool,
}

impl AgentRunOptions {
    fn is_usual(&self) -> bool {
        *self == Self::default()
    }
}

/// The state of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "router", derive(utoipa::ToSchema))]
#[serde(rename_all = "lowercase")]
pub enum RunStatus {
    /// The run has not ended.
    Active,
    /// The run succeeded.
    Completed,
    /// The run failed.
    Errored,
}

impl RunStatus {
    /// The name on the wire.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Active => "active",
            Self::Completed => "completed",
            Self::Errored => "errored",
        }
    }
}

/// A filter for a list of runs.
#[derive(Debug, Clone, Default)]
pub struct RunFilter {
    /// Runs in this state.
    pub status: Option<RunStatus>,
    /// Runs of this agent.
    pub agent_name: Option<String>,
    /// Runs of this instance.
    pub instance_id: Option<String>,
    /// Runs of these pools; `None`: all runs.
    pub pools: Option<Vec<String>>,
    /// Leaves out the input, the options and the result, which may be large.
    pub is_brief: bool,
    /// Runs that come after this one in the list, given as its start and its id.
    pub before: Option<(u64, String)>,
    /// The most runs to return; `None`: 100.
    pub limit: Option<u64>,
}

/// The default number of runs in a list.
pub const DEFAULT_RUN_LIMIT: u64 = 100;

/// A change to the store.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum StoreChange {
    /// Begins a conversation, unless there is one with this key. It is the run's until that ends. `conflict`: it is another
    /// run's.
    Begin {
        /// The conversation's key.
        key: String,
    },
    /// Adds an entry at the end of a conversation.
    Append {
        /// The conversation's key.
        key: String,
        /// The entry.
        entry: Box<ConversationEntry>,
    },
    /// Deletes a conversation. One that is missing is fine.
    Delete {
        /// The conversation's key.
        key: String,
    },
    /// Adds an event to the run.
    Event(Arc<AgentEvent>),
    /// Records a step of the run, or replaces its record.
    Step {
        /// The session.
        session: String,
        /// The number in the session.
        number: u64,
        /// The step.
        step: Box<AgentStep>,
    },
    /// Ends the run.
    End {
        /// The result.
        result: Value,
        /// The failure; `None`: the run succeeded.
        error: Option<EventError>,
    },
}
