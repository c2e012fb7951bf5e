//! The events of a transcript.

use eyot_agent::AgentEventKind;
use serde_json::{Value, json};

use super::names::ShortNames;

/// The fields of events that are times, or that 0.7.1 does not have.
const LEFT_OUT: [&str; 13] = [
    "timestamp",
    "startedAt",
    "owner",
    "eventIndex",
    "durationMs",
    "instanceId",
    "runId",
    "turnId",
    "purpose",
    "provider",
    "api",
    "output",
    "details",
];

/// Returns the events without what is not compared. The answers of one turn arrive in any order, and our runtime holds back the
/// end of a piece of text where a secret may begin.
pub fn events_of(events: Vec<Value>, mut tasks: Option<&mut ShortNames>) -> Vec<Value> {
    let compared = |event: &Value| {
        // The lines that a session writes into the log are other ones.
        let is_line = event["type"] == "log" && !event["session"].is_null();
        AgentEventKind::NAMES.contains(&event["type"].as_str().unwrap_or_default()) && !is_line
    };
    let mut events: Vec<Value> = events.into_iter().filter(compared).map(plain_event).collect();
    events.dedup_by(|piece, before| join_pieces(before, piece));
    let is_parallel = tasks.is_some();
    let is_of_a_call = |event: &Value| match event["type"].as_str() {
        Some("tool_start" | "tool_call") => true,
        Some("task") => is_parallel,
        _ => false,
    };
    let mut order = |event: &Value| match event["type"].as_str() {
        Some("tool_start") => (0, String::new()),
        Some("tool_call") => (1, event["toolCallId"].to_string()),
        _ => {
            let task = event["taskId"].as_str().unwrap_or_default();
            (2, tasks.as_mut().map(|names| names.shortened(task)).unwrap_or_default())
        }
    };
    events
        .chunk_by_mut(|one, next| is_of_a_call(one) && is_of_a_call(next))
        .for_each(|together| together.sort_by_key(&mut order));
    events
}

fn plain_event(event: Value) -> Value {
    let Value::Object(mut fields) = event else { return event };
    LEFT_OUT.iter().for_each(|field| drop(fields.remove(*field)));
    fields.get_mut("result").into_iter().for_each(plain_result);
    // What 0.7.1 calls an agent is a workflow now.
    if let Some(name) = fields.remove("workflowName") {
        fields.insert("agentName".to_owned(), name);
    }
    // 0.7.1 says at the start of a task who does it, and calls that the role.
    if let Some(agent) = fields.remove("agent")
        && fields["type"] == "task_start"
    {
        fields.insert("role".to_owned(), agent);
    }
    // Flue counts no tokens for a failed turn, and ours none that the provider did not count.
    if fields.get("isError") == Some(&json!(true))
        && fields.get("usage").is_some_and(|usage| usage["totalTokens"] == 0)
    {
        fields.remove("usage");
    }
    Value::Object(fields)
}

/// `result` is the older name of `data`. What is for programs in an answer of a tool is not compared.
pub fn plain_result(result: &mut Value) {
    if let Some(fields) = result.as_object_mut() {
        ["result", "details", "terminate"].iter().for_each(|field| drop(fields.remove(*field)));
    }
}

/// Adds a piece to the one before it, if both are of one text. Returns whether they are.
fn join_pieces(before: &mut Value, piece: &Value) -> bool {
    for (kind, field) in [("text_delta", "text"), ("thinking_delta", "delta")] {
        if before["type"] == kind && piece["type"] == kind {
            let text = [&before[field], &piece[field]].map(|text| text.as_str().unwrap_or_default()).concat();
            before[field] = json!(text);
            return true;
        }
    }
    false
}
