//! Sources of agents: where a name becomes an agent.

use eyot::Result;

use crate::run::AgentHandler;

/// An agent, for lists.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AgentInfo {
    /// The name.
    pub name: String,
    /// The description.
    pub description: Option<String>,
    /// Set if callers over HTTP may start the agent.
    pub webhook: bool,
    /// The reason why its runs can't work, if that is known.
    pub problem: Option<String>,
}

/// Agents beside the registered ones. They are looked up at each run, so they may change at any time.
pub trait AgentSource: Send + Sync {
    /// Returns the agents, sorted by name. Blocks.
    fn agents(&self) -> Result<Vec<AgentInfo>>;

    /// Returns the agent of this name, if there is one. Blocks.
    fn find(&self, name: &str) -> Result<Option<FoundAgent>>;
}

/// An agent that a source has found.
#[derive(Clone)]
pub struct FoundAgent {
    /// The agent, for lists.
    pub info: AgentInfo,
    /// The handler of its runs.
    pub handler: AgentHandler,
    /// Returns the name of the sandbox that an instance works in, if that is known.
    pub sandbox_of: Option<fn(agent: &str, instance: &str) -> String>,
}
