//! Runs, and what they are made of.

use std::time::Duration;

use eyot_agent::{ScriptedTurn, TraceOptions};
use opentelemetry::trace::{SpanKind, Status};
use serde_json::json;

use crate::support::{Traces, attribute, knowing_the_model, run};

fn bash_then_answer() -> Vec<ScriptedTurn> {
    vec![
        ScriptedTurn::call("call_1", "bash", json!({"command": "sleep 0.05; echo done"})),
        ScriptedTurn::text("It is done."),
    ]
}

#[tokio::test]
async fn a_run_is_a_trace_of_its_operations_turns_and_tool_calls() {
    let traces = Traces::start(TraceOptions::default());
    let run = run("tree", json!({}), bash_then_answer()).await;
    run.result().await.unwrap();
    let trace = traces.finish_one("invoke_agent tree");
    let operation = "invoke_agent tree > invoke_agent tree";
    let expected = [
        "invoke_agent tree".to_owned(),
        operation.to_owned(),
        format!("{operation} > chat scripted"),
        format!("{operation} > chat scripted"),
        format!("{operation} > execute_tool bash"),
    ];
    assert_eq!(trace.paths(), expected);
    trace.assert_nested();
    assert!(trace.0.iter().all(|span| span.status == Status::Unset));
    let scope = &trace.0[0].instrumentation_scope;
    assert_eq!((scope.name(), scope.version()), ("eyot-agent", Some(env!("CARGO_PKG_VERSION"))));
}

#[tokio::test]
async fn spans_have_the_kinds_and_attributes_of_the_conventions() {
    let traces = Traces::start(knowing_the_model());
    let run = run("attributes", json!({}), bash_then_answer()).await;
    let id = run.id().to_owned();
    run.result().await.unwrap();
    let trace = traces.finish_one("invoke_agent attributes");

    let root = trace.at("invoke_agent attributes");
    assert_eq!(root.span_kind, SpanKind::Internal);
    assert_eq!(attribute(root, "gen_ai.operation.name"), "invoke_agent");
    assert_eq!(attribute(root, "gen_ai.agent.name"), "attributes");
    assert_eq!(attribute(root, "eyot.run.id"), id);

    let prompt = trace.at("invoke_agent attributes > invoke_agent attributes");
    assert_eq!(prompt.span_kind, SpanKind::Internal);
    assert_eq!(attribute(prompt, "gen_ai.operation.name"), "invoke_agent");
    assert_eq!(attribute(prompt, "gen_ai.agent.name"), "attributes");
    assert_eq!(attribute(prompt, "gen_ai.conversation.id"), "customer-42::default::default");
    assert_eq!(attribute(prompt, "eyot.operation.kind"), "prompt");
    assert_eq!(attribute(prompt, "eyot.session"), "default");
    assert_eq!(attribute(prompt, "gen_ai.usage.input_tokens"), "20");
    assert_eq!(attribute(prompt, "gen_ai.usage.output_tokens"), "10");

    let tool = trace.span("execute_tool bash");
    assert_eq!(tool.span_kind, SpanKind::Internal);
    assert_eq!(attribute(tool, "gen_ai.operation.name"), "execute_tool");
    assert_eq!(attribute(tool, "gen_ai.tool.name"), "bash");
    assert_eq!(attribute(tool, "gen_ai.tool.call.id"), "call_1");
    assert_eq!(attribute(tool, "gen_ai.tool.type"), "function");

    let chats: Vec<_> = trace.0.iter().filter(|span| span.name == "chat scripted").collect();
    let reasons: Vec<String> =
        chats.iter().map(|chat| attribute(chat, "gen_ai.response.finish_reasons")).collect();
    assert_eq!(reasons, ["[\"tool_call\"]", "[\"stop\"]"]);
    for chat in chats {
        assert_eq!(chat.span_kind, SpanKind::Internal, "the model is in this process");
        assert_eq!(attribute(chat, "gen_ai.operation.name"), "chat");
        assert_eq!(attribute(chat, "gen_ai.provider.name"), "eyot");
        assert_eq!(attribute(chat, "gen_ai.request.model"), "scripted");
        assert_eq!(attribute(chat, "gen_ai.conversation.id"), "customer-42::default::default");
        assert_eq!(attribute(chat, "gen_ai.usage.input_tokens"), "10");
        assert_eq!(attribute(chat, "gen_ai.usage.output_tokens"), "5");
        assert_eq!(attribute(chat, "gen_ai.usage.cache_read.input_tokens"), "");
    }
}

#[tokio::test]
async fn a_turn_ends_when_the_model_has_answered_and_a_tool_takes_its_own_time() {
    let traces = Traces::start(TraceOptions::default());
    let run = run("times", json!({}), bash_then_answer()).await;
    run.result().await.unwrap();
    let trace = traces.finish_one("invoke_agent times");
    let tool = trace.span("execute_tool bash");
    let took = tool.end_time.duration_since(tool.start_time).unwrap();
    assert!(took.as_millis() >= 50, "{took:?}");
    let first = trace.0.iter().filter(|span| span.name == "chat scripted").min_by_key(|span| span.end_time);
    let end = first.expect("a turn").end_time;
    // Its start is a time less a duration, a moment later than it was; the tool takes much longer.
    let late = end.duration_since(tool.start_time).expect("the turn ends after the tool has begun");
    assert!(late <= Duration::from_millis(25), "{late:?}");
}

#[tokio::test]
async fn a_model_that_nobody_told_of_is_a_client_call_to_another_provider() {
    let traces = Traces::start(TraceOptions::default());
    let run = run("unknown-model", json!({}), vec![ScriptedTurn::text("ok")]).await;
    run.result().await.unwrap();
    let trace = traces.finish_one("invoke_agent unknown-model");
    let chat = trace.span("chat scripted");
    assert_eq!(chat.span_kind, SpanKind::Client);
    assert_eq!(attribute(chat, "gen_ai.provider.name"), "_OTHER");
}

#[tokio::test]
async fn two_runs_at_once_are_two_traces() {
    let traces = Traces::start(TraceOptions::default());
    let (one, two) = tokio::join!(
        run("twin", json!({}), bash_then_answer()),
        run("twin", json!({}), vec![ScriptedTurn::text("ok")])
    );
    let (one, two) = tokio::join!(one.result(), two.result());
    assert!(one.is_ok() && two.is_ok());
    let traces = traces.finish("invoke_agent twin");
    let mut sizes: Vec<usize> = traces.iter().map(|trace| trace.0.len()).collect();
    sizes.sort_unstable();
    assert_eq!(sizes, [3, 5]);
    for trace in traces {
        trace.assert_nested();
        let runs: Vec<_> = trace.0.iter().map(|span| attribute(span, "eyot.run.id")).collect();
        assert_eq!(runs.iter().filter(|run| !run.is_empty()).count(), 1);
    }
}
