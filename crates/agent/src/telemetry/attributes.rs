//! The names, kinds and attributes of spans.

use opentelemetry::trace::{SpanBuilder, SpanKind, Status};
use opentelemetry::{Array, KeyValue, StringValue, Value};
use serde_json::json;

use crate::event::OperationKind;
use crate::failure::AgentError;
use crate::message::StopReason;
use crate::model::{ModelApi, ModelError, ModelErrorKind, ModelInfo};
use crate::usage::TokenUsage;

const AGENT: &str = "gen_ai.agent.name";
const CONVERSATION: &str = "gen_ai.conversation.id";
pub(super) const ERROR: &str = "error.type";
const INPUT: &str = "gen_ai.input.messages";
const OUTPUT: &str = "gen_ai.output.messages";
const RUN: &str = "eyot.run.id";
const SESSION: &str = "eyot.session";
pub(super) const TOOL_ARGUMENTS: &str = "gen_ai.tool.call.arguments";
pub(super) const TOOL_RESULT: &str = "gen_ai.tool.call.result";

const OPERATION: &str = "gen_ai.operation.name";
const OPERATION_KIND: &str = "eyot.operation.kind";
const INVOKE_AGENT: &str = "invoke_agent";
const EXECUTE_TOOL: &str = "execute_tool";
const CHAT: &str = "chat";

/// The provider of a model that is not known.
const OTHER_PROVIDER: &str = "_OTHER";
/// The error of work whose end was not heard.
pub(super) const UNFINISHED: &str = "unfinished";
/// Names may be a model's, and a model may write anything.
const MAX_NAME_BYTES: usize = 256;
const MAX_CONTENT_BYTES: usize = 64 * 1024;

/// A span of a run or a task: an agent is given work.
pub(super) fn agent_span(agent: Option<&str>, run: Option<&str>) -> SpanBuilder {
    let mut attributes = vec![KeyValue::new(OPERATION, INVOKE_AGENT)];
    attributes.extend(optional([(AGENT, agent), (RUN, run)]));
    span(named(INVOKE_AGENT, agent), SpanKind::Internal, attributes)
}

/// A span of an operation. Its kind is not known where its beginning was not heard.
pub(super) fn operation_span(
    kind: Option<OperationKind>,
    agent: Option<&str>,
    session: Option<&str>,
    conversation: Option<&str>,
) -> SpanBuilder {
    let mut attributes: Vec<KeyValue> = kind.into_iter().flat_map(operation_attributes).collect();
    attributes.extend(optional([(AGENT, agent), (SESSION, session), (CONVERSATION, conversation)]));
    let name = kind.map_or_else(|| named(INVOKE_AGENT, agent), |kind| operation_name(kind, agent));
    span(name, SpanKind::Internal, attributes)
}

/// The name of an operation's span. Commands and summaries are not invocations of the agent.
pub(super) fn operation_name(kind: OperationKind, agent: Option<&str>) -> String {
    named(operation(kind), agent)
}

/// The attributes that say what kind of work an operation is.
pub(super) fn operation_attributes(kind: OperationKind) -> [KeyValue; 2] {
    [KeyValue::new(OPERATION, operation(kind)), KeyValue::new(OPERATION_KIND, kind.as_str())]
}

fn operation(kind: OperationKind) -> &'static str {
    match kind {
        OperationKind::Prompt | OperationKind::Skill | OperationKind::Task => INVOKE_AGENT,
        OperationKind::Shell | OperationKind::Compact => kind.as_str(),
    }
}

/// A span of a tool call.
pub(super) fn tool_span(tool: &str, call: &str) -> SpanBuilder {
    let attributes = vec![
        KeyValue::new(OPERATION, EXECUTE_TOOL),
        text("gen_ai.tool.name", tool),
        text("gen_ai.tool.call.id", call),
        KeyValue::new("gen_ai.tool.type", "function"),
    ];
    span(named(EXECUTE_TOOL, Some(tool)), SpanKind::Internal, attributes)
}

/// A span of a model's turn.
pub(super) fn chat_span(model: Option<&str>, known: &[ModelInfo], conversation: Option<&str>) -> SpanBuilder {
    let info = known.iter().find(|info| Some(info.id.as_str()) == model);
    let is_here = info.is_some_and(|info| info.api == ModelApi::InProcess);
    let provider = info.map_or(OTHER_PROVIDER, |info| info.provider.as_str());
    let mut attributes = vec![KeyValue::new(OPERATION, CHAT), text("gen_ai.provider.name", provider)];
    attributes.extend(optional([("gen_ai.request.model", model), (CONVERSATION, conversation)]));
    let kind = if is_here { SpanKind::Internal } else { SpanKind::Client };
    span(named(CHAT, model), kind, attributes)
}

/// The attributes of the tokens that were used. Those of caches are part of the input.
pub(super) fn usage_attributes(usage: &TokenUsage) -> Vec<KeyValue> {
    let input = usage.input.saturating_add(usage.cache_read).saturating_add(usage.cache_write);
    let mut attributes =
        vec![count("gen_ai.usage.input_tokens", input), count("gen_ai.usage.output_tokens", usage.output)];
    let caches = [
        ("gen_ai.usage.cache_read.input_tokens", usage.cache_read),
        ("gen_ai.usage.cache_creation.input_tokens", usage.cache_write),
    ];
    attributes.extend(caches.into_iter().filter(|(_, tokens)| *tokens > 0).map(|(name, n)| count(name, n)));
    attributes
}

/// The attribute of the reason for which a model stopped, in the words of the conventions.
pub(super) fn finish_reason(reason: StopReason) -> KeyValue {
    let reason = match reason {
        StopReason::Stop => "stop",
        StopReason::Length => "length",
        StopReason::ToolUse => "tool_call",
        StopReason::Refusal => "content_filter",
        StopReason::Error | StopReason::Aborted => "error",
    };
    let reasons = Array::String(vec![StringValue::from(reason)]);
    KeyValue::new("gen_ai.response.finish_reasons", Value::Array(reasons))
}

/// The kind of a failed turn, by the names that failures of operations have.
pub(super) fn turn_error(reason: Option<StopReason>) -> &'static str {
    match reason {
        Some(StopReason::Aborted) => AgentError::Aborted(String::new()).name(),
        Some(StopReason::Refusal) => AgentError::Refused(String::new()).name(),
        _ => {
            let source = ModelError::new(ModelErrorKind::Invalid, "");
            AgentError::Model { asked: String::new(), source }.name()
        }
    }
}

/// The status of a failure. Its text is content.
pub(super) fn failed(message: Option<&str>) -> Status {
    Status::error(message.map(|message| shortened(message, MAX_CONTENT_BYTES).to_owned()).unwrap_or_default())
}

/// An attribute of a name or an id.
pub(super) fn text(name: &'static str, value: &str) -> KeyValue {
    KeyValue::new(name, shortened(value, MAX_NAME_BYTES).to_owned())
}

/// An attribute of content.
pub(super) fn content(name: &'static str, value: &serde_json::Value) -> KeyValue {
    KeyValue::new(name, shortened(&value.to_string(), MAX_CONTENT_BYTES).to_owned())
}

/// An attribute of the messages to a model or an agent.
pub(super) fn input_message(value: &str) -> KeyValue {
    let parts = json!([{"type": "text", "content": shortened(value, MAX_CONTENT_BYTES)}]);
    KeyValue::new(INPUT, json!([{"role": "user", "parts": parts}]).to_string())
}

/// An attribute of the messages from a model or an agent.
pub(super) fn output_message(value: &str) -> KeyValue {
    let parts = json!([{"type": "text", "content": shortened(value, MAX_CONTENT_BYTES)}]);
    KeyValue::new(OUTPUT, json!([{"role": "assistant", "parts": parts, "finish_reason": "stop"}]).to_string())
}

/// The attribute of a number.
pub(super) fn count(name: &'static str, value: u64) -> KeyValue {
    KeyValue::new(name, i64::try_from(value).unwrap_or(i64::MAX))
}

fn optional<'a>(
    values: impl IntoIterator<Item = (&'static str, Option<&'a str>)>,
) -> impl Iterator<Item = KeyValue> {
    values.into_iter().filter_map(|(name, value)| Some(text(name, value?)))
}

fn span(name: String, kind: SpanKind, attributes: Vec<KeyValue>) -> SpanBuilder {
    SpanBuilder::from_name(name).with_kind(kind).with_attributes(attributes)
}

fn named(operation: &str, name: Option<&str>) -> String {
    match name {
        Some(name) => format!("{operation} {}", shortened(name, MAX_NAME_BYTES)),
        None => operation.to_owned(),
    }
}

fn shortened(text: &str, max_bytes: usize) -> &str {
    &text[..text.floor_char_boundary(max_bytes)]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_input_has_the_tokens_of_caches_in_it() {
        let usage =
            TokenUsage { input: 10, output: 5, cache_read: 3, cache_write: 2, ..TokenUsage::default() };
        let attributes = usage_attributes(&usage);
        let expected = [
            KeyValue::new("gen_ai.usage.input_tokens", 15),
            KeyValue::new("gen_ai.usage.output_tokens", 5),
            KeyValue::new("gen_ai.usage.cache_read.input_tokens", 3),
            KeyValue::new("gen_ai.usage.cache_creation.input_tokens", 2),
        ];
        assert_eq!(attributes, expected);
    }

    #[test]
    fn a_name_is_cut_between_characters() {
        let name = "ä".repeat(MAX_NAME_BYTES);
        assert_eq!(text(AGENT, &name).value.as_str().len(), MAX_NAME_BYTES);
        assert_eq!(named("execute_tool", Some(&format!("a{name}"))).len(), "execute_tool ".len() + 255);
    }

    #[test]
    fn a_failed_turn_has_the_name_of_its_failure() {
        assert_eq!(turn_error(Some(StopReason::Aborted)), "AbortError");
        assert_eq!(turn_error(Some(StopReason::Refusal)), "RefusalError");
        assert_eq!(turn_error(Some(StopReason::Error)), "ModelError");
        assert_eq!(turn_error(None), "ModelError");
    }
}
