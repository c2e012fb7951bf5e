//! Failures, and work that does not end.

use eyot_agent::{HarnessOptions, ModelError, ModelErrorKind, PromptOptions, ScriptedTurn, TraceOptions};
use opentelemetry::trace::Status;
use opentelemetry_sdk::trace::SpanData;
use serde_json::json;

use crate::support::{Traces, attribute, harness, run};

fn error(span: &SpanData) -> (Status, String) {
    (span.status.clone(), attribute(span, "error.type"))
}

fn failed(kind: &str) -> (Status, String) {
    (Status::error(""), kind.to_owned())
}

#[tokio::test]
async fn a_model_that_fails_fails_its_turn_the_operation_and_the_run() {
    let traces = Traces::start(TraceOptions::default());
    let failure = ModelError::new(ModelErrorKind::Invalid, "ERROR-CANARY");
    let run = run("failing", json!({}), vec![ScriptedTurn::Fail(failure)]).await;
    run.result().await.unwrap_err();
    let trace = traces.finish_one("invoke_agent failing");
    assert_eq!(trace.0.len(), 3);
    for span in &trace.0 {
        assert_eq!(error(span), failed("ModelError"), "{span:?}");
    }
    let reasons = attribute(trace.span("chat scripted"), "gen_ai.response.finish_reasons");
    assert_eq!(reasons, "[\"error\"]");
    assert!(!format!("{trace:?}").contains("CANARY"));
}

#[tokio::test]
async fn a_tool_that_fails_is_the_only_one() {
    let traces = Traces::start(TraceOptions::default());
    let turns = vec![
        ScriptedTurn::call("1", "read_nothing", json!({})).and_call("2", "bash", json!({"command": "true"})),
        ScriptedTurn::text("ok"),
    ];
    run("failing-tool", json!({}), turns).await.result().await.unwrap();
    let trace = traces.finish_one("invoke_agent failing-tool");
    let failures: Vec<&SpanData> = trace.0.iter().filter(|span| span.status != Status::Unset).collect();
    assert_eq!(failures.len(), 1);
    assert_eq!(failures[0].name, "execute_tool read_nothing");
    assert_eq!(error(failures[0]), failed("tool_error"));
}

#[tokio::test]
async fn an_aborted_prompt_is_an_abort() {
    let traces = Traces::start(TraceOptions::default());
    let harness = harness("aborted", vec![ScriptedTurn::Stall(Vec::new())]).await;
    let session = harness.session().await.unwrap();
    let call = session.prompt("go", PromptOptions::default());
    let abort = call.aborter();
    let mut events = call.events();
    let call = tokio::spawn(call);
    events.next().await.unwrap();
    abort("enough");
    call.await.unwrap().unwrap_err();
    let trace = traces.finish_one("invoke_agent aborted");
    assert_eq!(error(trace.span("invoke_agent aborted")), failed("AbortError"));
}

#[tokio::test]
async fn the_end_of_the_tracing_ends_the_spans_of_work_that_goes_on() {
    let traces = Traces::start(TraceOptions::default());
    let options = move || HarnessOptions {
        name: Some("endless".into()),
        ..crate::support::options(vec![ScriptedTurn::Stall(Vec::new())])
    };
    let mut run = crate::support::run_with("endless", json!({}), options).await;
    while run.next_event().await.unwrap().kind.name() != "operation_start" {}
    let trace = traces.finish_one("invoke_agent endless");
    assert_eq!(trace.paths(), ["invoke_agent endless", "invoke_agent endless > invoke_agent endless"]);
    for span in &trace.0 {
        assert_eq!(error(span), failed("unfinished"));
    }
    run.abort("the test is over");
}

#[tokio::test]
async fn tracing_that_is_dropped_hears_no_more() {
    let exporter = Traces::start(TraceOptions::default()).drop_subscription();
    let traces = Traces::start(TraceOptions::default());
    run("later", json!({}), vec![ScriptedTurn::text("ok")]).await.result().await.unwrap();
    assert_eq!(traces.finish("invoke_agent later").len(), 1);
    let spans = exporter.get_finished_spans().unwrap();
    assert!(!spans.iter().any(|span| span.name == "invoke_agent later"), "{spans:?}");
}

#[test]
fn the_provider_of_the_whole_program_is_one() {
    let provider = opentelemetry::global::tracer_provider();
    let traces = eyot_agent::trace_agents(&provider, TraceOptions::default()).unwrap();
    assert!(traces.finish(std::time::Duration::from_secs(30)));
}
