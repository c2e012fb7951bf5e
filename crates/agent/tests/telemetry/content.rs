//! Content: what users, models and tools wrote is recorded only where it is asked for.

use eyot_agent::{ScriptedTurn, TraceOptions};
use serde_json::json;

use crate::support::{Trace, Traces, attribute, run};

async fn traced(name: &str, options: TraceOptions) -> Trace {
    let traces = Traces::start(options);
    let turns = vec![
        ScriptedTurn::call(
            "1",
            "bash",
            json!({"command": "echo RESULT-CANARY-$((40 + 2)) # ARGUMENT-CANARY"}),
        ),
        ScriptedTurn::call("2", "task", json!({"prompt": "TASK-CANARY"})),
        ScriptedTurn::text("TASK-ANSWER-CANARY"),
        ScriptedTurn::text("ANSWER-CANARY"),
    ];
    run(name, json!({"payload": "PAYLOAD-CANARY"}), turns).await.result().await.expect("the end of the run");
    traces.finish_one(&format!("invoke_agent {name}"))
}

#[tokio::test]
async fn no_content_is_recorded_by_default() {
    let trace = traced("private", TraceOptions::default()).await;
    assert!(trace.0.len() > 5);
    let spans = format!("{trace:?}");
    assert!(!spans.contains("CANARY"), "{spans}");
}

#[tokio::test]
async fn content_is_recorded_where_it_is_asked_for() {
    let options = TraceOptions { records_content: true, ..TraceOptions::default() };
    let trace = traced("public", options).await;
    let root = trace.at("invoke_agent public");
    assert!(attribute(root, "gen_ai.input.messages").contains("PAYLOAD-CANARY"));
    assert!(attribute(root, "gen_ai.output.messages").contains("ANSWER-CANARY"));
    let bash = trace.span("execute_tool bash");
    assert!(attribute(bash, "gen_ai.tool.call.arguments").contains("ARGUMENT-CANARY"));
    assert!(attribute(bash, "gen_ai.tool.call.result").contains("RESULT-CANARY-42"));
    let task = trace.at("invoke_agent public > invoke_agent public > invoke_agent public");
    let expected = json!([{"role": "user", "parts": [{"type": "text", "content": "TASK-CANARY"}]}]);
    assert_eq!(attribute(task, "gen_ai.input.messages"), expected.to_string());
    let expected = json!([{
        "role": "assistant",
        "parts": [{"type": "text", "content": "TASK-ANSWER-CANARY"}],
        "finish_reason": "stop",
    }]);
    assert_eq!(attribute(task, "gen_ai.output.messages"), expected.to_string());
}
