//! Comparison of the bodies with those that pi-ai 0.76.0 sends for the same conversation.
//!
//! `tests/models/pi_bodies.json` has the bodies of pi-ai's `streamSimple`, recorded by a server. Each name gives the model,
//! whether the conversation was held with it or with another model, and the reasoning effort.

use std::collections::HashSet;

use serde_json::{Value, json};

use super::WireModel;
use crate::message::{
    AssistantMessage, ChatMessage, ContentBlock, StopReason, ToolCall, ToolResultMessage, UserMessage,
};
use crate::model::{ModelApi, ModelInfo, ModelRequest, ThinkingLevel, ToolDeclaration};
use crate::models::facts::ReasoningStyle;
use crate::models::http_api::HttpApi;
use crate::usage::{TokenPrices, TokenUsage};

const PI_BODIES: &str = include_str!("../../../tests/models/pi_bodies.json");

fn model(name: &str) -> WireModel {
    let effort = ReasoningStyle::Effort { off: None, has_highest: false };
    let (api, style, is_vendors) = match name {
        "anthropic" => (ModelApi::AnthropicMessages, ReasoningStyle::Budget, true),
        "adaptive" => (
            ModelApi::AnthropicMessages,
            ReasoningStyle::Adaptive { highest: Some("max"), can_stop: true },
            true,
        ),
        "completions" => (ModelApi::OpenaiCompletions, effort, true),
        "local" => (ModelApi::OpenaiCompletions, effort, false),
        "responses" => {
            let style = ReasoningStyle::Effort { off: Some("none"), has_highest: false };
            (ModelApi::OpenaiResponses, style, true)
        }
        other => panic!("there is no model {other}"),
    };
    let info = ModelInfo {
        id: "m".to_owned(),
        provider: "p".to_owned(),
        api,
        context_window: 0,
        max_tokens: 32_000,
        reasoning: true,
        images: true,
        prices: TokenPrices::default(),
    };
    WireModel { info, api: HttpApi::of(api).unwrap(), style: Some(style), is_vendors, store: false }
}

fn request(model: &WireModel, is_own: bool, thinking: &str) -> ModelRequest {
    let tool = |name: &str, description: &str, properties: Value, required: Value| ToolDeclaration {
        name: name.to_owned(),
        description: description.to_owned(),
        parameters: json!({"type": "object", "properties": properties, "required": required}),
    };
    ModelRequest {
        system_prompt: Some("You help.".to_owned()),
        messages: conversation(model, is_own),
        tools: vec![
            tool("read", "Read a file.", json!({"path": {"type": "string"}}), json!(["path"])),
            tool("list", "List.", json!({}), json!([])),
        ],
        max_tokens: Some(5000),
        thinking: serde_json::from_value(json!(thinking)).unwrap(),
        session_id: Some("session-1".to_owned()),
    }
}

fn conversation(model: &WireModel, is_own: bool) -> Vec<ChatMessage> {
    let is_responses = model.info.api == ModelApi::OpenaiResponses;
    let signature = match model.info.api {
        ModelApi::OpenaiCompletions => "reasoning_content",
        ModelApi::OpenaiResponses => {
            r#"{"id":"rs_0","type":"reasoning","summary":[],"encrypted_content":"sig-1"}"#
        }
        _ => "sig-1",
    };
    let id = |number: u32| {
        if is_responses && is_own { format!("call_{number}|fc_{number}") } else { format!("call_{number}") }
    };
    let call = |number: u32, path: &str| {
        ContentBlock::ToolCall(ToolCall {
            id: id(number),
            name: "read".to_owned(),
            arguments: json!({ "path": path }),
        })
    };
    let image = ContentBlock::Image { data: "aGk=".to_owned(), mime_type: "image/png".to_owned() };
    let thinking = ContentBlock::Thinking {
        thinking: "hm".to_owned(),
        thinking_signature: Some(signature.to_owned()),
        redacted: false,
    };
    let user = |content| ChatMessage::User(UserMessage { content, timestamp: 1 });
    let turn = |content| {
        let (api, provider, id) =
            if is_own { (model.info.api.as_str(), "p", "m") } else { ("other-api", "other", "other") };
        ChatMessage::Assistant(AssistantMessage {
            content,
            api: api.to_owned(),
            provider: provider.to_owned(),
            model: id.to_owned(),
            usage: TokenUsage::default(),
            stop_reason: StopReason::Stop,
            error_message: None,
            timestamp: 2,
        })
    };
    let result = |number, content, is_error| {
        ChatMessage::ToolResult(ToolResultMessage {
            tool_call_id: id(number),
            tool_name: "read".to_owned(),
            content,
            details: Value::Null,
            is_error,
            timestamp: 3,
        })
    };
    let text = ContentBlock::text;
    vec![
        user(vec![text("look"), image.clone()]),
        turn(vec![thinking, text("I look."), call(1, "a.png"), call(2, "b.txt")]),
        result(1, vec![text("an image"), image], false),
        result(2, vec![text("no such file")], true),
        user(vec![text("go on")]),
        turn(vec![text("done")]),
        user(vec![text("thanks")]),
    ]
}

/// Returns the body of pi-ai with the intended differences applied.
fn with_differences(name: &str, mut body: Value, thinking: ThinkingLevel) -> Value {
    if name == "local" {
        body["messages"][0]["role"] = json!("system");
        body["max_tokens"] = body["max_completion_tokens"].take();
        let fields = body.as_object_mut().unwrap();
        fields.retain(|field, _| field != "store" && field != "max_completion_tokens");
    }
    if name == "responses" && thinking == ThinkingLevel::Off {
        body["include"] = json!(["reasoning.encrypted_content"]);
    }
    let mut ids = HashSet::new();
    for item in body["input"].as_array_mut().into_iter().flatten() {
        if item["type"] == "message" && !ids.insert(item["id"].clone()) {
            item["id"] = json!(format!("{}_1", item["id"].as_str().unwrap()));
        }
    }
    body
}

#[test]
fn bodies_are_those_of_pi_ai_but_for_the_listed_differences() {
    let bodies: serde_json::Map<String, Value> = serde_json::from_str(PI_BODIES).unwrap();
    assert!(bodies.len() > 10);
    for (name, body) in bodies {
        let parts: Vec<&str> = name.split(' ').collect();
        let [model_name, whose, thinking] = parts[..] else { panic!("{name}") };
        let model = model(model_name);
        let request = request(&model, whose == "own", thinking);
        let expected = with_differences(model_name, body, request.thinking);
        assert_same(&name, &super::body(&model, &request), &expected);
    }
}

fn assert_same(name: &str, ours: &Value, expected: &Value) {
    for (field, value) in expected.as_object().unwrap() {
        assert_eq!(&ours[field], value, "{name}: {field}");
    }
    let extra: Vec<_> =
        ours.as_object().unwrap().keys().filter(|field| expected.get(field).is_none()).collect();
    assert!(extra.is_empty(), "{name} has {extra:?} too");
}
