//! Where runs, their events and conversations are kept.

mod in_engine;
mod in_memory;

use std::sync::Arc;

use async_trait::async_trait;
use eyot::Result;
use eyot_engine::store::AgentRunLease;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::conversation::ConversationEntry;
use crate::event::{AgentEvent, EventError};
use crate::step::AgentStep;

pub use in_engine::EngineStore;
pub use in_memory::MemoryStore;

/// A place where runs, their events and conversations are kept.
#[async_trait]
pub trait AgentStore: Send + Sync {
    /// Returns the entries of the conversation of this key, or `None` if there is no such conversation.
    async fn conversation(&self, key: &str) -> Result<Option<Vec<ConversationEntry>>>;

    /// Writes these changes, in their order: all of them, or none. Those of a run need its lease. `conflict`: the run was taken
    /// over, or has ended.
    async fn commit(&self, lease: Option<&RunLease>, changes: Vec<StoreChange>) -> Result<()>;

    /// Begins a run, which is the caller's as long as the lease is there. `already_exists`: there is one of this id.
    async fn begin_run(&self, run: RunRecord) -> Result<RunLease>;

    /// Takes over an active run whose owner is gone. `None`: it has ended, or its owner lives. `not_found`: there is none.
    async fn take_run(&self, id: &str) -> Result<Option<RunLease>>;

    /// Returns the ids of the active runs whose owner is gone, the oldest first.
    async fn abandoned_runs(&self) -> Result<Vec<String>>;

    /// Returns the run of this id, if there is one.
    async fn run(&self, id: &str) -> Result<Option<RunRecord>>;

    /// Returns the runs that are wanted, the newest first.
    async fn runs(&self, filter: RunFilter) -> Result<Vec<RunRecord>>;

    /// Returns the events of a run from this number on: at most so many.
    async fn events(&self, run: &str, from: u64, limit: u64) -> Result<Vec<AgentEvent>>;

    /// Returns the steps of a run, with their sessions and numbers.
    async fn steps(&self, run: &str) -> Result<Vec<(String, u64, AgentStep)>>;
}

/// The right to write a run. Dropped, it gives the run up. Clones are one.
#[derive(Debug, Clone)]
pub struct RunLease {
    id: Arc<str>,
    /// Of a run in the engine's store.
    kept: Option<Arc<AgentRunLease>>,
}

impl RunLease {
    /// The run.
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
    /// The agent's instance.
    pub instance_id: String,
    /// The agent.
    pub agent_name: String,
    /// The state that it is in.
    pub status: RunStatus,
    /// The time at which it began, in milliseconds since 1970 (UTC).
    pub started_ms: u64,
    /// The time at which it ended, in milliseconds since 1970 (UTC).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended_ms: Option<u64>,
    /// The input.
    #[serde(default)]
    pub payload: Value,
    /// The result.
    #[serde(default, skip_serializing_if = "Value::is_null")]
    pub result: Value,
    /// The failure.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<EventError>,
}

/// The state of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum RunStatus {
    /// It goes on.
    Active,
    /// It ended well.
    Completed,
    /// It failed.
    Errored,
}

/// The runs that are wanted of a list.
#[derive(Debug, Clone, Default)]
pub struct RunFilter {
    /// In this state.
    pub status: Option<RunStatus>,
    /// Of this agent.
    pub agent_name: Option<String>,
    /// Of this instance.
    pub instance_id: Option<String>,
    /// Behind this one: its start and its id.
    pub before: Option<(u64, String)>,
    /// At most so many; `None`: 100.
    pub limit: Option<u64>,
}

/// The number of runs that a list has where nobody says another one.
pub const DEFAULT_RUN_LIMIT: u64 = 100;

/// A change of what is kept.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum StoreChange {
    /// Begins a conversation, unless there is one of this key.
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
    /// Notes a step of the run, in place of an older note of the same step.
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
        /// The failure; without one it ended well.
        error: Option<EventError>,
    },
}
