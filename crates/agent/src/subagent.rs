//! Subagents: agents that a session may give tasks to.

use std::sync::Arc;

use eyot_tools::ToolDef;

use crate::compaction::CompactionOptions;
use crate::model::{Model, ThinkingLevel};
use crate::skill::PackagedSkill;

/// An agent that a session may give tasks to. What it does not name is that of the session.
#[derive(Clone, Default)]
pub struct Subagent {
    /// The name by which a task names it.
    pub name: String,
    /// The description that the model is shown.
    pub description: Option<String>,
    /// The instructions.
    pub instructions: Option<String>,
    /// The model.
    pub model: Option<Arc<dyn Model>>,
    /// The tools, beside those of the sandbox.
    pub tools: Option<Vec<ToolDef>>,
    /// The skills, beside those of the workspace.
    pub skills: Option<Vec<PackagedSkill>>,
    /// The agents that it may give tasks to. By default none.
    pub subagents: Vec<Self>,
    /// The effort of its reasoning.
    pub thinking: Option<ThinkingLevel>,
    /// The way in which its conversations are made shorter.
    pub compaction: Option<CompactionOptions>,
}
