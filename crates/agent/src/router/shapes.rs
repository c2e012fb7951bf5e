//! The bodies of answers, with Flue's names.

use serde::Serialize;
use serde_json::Value;
use utoipa::ToSchema;

use crate::event::{AgentEvent, rfc3339};
use crate::store::{RunRecord, RunStatus};

/// A run, as Flue shows it.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct RunShape {
    #[serde(flatten)]
    pointer: RunPointer,
    /// The result of the run.
    #[serde(skip_serializing_if = "Value::is_null")]
    #[schema(required = false)]
    result: Value,
    /// The failure of the run.
    #[serde(skip_serializing_if = "Value::is_null")]
    #[schema(value_type = Object, required = false)]
    error: Value,
}

/// A run in a list.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct RunPointer {
    /// The id.
    run_id: String,
    /// The agent's instance.
    instance_id: String,
    /// The agent.
    agent_name: String,
    /// The state: `active`, `completed` or `errored`.
    status: &'static str,
    /// The start, in RFC 3339.
    started_at: String,
    /// The end.
    #[serde(skip_serializing_if = "Option::is_none")]
    ended_at: Option<String>,
    /// The run failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    is_error: Option<bool>,
    /// The duration, in milliseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    duration_ms: Option<u64>,
}

/// An agent in a list.
#[derive(Serialize, ToSchema)]
pub(super) struct AgentShape {
    /// The name.
    pub(super) name: String,
    /// The ways to start it.
    pub(super) triggers: Triggers,
}

/// The ways to start an agent.
#[derive(Serialize, ToSchema)]
pub(super) struct Triggers {
    /// Callers over HTTP can start it.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    #[schema(required = false)]
    pub(super) webhook: bool,
}

/// An agent's instance in a list.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct InstanceShape {
    /// The agent.
    pub(super) agent_name: String,
    /// The instance.
    pub(super) instance_id: String,
}

/// A page of a list.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct Page<T> {
    /// The items.
    pub(super) items: Vec<T>,
    /// Continues the list, as `cursor` of the next request.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) next_cursor: Option<String>,
}

/// Events of a run.
#[derive(Serialize, ToSchema)]
pub(super) struct EventList {
    /// The events.
    #[schema(value_type = Vec<Object>)]
    pub(super) events: Vec<AgentEvent>,
}

/// The answer to a run that was waited for.
#[derive(Serialize, ToSchema)]
pub(super) struct Invoked {
    /// The result of the agent.
    pub(super) result: Value,
    #[serde(rename = "_meta")]
    pub(super) meta: InvokedMeta,
}

/// The run of an answer.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct InvokedMeta {
    /// The id of the run.
    pub(super) run_id: String,
}

/// The answer to a run that is not waited for.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct Accepted {
    /// `accepted`.
    pub(super) status: &'static str,
    /// The id of the run.
    pub(super) run_id: String,
}

impl From<&RunRecord> for RunPointer {
    fn from(run: &RunRecord) -> Self {
        Self {
            run_id: run.run_id.clone(),
            instance_id: run.instance_id.clone(),
            agent_name: run.agent_name.clone(),
            status: run.status.as_str(),
            started_at: rfc3339(run.started_ms),
            ended_at: run.ended_ms.map(rfc3339),
            is_error: run.ended_ms.map(|_| run.status == RunStatus::Errored),
            duration_ms: run.ended_ms.map(|ended| ended.saturating_sub(run.started_ms)),
        }
    }
}

impl From<&RunRecord> for RunShape {
    fn from(run: &RunRecord) -> Self {
        Self {
            pointer: run.into(),
            result: run.result.clone(),
            error: run.error.as_ref().map_or(
                Value::Null,
                |error| serde_json::json!({"name": error.name, "message": error.message}),
            ),
        }
    }
}
