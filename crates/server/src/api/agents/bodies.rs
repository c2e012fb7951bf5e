//! The bodies of requests and answers about agents.

use eyot_agent::{AgentEvent, AgentInfo, ClientTool, ClientToolCall, RunRecord};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use utoipa::ToSchema;

/// The agents of a server.
#[derive(Serialize, ToSchema)]
pub(in crate::api) struct AgentList {
    /// The agents, by name.
    pub agents: Vec<AgentEntry>,
}

/// An agent.
#[derive(Serialize, ToSchema)]
pub(in crate::api) struct AgentEntry {
    /// The name.
    pub name: String,
    /// The description.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// Every key may start it.
    pub webhook: bool,
    /// The reason why its runs can't work, such as a missing model. The server's operator can mend it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub problem: Option<String>,
}

impl From<AgentInfo> for AgentEntry {
    fn from(info: AgentInfo) -> Self {
        let AgentInfo { name, description, webhook, problem } = info;
        Self { name, description, webhook, problem }
    }
}

/// A new run.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(in crate::api) struct RunBody {
    /// The input of the agent. An agent that is a file takes `{"prompt": "…"}`, and perhaps `session` and `result`.
    #[serde(default = "nothing")]
    #[schema(required = false)]
    pub payload: Value,
    /// The tools that the caller answers itself; at most 128.
    #[serde(default)]
    pub tools: Vec<ClientTool>,
    /// The time in which the caller answers a call of its tools, in milliseconds: 1 to 3,600,000; by default 300,000. Then the
    /// model is told that the tool has failed.
    pub tool_timeout_ms: Option<u64>,
}

fn nothing() -> Value {
    json!({})
}

/// The reason of an abort.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(in crate::api) struct AbortBody {
    /// The reason, which the run's failure tells.
    pub reason: Option<String>,
}

/// A run.
#[derive(Serialize, ToSchema)]
pub(in crate::api) struct RunAnswer {
    /// The id.
    pub id: String,
    /// The agent.
    pub agent: String,
    /// The agent's instance.
    pub instance: String,
    /// The pool that the run is of.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pool: Option<String>,
    /// The name of the sandbox that the agent works in, which is in the run's pool.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sandbox: Option<String>,
    /// The state: `active`, `completed` or `errored`.
    pub status: &'static str,
    /// The run is active, and its process is gone: it can be gone on with.
    pub interrupted: bool,
    /// The start, in milliseconds since 1970 (UTC).
    pub started_ms: u64,
    /// The end.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ended_ms: Option<u64>,
    /// The input. Lists leave it out.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Value, required = false)]
    pub payload: Option<Value>,
    /// The result. Lists leave it out.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Value, required = false)]
    pub result: Option<Value>,
    /// The failure.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<RunError>,
}

/// The failure of a run.
#[derive(Serialize, ToSchema)]
pub(in crate::api) struct RunError {
    /// The kind.
    pub name: String,
    /// The failure, in one sentence.
    pub message: String,
}

/// Runs, the newest first.
#[derive(Serialize, ToSchema)]
pub(in crate::api) struct RunList {
    /// The runs.
    pub runs: Vec<RunAnswer>,
    /// Continues the list, as `cursor` of the next request. Absent: there is no more.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next_cursor: Option<String>,
}

/// Events of a run.
#[derive(Serialize, ToSchema)]
pub(in crate::api) struct RunEvents {
    /// The events, oldest first. `docs/agents.md` lists their types and fields.
    #[schema(value_type = Vec<Object>)]
    pub events: Vec<AgentEvent>,
}

/// The calls of a run that wait for its caller.
#[derive(Serialize, ToSchema)]
pub(in crate::api) struct WaitingToolCalls {
    /// The calls.
    pub tool_calls: Vec<ClientToolCall>,
}

impl RunAnswer {
    /// A run with all that is known of it. `abandoned` are the runs whose process is gone.
    pub fn of(run: RunRecord, abandoned: &[String]) -> Self {
        let (payload, result) = (run.payload.clone(), run.result.clone());
        let result = (!result.is_null()).then_some(result);
        Self { payload: Some(payload), result, ..Self::listed(run, abandoned) }
    }

    /// A run as lists show it.
    pub fn listed(run: RunRecord, abandoned: &[String]) -> Self {
        Self {
            interrupted: abandoned.contains(&run.run_id),
            id: run.run_id,
            agent: run.agent_name,
            instance: run.instance_id,
            pool: run.pool,
            sandbox: run.sandbox,
            status: run.status.as_str(),
            started_ms: run.started_ms,
            ended_ms: run.ended_ms,
            payload: None,
            result: None,
            error: run.error.map(|error| RunError { name: error.name, message: error.message }),
        }
    }
}
