//! Turns that an API would refuse, or take for something else, if they went back as they came.

use serde_json::{Value, json};

use super::{WireModel, body};
use crate::message::{AssistantMessage, ChatMessage, ContentBlock, StopReason, ToolCall, ToolResultMessage};
use crate::model::{ModelApi, ModelInfo, ModelRequest, ThinkingLevel};
use crate::models::facts::ReasoningStyle;
use crate::models::http_api::HttpApi;
use crate::usage::{TokenPrices, TokenUsage};

const APIS: [ModelApi; 3] =
    [ModelApi::AnthropicMessages, ModelApi::OpenaiCompletions, ModelApi::OpenaiResponses];

fn model(api: ModelApi, max_tokens: u32) -> WireModel {
    let info = ModelInfo {
        id: "m".to_owned(),
        provider: "p".to_owned(),
        api,
        context_window: 0,
        max_tokens,
        reasoning: true,
        images: true,
        prices: TokenPrices::default(),
    };
    let style = match api {
        ModelApi::AnthropicMessages => ReasoningStyle::Budget,
        _ => ReasoningStyle::Effort { off: None, has_highest: false },
    };
    WireModel { info, api: HttpApi::of(api).unwrap(), style: Some(style), is_vendors: true, store: false }
}

fn request(messages: Vec<ChatMessage>) -> ModelRequest {
    ModelRequest {
        system_prompt: None,
        messages,
        tools: Vec::new(),
        max_tokens: None,
        thinking: ThinkingLevel::Medium,
        session_id: None,
    }
}

/// A turn of the same model, or of another one.
fn turn(model: &WireModel, is_own: bool, content: Vec<ContentBlock>) -> ChatMessage {
    let id = if is_own { "m" } else { "another" };
    ChatMessage::Assistant(AssistantMessage {
        content,
        api: model.info.api.as_str().to_owned(),
        provider: "p".to_owned(),
        model: id.to_owned(),
        usage: TokenUsage::default(),
        stop_reason: StopReason::Stop,
        error_message: None,
        timestamp: 1,
    })
}

fn thinking(api: ModelApi) -> ContentBlock {
    let signature = match api {
        ModelApi::OpenaiCompletions => "reasoning_content",
        ModelApi::OpenaiResponses => r#"{"type":"reasoning","id":"rs_1","encrypted_content":"x"}"#,
        _ => "sig-1",
    };
    ContentBlock::Thinking {
        thinking: "hm".to_owned(),
        thinking_signature: Some(signature.to_owned()),
        redacted: false,
    }
}

fn sent(model: &WireModel, messages: Vec<ChatMessage>) -> Value {
    body(model, &request(messages))
}

#[test]
fn each_text_of_a_turn_has_an_id_of_its_own() {
    let model = model(ModelApi::OpenaiResponses, 32_000);
    let texts = vec![ContentBlock::text("I look."), ContentBlock::text("It is empty.")];
    let reasoned = vec![thinking(ModelApi::AnthropicMessages), ContentBlock::text("done")];
    let body =
        sent(&model, vec![ChatMessage::user("a"), turn(&model, true, texts), turn(&model, false, reasoned)]);
    let ids: Vec<&str> =
        body["input"].as_array().unwrap().iter().filter_map(|item| item["id"].as_str()).collect();
    assert_eq!(ids, ["msg_1", "msg_1_1", "msg_2", "msg_2_1"]);
}

#[test]
fn a_turn_that_ends_in_reasoning_goes_back_without_that() {
    for api in APIS {
        let model = model(api, 32_000);
        for end in [vec![thinking(api)], vec![thinking(api), ContentBlock::text(" \n")]] {
            let only = turn(&model, true, end.clone());
            let body = sent(&model, vec![ChatMessage::user("a"), only, ChatMessage::user("b")]);
            assert!(!body.to_string().contains("hm"), "{api:?}: {body}");
            assert!(!body.to_string().contains("rs_1"), "{api:?}: {body}");
            let content = [vec![thinking(api), ContentBlock::text("I look.")], end].concat();
            let body = sent(
                &model,
                vec![ChatMessage::user("a"), turn(&model, true, content), ChatMessage::user("b")],
            );
            let text = body.to_string();
            assert!(text.contains("I look."), "{api:?}: {body}");
            // The reasoning before the text stays.
            let mark = if api == ModelApi::OpenaiResponses { "rs_1" } else { "hm" };
            assert_eq!(text.matches(mark).count(), 1, "{api:?}: {body}");
        }
    }
}

#[test]
fn a_budget_is_never_below_the_least_that_the_api_takes() {
    for (max_tokens, budget) in [(1024, None), (2000, None), (2048, Some(1024)), (4096, Some(3072))] {
        let body = sent(&model(ModelApi::AnthropicMessages, max_tokens), vec![ChatMessage::user("a")]);
        assert_eq!(body["max_tokens"], max_tokens);
        let expected = budget.map_or(json!("disabled"), |_| json!("enabled"));
        assert_eq!(body["thinking"]["type"], expected, "{max_tokens}");
        assert_eq!(body["thinking"]["budget_tokens"].as_u64(), budget, "{max_tokens}");
    }
}

fn result(id: &str, content: Vec<ContentBlock>, is_error: bool) -> ChatMessage {
    ChatMessage::ToolResult(ToolResultMessage {
        tool_call_id: id.to_owned(),
        tool_name: "look".to_owned(),
        content,
        details: Value::Null,
        is_error,
        timestamp: 1,
    })
}

#[test]
fn anthropic_gets_no_blank_text_and_no_image_inside_of_a_failed_answer() {
    let model = model(ModelApi::AnthropicMessages, 32_000);
    let image = || ContentBlock::Image { data: "aGk=".to_owned(), mime_type: "image/png".to_owned() };
    let call = |id: &str| {
        let (id, name) = (id.to_owned(), "look".to_owned());
        ContentBlock::ToolCall(ToolCall { id, name, arguments: json!({}) })
    };
    let messages = vec![
        turn(&model, true, vec![call("a"), call("b"), call("c")]),
        result("a", vec![ContentBlock::text(" "), image()], false),
        result("b", vec![image()], true),
        result("c", vec![ContentBlock::text("done")], false),
    ];
    let content = sent(&model, messages)["messages"][1]["content"].clone();
    let source = json!({"type": "base64", "media_type": "image/png", "data": "aGk="});
    let image = json!({"type": "image", "source": source});
    let see = "(see attached image)";
    assert_eq!(content[0]["content"], json!([{"type": "text", "text": see}, image]));
    assert_eq!((&content[1]["content"], &content[2]["content"]), (&json!(see), &json!("done")));
    assert_eq!((&content[3]["type"], &content[3]["source"]), (&json!("image"), &source));
}
