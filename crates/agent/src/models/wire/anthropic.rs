//! Requests for Anthropic's Messages API.

use serde_json::{Map, Value, json};

use super::history::readable;
use super::{WireModel, arguments_object, has_images, joined_text, plain_id};
use crate::message::{AssistantMessage, ChatMessage, ContentBlock, ToolResultMessage};
use crate::model::{ModelRequest, ThinkingLevel, ToolDeclaration};
use crate::models::facts::ReasoningStyle;

/// The longest id of a tool call that the API takes.
const MOST_ID_BYTES: usize = 64;
/// The fewest tokens that a reasoning budget leaves for the answer.
const FEWEST_ANSWER_TOKENS: u32 = 1024;
/// The smallest budget for reasoning that the API takes.
const LEAST_BUDGET_TOKENS: u32 = 1024;

/// The text of an answer that has images alone.
const PLACEHOLDER: &str = "(see attached image)";

/// Returns the body of a request. The system prompt, the last tool and the last piece of the conversation are marked for
/// the vendor's cache, so that the next turn can read everything before them from the cache.
pub(in crate::models) fn body(model: &WireModel, request: &ModelRequest) -> Value {
    let reasoning = reasoning(model, request);
    let mut body = json!({
        "model": model.info.id,
        "messages": messages(model, request),
        "max_tokens": reasoning.max_tokens,
        "stream": true,
    });
    if let Some(prompt) = request.system_prompt.as_deref().filter(|prompt| !prompt.is_empty()) {
        body["system"] = json!([{"type": "text", "text": prompt, "cache_control": cache_mark()}]);
    }
    if !request.tools.is_empty() {
        body["tools"] = tools(&request.tools);
    }
    if let Some(thinking) = reasoning.thinking {
        body["thinking"] = thinking;
    }
    if let Some(effort) = reasoning.effort {
        body["output_config"] = json!({ "effort": effort });
    }
    body
}

/// Returns whether a header must request reasoning between tool calls. Models with adaptive reasoning do it by default.
pub(in crate::models) fn wants_interleaved_reasoning(model: &WireModel) -> bool {
    !matches!(model.style, Some(ReasoningStyle::Adaptive { .. }))
}

fn cache_mark() -> Value {
    json!({"type": "ephemeral"})
}

struct ReasoningFields {
    max_tokens: u32,
    thinking: Option<Value>,
    effort: Option<&'static str>,
}

fn reasoning(model: &WireModel, request: &ModelRequest) -> ReasoningFields {
    let max_tokens = model.max_tokens(request);
    if !model.info.reasoning {
        return ReasoningFields { max_tokens, thinking: None, effort: None };
    }
    let is_off = request.thinking == ThinkingLevel::Off;
    match model.style {
        // Reasoning can't be switched off, so the lowest effort is requested.
        Some(ReasoningStyle::Adaptive { can_stop: false, .. }) if is_off => {
            return ReasoningFields { max_tokens, thinking: None, effort: Some("low") };
        }
        _ if is_off => {
            return ReasoningFields { max_tokens, thinking: Some(json!({"type": "disabled"})), effort: None };
        }
        Some(ReasoningStyle::Adaptive { highest, .. }) => {
            let thinking = json!({"type": "adaptive", "display": "summarized"});
            let effort = effort(request.thinking, highest);
            return ReasoningFields { max_tokens, thinking: Some(thinking), effort: Some(effort) };
        }
        _ => {}
    }
    let (max_tokens, budget) = match budget(model, request) {
        (max_tokens, Some(budget)) => (max_tokens, budget),
        (max_tokens, None) => {
            return ReasoningFields { max_tokens, thinking: Some(json!({"type": "disabled"})), effort: None };
        }
    };
    let thinking = json!({"type": "enabled", "budget_tokens": budget, "display": "summarized"});
    ReasoningFields { max_tokens, thinking: Some(thinking), effort: None }
}

fn effort(level: ThinkingLevel, highest: Option<&'static str>) -> &'static str {
    match level {
        ThinkingLevel::Off | ThinkingLevel::Minimal | ThinkingLevel::Low => "low",
        ThinkingLevel::Medium => "medium",
        ThinkingLevel::High => "high",
        ThinkingLevel::XHigh => highest.unwrap_or("high"),
    }
}

/// The most tokens of the turn, and those of them that may be reasoning; `None`: too few are left for any. A number that the
/// caller gave is for the answer: the reasoning comes on top, as far as the model goes.
fn budget(model: &WireModel, request: &ModelRequest) -> (u32, Option<u32>) {
    let budget = match request.thinking {
        ThinkingLevel::Off | ThinkingLevel::Minimal => LEAST_BUDGET_TOKENS,
        ThinkingLevel::Low => 2048,
        ThinkingLevel::Medium => 8192,
        ThinkingLevel::High | ThinkingLevel::XHigh => 16_384,
    };
    let model_max = model.info.max_tokens;
    let max_tokens = request.max_tokens.map_or(model_max, |most| most.saturating_add(budget).min(model_max));
    if max_tokens > budget {
        return (max_tokens, Some(budget));
    }
    let left = max_tokens.saturating_sub(FEWEST_ANSWER_TOKENS);
    (max_tokens, Some(left).filter(|left| *left >= LEAST_BUDGET_TOKENS))
}

fn tools(tools: &[ToolDeclaration]) -> Value {
    let last = tools.len() - 1;
    let declared = tools.iter().enumerate().map(|(at, tool)| {
        let mut declared = json!({
            "name": tool.name,
            "description": tool.description,
            "eager_input_streaming": true,
            "input_schema": schema(&tool.parameters),
        });
        if at == last {
            declared["cache_control"] = cache_mark();
        }
        declared
    });
    declared.collect()
}

fn schema(parameters: &Value) -> Value {
    let mut schema = parameters.as_object().cloned().unwrap_or_default();
    schema.insert("type".to_owned(), json!("object"));
    schema.entry("properties").or_insert_with(|| Value::Object(Map::new()));
    schema.entry("required").or_insert_with(|| Value::Array(Vec::new()));
    Value::Object(schema)
}

fn messages(model: &WireModel, request: &ModelRequest) -> Vec<Value> {
    let mut messages: Vec<Value> = Vec::new();
    let mut are_results = false;
    let mut images = Vec::new();
    for message in readable(model, &request.messages, |id| plain_id(id, MOST_ID_BYTES)) {
        let is_result = matches!(message, ChatMessage::ToolResult(_));
        if !is_result {
            add_blocks(&mut messages, std::mem::take(&mut images));
        }
        let (role, blocks) = match &message {
            ChatMessage::User(said) => ("user", said.content.iter().filter_map(user_block).collect()),
            ChatMessage::Assistant(said) => ("assistant", assistant_blocks(said)),
            ChatMessage::ToolResult(result) => {
                images.extend(images_of_failure(result));
                ("user", vec![tool_result(result)])
            }
        };
        if blocks.is_empty() {
            continue;
        }
        // The answers of one turn's calls go into one message.
        if is_result && are_results {
            add_blocks(&mut messages, blocks);
        } else {
            messages.push(json!({"role": role, "content": blocks}));
        }
        are_results = is_result;
    }
    add_blocks(&mut messages, std::mem::take(&mut images));
    mark_last(&mut messages);
    messages
}

/// Moves these pieces behind the last message's own.
fn add_blocks(messages: &mut [Value], blocks: Vec<Value>) {
    if let Some(content) = messages.last_mut().and_then(|last| last["content"].as_array_mut()) {
        content.extend(blocks);
    }
}

/// The images of a failed call: the API takes none inside of its answer, and wants them behind all answers of the turn.
fn images_of_failure(result: &ToolResultMessage) -> impl Iterator<Item = Value> {
    let images = result.content.iter().filter(|block| matches!(block, ContentBlock::Image { .. }));
    images.filter(|_| result.is_error).filter_map(user_block)
}

/// Marks the last piece of the conversation for the cache, unless the model wrote it.
fn mark_last(messages: &mut [Value]) {
    let Some(last) = messages.last_mut().filter(|last| last["role"] == "user") else { return };
    if let Some(block) = last["content"].as_array_mut().and_then(|content| content.last_mut()) {
        block["cache_control"] = cache_mark();
    }
}

fn user_block(block: &ContentBlock) -> Option<Value> {
    match block {
        ContentBlock::Text { text, .. } => text_block(text),
        ContentBlock::Image { data, mime_type } => Some(image(data, mime_type)),
        ContentBlock::Thinking { .. } | ContentBlock::ToolCall(_) => None,
    }
}

fn assistant_blocks(said: &AssistantMessage) -> Vec<Value> {
    let blocks = said.content.iter().filter_map(|block| match block {
        ContentBlock::Text { text, .. } => text_block(text),
        ContentBlock::Thinking { thinking_signature, redacted: true, .. } => {
            Some(json!({"type": "redacted_thinking", "data": thinking_signature.as_deref()?}))
        }
        ContentBlock::Thinking { thinking, thinking_signature, .. } => Some(
            json!({"type": "thinking", "thinking": thinking, "signature": thinking_signature.as_deref()?}),
        ),
        ContentBlock::ToolCall(call) => Some(json!({
            "type": "tool_use",
            "id": call.id,
            "name": call.name,
            "input": arguments_object(&call.arguments),
        })),
        ContentBlock::Image { .. } => None,
    });
    blocks.collect()
}

/// Returns a piece of text, or `None` if it is blank, because the API refuses blank text.
fn text_block(text: &str) -> Option<Value> {
    (!text.trim().is_empty()).then(|| json!({"type": "text", "text": text}))
}

fn image(data: &str, mime_type: &str) -> Value {
    json!({"type": "image", "source": {"type": "base64", "media_type": mime_type, "data": data}})
}

fn tool_result(result: &ToolResultMessage) -> Value {
    json!({
        "type": "tool_result",
        "tool_use_id": result.tool_call_id,
        "content": result_content(result),
        "is_error": result.is_error,
    })
}

/// Returns the content of a tool's answer: a string for text alone, a list with at least one text if there are images.
fn result_content(result: &ToolResultMessage) -> Value {
    let content = &result.content;
    let text = joined_text(content);
    if !has_images(content) {
        return json!(text);
    }
    let has_text = !text.trim().is_empty();
    if result.is_error {
        return json!(if has_text { &text } else { PLACEHOLDER });
    }
    let placeholder = (!has_text).then(|| json!({"type": "text", "text": PLACEHOLDER}));
    placeholder.into_iter().chain(content.iter().filter_map(user_block)).collect()
}
