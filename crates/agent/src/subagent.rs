//! Subagents: agents that may do the tasks of a session.

use std::sync::Arc;

use eyot_tools::ToolDef;

use crate::compaction::CompactionOptions;
use crate::model::{Model, ThinkingLevel};
use crate::skill::PackagedSkill;

/// An agent that may do the tasks of a session. Settings that it does not name are those of the session.
#[derive(Clone, Default)]
pub struct Subagent {
    /// The name that tasks use for it.
    pub name: String,
    /// The description that the model sees.
    pub description: Option<String>,
    /// The instructions.
    pub instructions: Option<String>,
    /// The model.
    pub model: Option<Arc<dyn Model>>,
    /// The tools, in addition to those of the sandbox.
    pub tools: Option<Vec<ToolDef>>,
    /// The skills, in addition to those of the workspace.
    pub skills: Option<Vec<PackagedSkill>>,
    /// The agents that may do its tasks. By default there are none.
    pub subagents: Vec<Self>,
    /// The reasoning effort.
    pub thinking: Option<ThinkingLevel>,
    /// Options for the compaction of conversations.
    pub compaction: Option<CompactionOptions>,
}
