//! Requests for OpenAI's responses API.

use std::collections::HashSet;

use serde_json::{Value, json};

use super::history::{is_same_model, readable};
use super::{
    WireModel, arguments_object, data_url, has_images, id_parts, joined_text, plain_id, prompt_cache_key,
};
use crate::message::{AssistantMessage, ChatMessage, ContentBlock, ToolCall, ToolResultMessage};
use crate::model::{ModelRequest, ToolDeclaration};

/// The longest id of a tool call that the API takes.
const MOST_ID_BYTES: usize = 64;

/// Returns the body of a request.
pub(in crate::models) fn body(model: &WireModel, request: &ModelRequest) -> Value {
    let mut body = json!({
        "model": model.info.id,
        "input": input(model, request),
        "stream": true,
        "store": model.store,
        "max_output_tokens": model.max_tokens(request),
    });
    if let Some(session_id) = &request.session_id {
        body["prompt_cache_key"] = json!(prompt_cache_key(session_id));
    }
    if !request.tools.is_empty() {
        body["tools"] = request.tools.iter().map(tool).collect();
    }
    if !model.info.reasoning {
        return body;
    }
    body["include"] = json!(["reasoning.encrypted_content"]);
    match model.effort(request) {
        Some("none") => body["reasoning"] = json!({"effort": "none"}),
        Some(effort) => body["reasoning"] = json!({"effort": effort, "summary": "auto"}),
        None => {}
    }
    body
}

fn tool(tool: &ToolDeclaration) -> Value {
    json!({
        "type": "function",
        "name": tool.name,
        "description": tool.description,
        "parameters": tool.parameters,
        "strict": false,
    })
}

fn input(model: &WireModel, request: &ModelRequest) -> Vec<Value> {
    let mut items = Vec::new();
    if let Some(prompt) = request.system_prompt.as_deref().filter(|prompt| !prompt.is_empty()) {
        let role = if model.info.reasoning { "developer" } else { "system" };
        items.push(json!({"role": role, "content": prompt}));
    }
    let messages = readable(model, &request.messages, call_id);
    let mut ids = HashSet::new();
    for (number, message) in messages.iter().enumerate() {
        match message {
            ChatMessage::User(said) => {
                let content: Vec<_> = said.content.iter().filter_map(part).collect();
                if !content.is_empty() {
                    items.push(json!({"role": "user", "content": content}));
                }
            }
            ChatMessage::Assistant(said) => {
                let turn = OutputTurn::new(model, said, number);
                items.extend(said.content.iter().filter_map(|block| turn.item(block, &mut ids)));
            }
            ChatMessage::ToolResult(result) => items.push(tool_result(result)),
        }
    }
    items
}

/// A turn of a model, as items of the input.
struct OutputTurn {
    /// The number of its message.
    number: usize,
    /// The model is the one that is asked.
    is_own: bool,
    /// Set if the reasoning goes back. The ids of the other items belong to it, and are sent only with it.
    reasons: bool,
    is_stored: bool,
}

impl OutputTurn {
    fn new(model: &WireModel, said: &AssistantMessage, number: usize) -> Self {
        let is_own = is_same_model(model, said);
        Self { number, is_own, reasons: is_own && has_reasoning(said, model.store), is_stored: model.store }
    }

    fn item(&self, block: &ContentBlock, ids: &mut HashSet<String>) -> Option<Value> {
        match block {
            ContentBlock::Thinking { thinking_signature, .. } => {
                reasoning_item(thinking_signature.as_deref()?, self.is_stored)
            }
            ContentBlock::Text { text, text_signature } => {
                Some(self.message(text, text_signature.as_deref(), ids))
            }
            ContentBlock::ToolCall(call) => Some(function_call(call, self.reasons)),
            ContentBlock::Image { .. } => None,
        }
    }

    fn message(&self, text: &str, signature: Option<&str>, ids: &mut HashSet<String>) -> Value {
        let signature: Value =
            signature.and_then(|signature| serde_json::from_str(signature).ok()).unwrap_or_default();
        let own_id = signature["id"].as_str().filter(|id| self.reasons && id.len() <= MOST_ID_BYTES);
        let mut message = json!({
            "type": "message",
            "role": "assistant",
            "content": [{"type": "output_text", "text": text, "annotations": []}],
            "status": "completed",
            "id": self.new_id(own_id, ids),
        });
        if let Some(phase) = signature["phase"].as_str().filter(|_| self.is_own) {
            message["phase"] = json!(phase);
        }
        message
    }

    /// An id that no text has yet: the API refuses two items of one id.
    fn new_id(&self, own_id: Option<&str>, ids: &mut HashSet<String>) -> String {
        let number = self.number;
        let others = (1..).map(|text| format!("msg_{number}_{text}"));
        let first = own_id.map(str::to_owned);
        let mut all = first.into_iter().chain([format!("msg_{number}")]).chain(others);
        all.find(|id| ids.insert(id.clone())).unwrap_or_default()
    }
}

fn call_id(id: &str) -> String {
    plain_id(id_parts(id).0, MOST_ID_BYTES).trim_end_matches('_').to_owned()
}

fn part(block: &ContentBlock) -> Option<Value> {
    match block {
        ContentBlock::Text { text, .. } => Some(json!({"type": "input_text", "text": text})),
        ContentBlock::Image { data, mime_type } => {
            Some(json!({"type": "input_image", "detail": "auto", "image_url": data_url(data, mime_type)}))
        }
        ContentBlock::Thinking { .. } | ContentBlock::ToolCall(_) => None,
    }
}

/// Returns the reasoning as it came, or `None` if the API would refuse it because it was neither stored nor encrypted.
fn reasoning_item(signature: &str, is_stored: bool) -> Option<Value> {
    let item: Value = serde_json::from_str(signature).ok()?;
    let is_known = is_stored || item["encrypted_content"].is_string();
    (item["type"] == "reasoning" && is_known).then_some(item)
}

/// Returns whether the turn's reasoning is sent back.
fn has_reasoning(said: &AssistantMessage, is_stored: bool) -> bool {
    said.content.iter().any(|block| match block {
        ContentBlock::Thinking { thinking_signature: Some(signature), .. } => {
            reasoning_item(signature, is_stored).is_some()
        }
        _ => false,
    })
}

/// Returns a tool call. The id of its item belongs to the reasoning before it, and is sent only with that reasoning.
fn function_call(call: &ToolCall, reasons: bool) -> Value {
    let (call_id, item_id) = id_parts(&call.id);
    let mut item = json!({
        "type": "function_call",
        "call_id": call_id,
        "name": call.name,
        "arguments": arguments_object(&call.arguments).to_string(),
    });
    if let Some(item_id) = item_id.filter(|_| reasons) {
        item["id"] = json!(item_id);
    }
    item
}

fn tool_result(result: &ToolResultMessage) -> Value {
    let (call_id, _) = id_parts(&result.tool_call_id);
    json!({"type": "function_call_output", "call_id": call_id, "output": result_output(&result.content)})
}

/// Returns the output of a tool: a string for text alone, a list if there are images.
fn result_output(content: &[ContentBlock]) -> Value {
    let text = joined_text(content);
    if !has_images(content) {
        return json!(text);
    }
    let text = (!text.is_empty()).then(|| json!({"type": "input_text", "text": text}));
    let images = content.iter().filter(|block| matches!(block, ContentBlock::Image { .. })).filter_map(part);
    text.into_iter().chain(images).collect()
}
