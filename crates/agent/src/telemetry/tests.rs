//! The tracer with events that were left out, or that do not belong together.

use std::sync::mpsc::channel;
use std::time::Duration;

use opentelemetry::trace::{Status, TracerProvider};
use opentelemetry_sdk::trace::{InMemorySpanExporter, SdkTracer, SdkTracerProvider, SpanData};
use serde_json::{Value, json};

use super::agent_tracer::AgentTracer;
use super::{MAX_OPEN_SPANS, TraceOptions};
use crate::event::AgentEvent;

struct HeardEvent {
    tracer: AgentTracer<SdkTracer>,
    exporter: InMemorySpanExporter,
    _provider: SdkTracerProvider,
}

impl HeardEvent {
    fn new() -> Self {
        let exporter = InMemorySpanExporter::default();
        let provider = SdkTracerProvider::builder().with_simple_exporter(exporter.clone()).build();
        let tracer = AgentTracer::new(provider.tracer("test"), TraceOptions::default(), channel().0);
        Self { tracer, exporter, _provider: provider }
    }

    /// Hears an event of the run `r`, at the second that it says.
    fn hear(&mut self, second: u32, kind: Value) {
        let mut event = json!({
            "runId": "r", "eventIndex": second, "timestamp": format!("2026-11-25T00:00:{second:02}.000Z"),
            "session": "s", "harness": "default", "operationId": "op",
        });
        let fields = kind.as_object().unwrap().clone();
        event.as_object_mut().unwrap().extend(fields);
        let event: AgentEvent = serde_json::from_value(event).unwrap();
        self.tracer.hear(&event);
    }

    fn spans(&self) -> Vec<SpanData> {
        self.exporter.get_finished_spans().unwrap()
    }

    fn names(&self) -> Vec<String> {
        self.spans().iter().map(|span| span.name.to_string()).collect()
    }
}

fn tool_start(call: &str) -> Value {
    json!({"type": "tool_start", "toolName": "bash", "toolCallId": call})
}

fn tool_call(call: &str, duration_ms: u64) -> Value {
    let (name, is_error) = ("bash", false);
    json!({"type": "tool_call", "toolName": name, "toolCallId": call, "isError": is_error, "durationMs": duration_ms})
}

fn run_end(duration_ms: u64) -> Value {
    json!({"type": "run_end", "isError": false, "durationMs": duration_ms, "operationId": null, "session": null})
}

fn operation(kind: &str, duration_ms: u64) -> Value {
    json!({"type": "operation", "operationKind": kind, "isError": false, "durationMs": duration_ms})
}

#[test]
fn work_that_began_before_the_tracing_begins_with_its_first_event() {
    let mut heard = HeardEvent::new();
    heard.hear(5, json!({"type": "text_delta", "text": "no span begins with a piece of text"}));
    heard.hear(10, tool_call("1", 2_000));
    heard.hear(11, operation("shell", 4_000));
    heard.hear(12, run_end(5_000));
    assert_eq!(heard.names(), ["execute_tool bash", "shell", "invoke_agent"]);
    let spans = heard.spans();
    let took = |span: &SpanData| span.end_time.duration_since(span.start_time).unwrap();
    assert_eq!(took(&spans[0]), Duration::from_secs(2));
    assert_eq!((spans[0].start_time, spans[0].start_time), (spans[1].start_time, spans[2].start_time));
    assert_eq!(spans[0].parent_span_id, spans[1].span_context.span_id());
    assert_eq!(spans[1].parent_span_id, spans[2].span_context.span_id());
    let kinds =
        spans[1].attributes.iter().filter(|attribute| attribute.key.as_str() == "eyot.operation.kind");
    assert_eq!(kinds.count(), 1);
}

#[test]
fn the_end_of_a_run_ends_what_is_left_of_it_and_nothing_follows() {
    let mut heard = HeardEvent::new();
    heard.hear(1, json!({"type": "operation_start", "operationKind": "prompt"}));
    heard.hear(2, tool_start("1"));
    heard.hear(3, json!({"type": "task_start", "prompt": "p", "taskId": "t"}));
    heard.hear(4, run_end(3_000));
    assert_eq!(heard.spans().len(), 4);
    for span in heard.spans() {
        let is_run = span.attributes.iter().any(|attribute| attribute.key.as_str() == "eyot.run.id");
        assert_eq!(span.status, if is_run { Status::Unset } else { Status::error("") });
    }
    heard.hear(5, tool_call("1", 3_000));
    heard.hear(6, operation("prompt", 5_000));
    drop(heard.tracer);
    assert_eq!(heard.exporter.get_finished_spans().unwrap().len(), 4);
}

#[test]
fn the_end_of_an_operation_ends_what_is_left_of_it() {
    let mut heard = HeardEvent::new();
    heard.hear(1, json!({"type": "operation_start", "operationKind": "prompt"}));
    heard.hear(2, tool_start("1"));
    heard.hear(3, tool_start("1"));
    heard.hear(4, operation("prompt", 3_000));
    assert_eq!(heard.names(), ["execute_tool bash", "invoke_agent", "execute_tool bash"]);
}

#[test]
fn a_run_with_too_many_open_spans_loses_the_oldest() {
    let mut heard = HeardEvent::new();
    heard.hear(1, json!({"type": "operation_start", "operationKind": "prompt"}));
    for call in 0..MAX_OPEN_SPANS {
        heard.hear(2, tool_start(&call.to_string()));
    }
    let calls: Vec<String> = heard.spans().iter().map(|span| span.attributes[2].value.to_string()).collect();
    assert_eq!(calls, ["0", "1"], "the run and its operation go on");
    assert!(heard.spans().iter().all(|span| span.status == Status::error("")));
}

#[test]
fn events_that_say_nothing_of_where_they_happened_are_no_reason_to_panic() {
    let mut heard = HeardEvent::new();
    let kinds = [
        json!({"type": "run_start", "instanceId": "i", "agentName": "a", "startedAt": "", "payload": null}),
        tool_start("1"),
        tool_call("1", u64::MAX),
        json!({"type": "turn", "durationMs": u64::MAX, "isError": true}),
        json!({"type": "task_start", "prompt": "p"}),
        json!({"type": "task", "isError": true, "durationMs": u64::MAX}),
        json!({"type": "compaction", "messagesBefore": u64::MAX, "messagesAfter": 0, "durationMs": 0}),
        json!({"type": "operation_start", "operationKind": "prompt"}),
        operation("prompt", u64::MAX),
        run_end(u64::MAX),
    ];
    for mut event in kinds {
        for name in ["runId", "session", "harness", "operationId"] {
            event[name] = Value::Null;
        }
        (event["timestamp"], event["eventIndex"]) = (json!("never"), json!(0));
        let event: AgentEvent = serde_json::from_value(event).unwrap();
        heard.tracer.hear(&event);
    }
    drop(heard.tracer);
    let spans = heard.exporter.get_finished_spans().unwrap();
    assert_eq!(spans.iter().map(|span| span.name.as_ref()).collect::<Vec<_>>(), ["chat"]);
}
