//! Operations of sessions: tasks, commands and summaries, and those outside of a run.

use std::sync::Arc;

use eyot_agent::{
    CompactionOptions, HarnessOptions, PromptOptions, ScriptedModel, ScriptedTurn, ShellOptions, TaskOptions,
    TraceOptions, init,
};
use serde_json::json;

use crate::support::{Traces, attribute, harness, options, run};

#[tokio::test]
async fn a_task_of_a_tool_holds_the_operation_of_its_session() {
    let traces = Traces::start(TraceOptions::default());
    let turns = vec![
        ScriptedTurn::call("1", "task", json!({"prompt": "help", "agent": "helper"})),
        ScriptedTurn::call("2", "bash", json!({"command": "true"})),
        ScriptedTurn::text("helped"),
        ScriptedTurn::text("done"),
    ];
    run("giver", json!({}), turns).await.result().await.unwrap();
    let trace = traces.finish_one("invoke_agent giver");
    let operation = "invoke_agent giver > invoke_agent giver";
    let task = format!("{operation} > invoke_agent helper");
    let inner = format!("{task} > invoke_agent helper");
    let expected = [
        "invoke_agent giver".to_owned(),
        operation.to_owned(),
        format!("{operation} > chat scripted"),
        format!("{operation} > chat scripted"),
        format!("{operation} > execute_tool task"),
        task.clone(),
        inner.clone(),
        format!("{inner} > chat scripted"),
        format!("{inner} > chat scripted"),
        format!("{inner} > execute_tool bash"),
    ];
    assert_eq!(trace.paths(), expected);
    trace.assert_nested();
    assert_eq!(attribute(trace.at(&task), "gen_ai.agent.name"), "helper");
    let conversation = attribute(trace.at(&inner), "gen_ai.conversation.id");
    assert!(conversation.starts_with("customer-42::default::task:default:"), "{conversation}");
}

#[tokio::test]
async fn outside_of_a_run_each_operation_is_a_trace_with_the_name_of_the_harness() {
    let traces = Traces::start(TraceOptions::default());
    let harness = harness("lonely", vec![ScriptedTurn::text("one"), ScriptedTurn::text("two")]).await;
    let session = harness.session().await.unwrap();
    session.prompt("go", PromptOptions::default()).await.unwrap();
    session.task("go", TaskOptions::default()).await.unwrap();
    let mut found: Vec<Vec<String>> =
        traces.finish("invoke_agent lonely").iter().map(crate::support::Trace::paths).collect();
    found.sort_by_key(Vec::len);
    let name = "invoke_agent lonely";
    let prompt = vec![name.to_owned(), format!("{name} > chat scripted")];
    let task = vec![
        name.to_owned(),
        format!("{name} > {name}"),
        format!("{name} > {name} > {name}"),
        format!("{name} > {name} > {name} > chat scripted"),
    ];
    assert_eq!(found, [prompt, task]);
}

#[tokio::test]
async fn a_command_is_no_invocation_of_an_agent() {
    let traces = Traces::start(TraceOptions::default());
    let harness = harness("commands", Vec::new()).await;
    harness.session().await.unwrap().shell("true", ShellOptions::default()).await.unwrap();
    let trace = traces.finish_one("shell commands");
    assert_eq!(trace.paths(), ["shell commands", "shell commands > execute_tool bash"]);
    let shell = trace.span("shell commands");
    assert_eq!(attribute(shell, "gen_ai.operation.name"), "shell");
    assert_eq!(attribute(shell, "gen_ai.conversation.id"), "");
}

#[tokio::test]
async fn a_summary_is_an_event_of_its_operation() {
    let traces = Traces::start(TraceOptions::default());
    let turns = ["an answer", "another", "SUMMARY", "SUMMARY"].map(ScriptedTurn::text);
    let compaction = CompactionOptions { keep_recent_tokens: Some(1), ..CompactionOptions::default() };
    let options = HarnessOptions {
        name: Some("short".into()),
        compaction,
        model: Some(Arc::new(ScriptedModel::new(turns))),
        ..options(Vec::new())
    };
    let session = init(options).await.unwrap().session().await.unwrap();
    session.prompt("one", PromptOptions::default()).await.unwrap();
    session.prompt("two", PromptOptions::default()).await.unwrap();
    session.compact().await.unwrap();
    let trace = traces.finish_one("compact short");
    let summary = "compact short > chat scripted";
    assert_eq!(trace.paths(), ["compact short", summary, summary]);
    let compact = trace.span("compact short");
    assert_eq!(attribute(compact, "eyot.operation.kind"), "compact");
    assert_eq!(compact.events.len(), 1);
    assert_eq!(compact.events[0].name, "eyot.compaction");
}
