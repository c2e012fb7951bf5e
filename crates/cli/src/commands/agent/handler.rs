//! The agent of the command line: one task, one session. The payload of its run contains everything it needs, so that
//! another process can resume it.

use std::path::PathBuf;

use eyot_agent::{
    AgentContext, AgentFile, AgentResult, AgentSandbox, Agents, Budget, COMMAND_LINE_AGENT, HarnessOptions,
    McpServerOptions, PromptOptions, connect_mcp_servers, resolve_model,
};
use eyot_engine::SandboxPool;
use eyot_tools::{Toolset, toolset_over};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::args::AgentWorkArgs;
use crate::errors::Failure;

/// The name of the agent.
pub(super) const AGENT: &str = COMMAND_LINE_AGENT;
/// The toolset of an agent that names none.
const DEFAULT_TOOLSET: &str = "coding";

/// A task, as stored in the payload of a run.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct AgentTask {
    pub(super) task: String,
    pub(super) model: String,
    /// The file of the agent. A process that resumes the run reads it again, so that no header value gets into the store.
    pub(super) agent: Option<AgentFileRef>,
    tools: Option<String>,
    mcp: Vec<String>,
    instructions: Option<String>,
    budget: Budget,
    /// The provider of its sandbox.
    #[serde(default)]
    pub(super) provider: Option<String>,
    /// Set if the sandbox was created with options of its own. They may hold secrets, so they are not kept.
    #[serde(default)]
    pub(super) has_own_spec: bool,
}

/// The folder and the name of an agent's file.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct AgentFileRef {
    pub(super) folder: PathBuf,
    pub(super) name: String,
}

impl AgentFileRef {
    pub(super) fn read(&self) -> eyot::Result<AgentFile> {
        AgentFile::read(&self.folder, &self.name)
    }
}

impl AgentTask {
    /// A task in words. What the flags do not say is as in the task before it, but for the budget.
    pub(super) fn new(
        task: &str,
        model: String,
        agent: Option<AgentFileRef>,
        args: &AgentWorkArgs,
        before: Option<&Self>,
    ) -> Self {
        let budget = Budget {
            max_turns: args.max_turns,
            max_tokens: args.max_tokens,
            max_duration_ms: args.max_time,
            max_cost: args.max_cost,
        };
        Self {
            task: task.to_owned(),
            model,
            agent,
            tools: args.tools.clone().or_else(|| before?.tools.clone()),
            mcp: match before {
                Some(before) if args.mcp.is_empty() => before.mcp.clone(),
                _ => args.mcp.clone(),
            },
            instructions: args.instructions.clone().or_else(|| before?.instructions.clone()),
            budget,
            provider: before.and_then(|before| before.provider.clone()),
            has_own_spec: before.is_some_and(|before| before.has_own_spec),
        }
    }

    /// The tools of the flags, or else of the agent's file. `not_found`: there are none of this name.
    pub(super) fn toolset(&self, file: Option<&AgentFile>, pool: &SandboxPool) -> eyot::Result<Toolset> {
        let name = self.tools.as_deref().or_else(|| file?.tools.as_deref());
        toolset_over(pool.provider().as_ref(), name.unwrap_or(DEFAULT_TOOLSET))
    }

    pub(super) fn of_payload(payload: &Value) -> serde_json::Result<Self> {
        serde_json::from_value(payload.clone())
    }

    pub(super) fn to_payload(&self) -> Result<Value, Failure> {
        serde_json::to_value(self).map_err(|error| Failure::host("write the task", error.into()))
    }
}

/// Registers the agent, which works in the pool's sandbox.
pub(super) fn register(agents: &Agents, pool: SandboxPool) -> eyot::Result<()> {
    agents.register(AGENT, move |context| work(context, pool.clone()))
}

async fn work(context: AgentContext, pool: SandboxPool) -> AgentResult<Value> {
    let task = AgentTask::of_payload(context.payload())
        .map_err(|error| eyot::Error::invalid("payload", format!("is not a task: {error}")))?;
    let agent = task.agent.as_ref().map(AgentFileRef::read).transpose()?;
    let toolset = task.toolset(agent.as_ref(), &pool)?;
    let mut servers: Vec<(String, McpServerOptions)> = task.mcp.iter().enumerate().map(numbered).collect();
    servers.extend(agent.iter().flat_map(|agent| agent.mcp.clone()));
    let (connections, tools) = connect_mcp_servers(servers).await?;
    let instructions = [agent.map(|agent| agent.instructions), task.instructions];
    let instructions: Vec<String> = instructions.into_iter().flatten().collect();
    let options = HarnessOptions {
        model: Some(resolve_model(&task.model)?),
        sandbox: AgentSandbox::Pool(pool),
        toolset: Some(toolset),
        tools,
        instructions: (!instructions.is_empty()).then(|| instructions.join("\n\n")),
        budget: task.budget,
        ..HarnessOptions::default()
    };
    let session = context.init(options).await?.session().await?;
    let answer = session.prompt(&task.task, PromptOptions::default()).await;
    for connection in connections {
        connection.close().await;
    }
    answer.map(|answer| json!({"text": answer.text, "usage": answer.usage}))
}

/// Names the MCP servers of `--mcp` by number, because the command line gives only URLs.
fn numbered((index, url): (usize, &String)) -> (String, McpServerOptions) {
    (format!("mcp{}", index + 1), McpServerOptions::new(url))
}
