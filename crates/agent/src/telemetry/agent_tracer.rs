//! Turns the events of agents into spans.
//!
//! A run holds its operations, an operation its turns, tool calls and tasks, and a task the operation of its session. Runs
//! and operations whose beginning was not heard begin with the first event that needs them: those of a run that goes on
//! after its process was killed, and those that began before the tracing.

use std::collections::VecDeque;
use std::sync::mpsc::Sender;
use std::time::SystemTime;

use opentelemetry::trace::{Span, SpanBuilder, TraceContextExt, Tracer};
use opentelemetry::{Context, KeyValue};
use serde_json::Value;

use super::TraceOptions;
use super::attributes::{self, UNFINISHED};
use super::open_spans::{MAX_OPEN_SPANS, OpenSpan, OpenSpans, SpanKey};
use super::span_time::{start_of, time_of};
use crate::event::{AgentEvent, AgentEventKind, OperationKind};
use crate::harness::DEFAULT_NAME;
use crate::message::StopReason;
use crate::usage::TokenUsage;

/// The number of runs that are known to be over. Work that is told of after the end of its run has no span.
const MAX_ENDED_RUNS: usize = 1_000;

/// Makes spans of events.
pub(super) struct AgentTracer<T: Tracer> {
    tracer: T,
    options: TraceOptions,
    open: OpenSpans<T::Span>,
    ended_runs: VecDeque<String>,
    /// Dropped last, when all spans are with their provider.
    _end: Sender<()>,
}

/// The end of a span.
struct SpanEnd<'a> {
    time: SystemTime,
    /// The kind of the failure, and its text where it has one.
    failure: Option<(&'a str, Option<&'a str>)>,
}

/// The answer of a model about a turn.
struct TurnOutcome<'a> {
    model: Option<&'a str>,
    usage: Option<&'a TokenUsage>,
    stop_reason: Option<StopReason>,
    /// The failure's text, if it failed.
    failure: Option<Option<&'a str>>,
}

impl<T: Tracer> AgentTracer<T> {
    pub(super) fn new(tracer: T, options: TraceOptions, end: Sender<()>) -> Self {
        let open = OpenSpans::new(MAX_OPEN_SPANS);
        Self { tracer, options, open, ended_runs: VecDeque::new(), _end: end }
    }

    /// Takes the next event.
    pub(super) fn hear(&mut self, event: &AgentEvent) {
        if is_left_out(&event.kind) || self.is_over(event) {
            return;
        }
        self.touch(event);
        match &event.kind {
            AgentEventKind::RunStart { agent_name, instance_id, payload, .. } => {
                self.begin_run(event, Some((agent_name, instance_id)));
                self.record(run_key(event), || attributes::input_message(&payload.to_string()));
            }
            AgentEventKind::OperationStart { operation_kind } => {
                self.begin_operation(event, Some(*operation_kind));
            }
            AgentEventKind::ToolStart { tool_name, tool_call_id, args } => {
                self.begin_tool(event, tool_name, tool_call_id);
                let key = tool_key(event, tool_call_id);
                self.record(key, || attributes::content(attributes::TOOL_ARGUMENTS, args));
            }
            AgentEventKind::ToolCall { tool_name, tool_call_id, is_error, result, .. } => {
                self.end_tool(event, tool_name, tool_call_id, *is_error, result);
            }
            AgentEventKind::Turn { model, usage, stop_reason, is_error, error, .. } => {
                let outcome = TurnOutcome {
                    model: model.as_deref(),
                    usage: usage.as_ref(),
                    stop_reason: *stop_reason,
                    failure: is_error.then_some(error.as_deref()),
                };
                self.add_turn(event, &outcome);
            }
            AgentEventKind::TaskStart { prompt, role, .. } => {
                self.begin_task(event, role.as_deref());
                self.record(task_key(event), || attributes::input_message(prompt));
            }
            AgentEventKind::Task { is_error, result, .. } => {
                self.end_task(event, *is_error, result.as_deref());
            }
            AgentEventKind::Operation { operation_kind, error, is_error, result, usage, .. } => {
                let failure = error.as_ref().map(|error| (error.name.as_str(), Some(error.message.as_str())));
                let failure = failure.or_else(|| is_error.then_some(("operation_error", None)));
                self.end_operation(event, *operation_kind, failure, result, usage.as_ref());
            }
            AgentEventKind::Compaction { messages_before, messages_after, .. } => {
                self.note_compaction(event, *messages_before, *messages_after);
            }
            AgentEventKind::RunEnd { error, is_error, result, .. } => {
                let failure = error.as_ref().map(|error| (error.name.as_str(), Some(error.message.as_str())));
                self.end_run(event, failure.or_else(|| is_error.then_some(("run_error", None))), result);
            }
            _ => {}
        }
    }

    /// Returns whether the run of an event has ended.
    fn is_over(&self, event: &AgentEvent) -> bool {
        let closed = event.run_id.as_ref().filter(|_| run_key(event).is_some_and(|run| !self.open.has(&run)));
        closed.is_some_and(|run| self.ended_runs.contains(run))
    }

    /// Notes that everything that an event belongs to goes on.
    fn touch(&mut self, event: &AgentEvent) {
        for key in [run_key(event), operation_key(event), task_key(event)].into_iter().flatten() {
            self.open.touch(&key, time_of(event));
        }
    }

    /// Begins the run of an event, of which the agent and its instance are known if its beginning was heard.
    fn begin_run(&mut self, event: &AgentEvent, start: Option<(&str, &str)>) {
        let Some(key) = run_key(event) else { return };
        if self.open.has(&key) {
            return;
        }
        let agent = start.map(|(agent, _)| agent);
        let mut span = self.begin(attributes::agent_span(agent, event.run_id.as_deref()), event, None);
        (span.agent, span.operation) = (agent.map(str::to_owned), None);
        span.conversation = start.map(|(_, instance)| instance.to_owned());
        self.add(key, span);
    }

    /// Begins the operation of an event, whose kind is known if its beginning was heard.
    fn begin_operation(&mut self, event: &AgentEvent, kind: Option<OperationKind>) {
        let Some(key) = operation_key(event) else { return };
        if self.open.has(&key) {
            return;
        }
        self.begin_run(event, None);
        let parent = self.parent_of_operation(event);
        let agent = self.agent_of(event, parent.as_ref());
        let conversation = self.conversation_of(event);
        let builder = attributes::operation_span(
            kind,
            agent.as_deref(),
            event.session.as_deref(),
            conversation.as_deref(),
        );
        let mut span = self.begin(builder, event, parent.as_ref());
        span.conversation = conversation;
        (span.agent, span.is_named) = (agent, kind.is_some());
        self.add(key, span);
    }

    /// The task that an operation is done for, or its run.
    fn parent_of_operation(&self, event: &AgentEvent) -> Option<SpanKey> {
        // An event about a task is told by the session that gave it.
        let is_of_task = event.parent_session.is_some() && event.parent_session != event.session;
        let task = task_key(event).filter(|key| is_of_task && self.open.has(key));
        task.or_else(|| run_key(event))
    }

    /// The agent of an operation: that of its task, the harness where it has a name of its own, or that of the run.
    fn agent_of(&self, event: &AgentEvent, parent: Option<&SpanKey>) -> Option<String> {
        let above = parent.and_then(|key| self.open.get(key)).and_then(|span| span.agent.clone());
        if let Some(SpanKey::Task(_)) = parent {
            return above;
        }
        event.harness.clone().filter(|name| name != DEFAULT_NAME).or(above)
    }

    /// The conversation of a session. Outside of a run nothing tells two sessions of one name apart.
    fn conversation_of(&self, event: &AgentEvent) -> Option<String> {
        let run = self.open.get(&run_key(event)?)?;
        let (instance, harness) = (run.conversation.as_deref()?, event.harness.as_deref()?);
        Some(format!("{instance}::{harness}::{}", event.session.as_deref()?))
    }

    fn begin_tool(&mut self, event: &AgentEvent, tool: &str, call: &str) {
        let (Some(key), Some(operation)) = (tool_key(event, call), operation_key(event)) else { return };
        self.begin_operation(event, None);
        if let Some(open) = self.open.get_mut(&operation) {
            open.answered.get_or_insert(start_of(event));
        }
        let span = self.begin(attributes::tool_span(tool, call), event, Some(&operation));
        self.add(key, span);
    }

    fn end_tool(&mut self, event: &AgentEvent, tool: &str, call: &str, is_error: bool, result: &Value) {
        let key = tool_key(event, call);
        if key.as_ref().is_none_or(|key| !self.open.has(key)) {
            self.begin_tool(event, tool, call);
        }
        self.record(key.clone(), || attributes::content(attributes::TOOL_RESULT, result));
        self.end(key, event, is_error.then_some(("tool_error", None)));
    }

    /// Adds the span of a turn. Turns are told of when they have ended, tools included; the model had answered before.
    fn add_turn(&mut self, event: &AgentEvent, outcome: &TurnOutcome<'_>) {
        self.begin_operation(event, None);
        let operation = operation_key(event);
        let open = operation.as_ref().and_then(|key| self.open.get_mut(key));
        let (answered, conversation) =
            open.map_or((None, None), |open| (open.answered.take(), open.conversation.clone()));
        let builder = attributes::chat_span(outcome.model, &self.options.models, conversation.as_deref());
        let mut span = self.begin(builder, event, operation.as_ref());
        span.span.set_attributes(outcome.stop_reason.map(attributes::finish_reason));
        span.span.set_attributes(outcome.usage.into_iter().flat_map(attributes::usage_attributes));
        let failure = outcome.failure.map(|text| (attributes::turn_error(outcome.stop_reason), text));
        self.close(span, SpanEnd { time: answered.unwrap_or_else(|| time_of(event)), failure });
    }

    fn begin_task(&mut self, event: &AgentEvent, role: Option<&str>) {
        let Some(key) = task_key(event) else { return };
        self.begin_operation(event, None);
        let operation = operation_key(event);
        let giver = operation.as_ref().and_then(|key| self.open.get(key));
        let agent = role.map(str::to_owned).or_else(|| giver.and_then(|giver| giver.agent.clone()));
        let mut span = self.begin(attributes::agent_span(agent.as_deref(), None), event, operation.as_ref());
        span.agent = agent;
        self.add(key, span);
    }

    fn end_task(&mut self, event: &AgentEvent, is_error: bool, result: Option<&str>) {
        if task_key(event).is_none_or(|key| !self.open.has(&key)) {
            self.begin_task(event, None);
        }
        if let Some(result) = result.filter(|_| !is_error) {
            self.record(task_key(event), || attributes::output_message(result));
        }
        self.end(task_key(event), event, is_error.then_some(("task_error", result)));
    }

    fn end_operation(
        &mut self,
        event: &AgentEvent,
        kind: OperationKind,
        failure: Option<(&str, Option<&str>)>,
        result: &Value,
        usage: Option<&TokenUsage>,
    ) {
        self.begin_operation(event, Some(kind));
        let Some(key) = operation_key(event) else { return };
        if let Some(open) = self.open.get_mut(&key) {
            open.span.set_attributes(usage.into_iter().flat_map(attributes::usage_attributes));
            if !open.is_named {
                open.span.update_name(attributes::operation_name(kind, open.agent.as_deref()));
                open.span.set_attributes(attributes::operation_attributes(kind));
            }
        }
        if let Some(answer) = result.get("text").or_else(|| result.get("data")) {
            self.record(Some(key.clone()), || attributes::output_message(&text_of(answer)));
        }
        self.end(Some(key), event, failure);
        let operation = event.operation_id.as_deref();
        let left = self.open.remove_all(|open| open.operation.as_deref() == operation);
        self.close_unfinished(left, time_of(event));
    }

    fn note_compaction(&mut self, event: &AgentEvent, messages_before: u64, messages_after: u64) {
        let Some(open) = operation_key(event).and_then(|key| self.open.get_mut(&key)) else { return };
        let counts = vec![
            attributes::count("eyot.compaction.messages_before", messages_before),
            attributes::count("eyot.compaction.messages_after", messages_after),
        ];
        open.span.add_event_with_timestamp("eyot.compaction", time_of(event), counts);
    }

    /// Ends a run, and everything that is left of it.
    fn end_run(&mut self, event: &AgentEvent, failure: Option<(&str, Option<&str>)>, result: &Value) {
        let Some(run) = event.run_id.clone() else { return };
        self.begin_run(event, None);
        let root = run_key(event);
        if failure.is_none() {
            self.record(root.clone(), || attributes::output_message(&text_of(result)));
        }
        self.end(root, event, failure);
        let left = self.open.remove_all(|open| open.run.as_ref() == Some(&run));
        self.close_unfinished(left, time_of(event));
        if self.ended_runs.len() == MAX_ENDED_RUNS {
            self.ended_runs.pop_front();
        }
        self.ended_runs.push_back(run);
    }

    /// Begins a span below another one.
    fn begin(&self, builder: SpanBuilder, event: &AgentEvent, parent: Option<&SpanKey>) -> OpenSpan<T::Span> {
        let parent = parent.and_then(|key| self.open.get(key));
        // Not that of the thread: a span of the host's own has nothing to do with it.
        let context = parent.map_or_else(Context::new, |parent| {
            Context::new().with_remote_span_context(parent.span.span_context().clone())
        });
        let started = start_of(event);
        let span = self.tracer.build_with_context(builder.with_start_time(started), &context);
        OpenSpan::new(span, started, event)
    }

    fn add(&mut self, key: SpanKey, span: OpenSpan<T::Span>) {
        if let Some((left, heard)) = self.open.insert(key, span) {
            self.close_unfinished(vec![left], heard);
        }
    }

    /// Adds content to a span, where it is asked for.
    fn record(&mut self, key: Option<SpanKey>, attribute: impl FnOnce() -> KeyValue) {
        let open = key.filter(|_| self.options.records_content).and_then(|key| self.open.get_mut(&key));
        if let Some(open) = open {
            open.span.set_attribute(attribute());
        }
    }

    fn end(&mut self, key: Option<SpanKey>, event: &AgentEvent, failure: Option<(&str, Option<&str>)>) {
        if let Some(open) = key.and_then(|key| self.open.remove(&key)) {
            self.close(open, SpanEnd { time: time_of(event), failure });
        }
    }

    fn close(&self, mut open: OpenSpan<T::Span>, end: SpanEnd<'_>) {
        if let Some((kind, message)) = end.failure {
            open.span.set_attribute(attributes::text(attributes::ERROR, kind));
            open.span.set_status(attributes::failed(message.filter(|_| self.options.records_content)));
        }
        open.span.end_with_timestamp(end.time.max(open.started));
    }

    fn close_unfinished(&self, left: Vec<OpenSpan<T::Span>>, time: SystemTime) {
        for open in left {
            self.close(open, SpanEnd { time, failure: Some((UNFINISHED, None)) });
        }
    }
}

impl<T: Tracer> Drop for AgentTracer<T> {
    fn drop(&mut self) {
        let left = self.open.remove_all(|_| true);
        self.close_unfinished(left, SystemTime::now());
    }
}

/// Returns whether no span depends on it. Most events are such pieces of an answer.
fn is_left_out(kind: &AgentEventKind) -> bool {
    matches!(
        kind,
        AgentEventKind::TextDelta { .. }
            | AgentEventKind::ThinkingStart
            | AgentEventKind::ThinkingDelta { .. }
            | AgentEventKind::ThinkingEnd { .. }
            | AgentEventKind::CompactionStart { .. }
            | AgentEventKind::Log { .. }
            | AgentEventKind::Idle
    )
}

/// A text as it is, and every other value as JSON.
fn text_of(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

fn run_key(event: &AgentEvent) -> Option<SpanKey> {
    event.run_id.clone().map(SpanKey::Run)
}

fn operation_key(event: &AgentEvent) -> Option<SpanKey> {
    event.operation_id.clone().map(SpanKey::Operation)
}

fn task_key(event: &AgentEvent) -> Option<SpanKey> {
    event.task_id.clone().map(SpanKey::Task)
}

fn tool_key(event: &AgentEvent, call: &str) -> Option<SpanKey> {
    Some(SpanKey::Tool { operation: event.operation_id.clone()?, call: call.to_owned() })
}
