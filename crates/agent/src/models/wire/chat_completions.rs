//! Requests for OpenAI's chat completions, which most other servers also speak.

use serde_json::{Value, json};

use super::history::readable;
use super::{
    WireModel, arguments_object, data_url, has_images, id_parts, joined_text, plain_id, prompt_cache_key,
};
use crate::message::{AssistantMessage, ChatMessage, ContentBlock, ToolResultMessage};
use crate::model::{ModelRequest, ToolDeclaration};

/// The longest id of a tool call that OpenAI accepts.
const MOST_ID_BYTES: usize = 40;

/// The fields in which servers send reasoning. The name of the field is kept as the signature of the reasoning, which goes
/// back in the same field.
pub(in crate::models) const REASONING_FIELDS: [&str; 3] =
    ["reasoning_content", "reasoning", "reasoning_text"];

/// Returns the body of a request.
pub(in crate::models) fn body(model: &WireModel, request: &ModelRequest) -> Value {
    let most = if model.is_vendors { "max_completion_tokens" } else { "max_tokens" };
    let mut body = json!({
        "model": model.info.id,
        "messages": messages(model, request),
        "stream": true,
        "stream_options": {"include_usage": true},
    });
    body[most] = json!(model.max_tokens(request));
    if model.is_vendors {
        body["store"] = json!(false);
        if let Some(session_id) = &request.session_id {
            body["prompt_cache_key"] = json!(prompt_cache_key(session_id));
        }
    }
    if !request.tools.is_empty() {
        body["tools"] = request.tools.iter().map(tool).collect();
    }
    if let Some(effort) = model.effort(request) {
        body["reasoning_effort"] = json!(effort);
    }
    body
}

fn tool(tool: &ToolDeclaration) -> Value {
    json!({
        "type": "function",
        "function": {
            "name": tool.name,
            "description": tool.description,
            "parameters": tool.parameters,
            "strict": false,
        },
    })
}

fn messages(model: &WireModel, request: &ModelRequest) -> Vec<Value> {
    let mut messages = Vec::new();
    if let Some(prompt) = request.system_prompt.as_deref().filter(|prompt| !prompt.is_empty()) {
        let role = if model.info.reasoning && model.is_vendors { "developer" } else { "system" };
        messages.push(json!({"role": role, "content": prompt}));
    }
    let mut images = Vec::new();
    for message in readable(model, &request.messages, |id| call_id(id, model.is_vendors)) {
        match message {
            ChatMessage::ToolResult(result) => {
                images.extend(result.content.iter().filter_map(image));
                messages.push(tool_result(&result));
            }
            ChatMessage::User(said) => {
                messages.extend(image_message(&mut images));
                let content: Vec<_> = said.content.iter().filter_map(user_part).collect();
                if !content.is_empty() {
                    messages.push(json!({"role": "user", "content": content}));
                }
            }
            ChatMessage::Assistant(said) => {
                messages.extend(image_message(&mut images));
                messages.extend(assistant_message(&said));
            }
        }
    }
    messages.extend(image_message(&mut images));
    messages
}

fn call_id(id: &str, is_vendors: bool) -> String {
    match id_parts(id) {
        (call, Some(_)) => plain_id(call, MOST_ID_BYTES),
        (call, None) if is_vendors => call.chars().take(MOST_ID_BYTES).collect(),
        (call, None) => call.to_owned(),
    }
}

/// Returns a user message with the images of tools. Tool answers can only be text here, so the images follow all answers.
fn image_message(images: &mut Vec<Value>) -> Option<Value> {
    if images.is_empty() {
        return None;
    }
    let text = json!({"type": "text", "text": "Attached image(s) from tool result:"});
    let content: Vec<_> = std::iter::once(text).chain(images.drain(..)).collect();
    Some(json!({"role": "user", "content": content}))
}

fn user_part(block: &ContentBlock) -> Option<Value> {
    match block {
        ContentBlock::Text { text, .. } => Some(json!({"type": "text", "text": text})),
        _ => image(block),
    }
}

fn image(block: &ContentBlock) -> Option<Value> {
    match block {
        ContentBlock::Image { data, mime_type } => {
            Some(json!({"type": "image_url", "image_url": {"url": data_url(data, mime_type)}}))
        }
        _ => None,
    }
}

fn tool_result(result: &ToolResultMessage) -> Value {
    let text = joined_text(&result.content);
    let content = if text.is_empty() && has_images(&result.content) { "(see attached image)" } else { &text };
    json!({"role": "tool", "content": content, "tool_call_id": result.tool_call_id})
}

/// Returns a turn of the model, or `None` if nothing in it can be sent.
fn assistant_message(said: &AssistantMessage) -> Option<Value> {
    let texts = said.content.iter().filter_map(ContentBlock::as_text);
    let text = texts.filter(|text| !text.trim().is_empty()).collect::<String>();
    let calls: Vec<_> = said.tool_calls().map(tool_call).collect();
    if text.is_empty() && calls.is_empty() {
        return None;
    }
    let mut message = json!({"role": "assistant", "content": Value::Null});
    if !text.is_empty() {
        message["content"] = json!(text);
    }
    if let Some((field, reasoning)) = reasoning(said) {
        message[field] = json!(reasoning);
    }
    if !calls.is_empty() {
        message["tool_calls"] = json!(calls);
    }
    Some(message)
}

fn tool_call(call: &crate::message::ToolCall) -> Value {
    json!({
        "id": call.id,
        "type": "function",
        "function": {"name": call.name, "arguments": arguments_object(&call.arguments).to_string()},
    })
}

/// Returns the reasoning of the turn, and the field in which it came.
fn reasoning(said: &AssistantMessage) -> Option<(&'static str, String)> {
    let signed: Vec<_> = said
        .content
        .iter()
        .filter_map(|block| match block {
            ContentBlock::Thinking { thinking, thinking_signature, .. } if !thinking.trim().is_empty() => {
                Some((thinking.as_str(), thinking_signature.as_deref()?))
            }
            _ => None,
        })
        .collect();
    let (_, signature) = signed.first()?;
    let field = REASONING_FIELDS.into_iter().find(|field| field == signature)?;
    Some((field, signed.iter().map(|(thinking, _)| *thinking).collect::<Vec<_>>().join("\n")))
}
