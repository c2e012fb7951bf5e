//! Tests of the fields for reasoning effort.

use serde_json::{Value, json};

use super::{WireModel, body};
use crate::message::{AssistantMessage, ChatMessage, ContentBlock, StopReason, ToolCall};
use crate::model::{DEFAULT_MAX_TOKENS, ModelApi, ModelInfo, ModelRequest, ThinkingLevel, ToolDeclaration};
use crate::models::facts::ReasoningStyle;
use crate::models::http_api::HttpApi;
use crate::usage::{TokenPrices, TokenUsage};

const ALWAYS: ReasoningStyle = ReasoningStyle::Adaptive { highest: Some("xhigh"), can_stop: false };
const TO_HIGHEST: ReasoningStyle = ReasoningStyle::Effort { off: None, has_highest: true };

fn sent(api: ModelApi, style: ReasoningStyle, thinking: ThinkingLevel, messages: Vec<ChatMessage>) -> Value {
    body(&model(api, style), &request(thinking, messages))
}

fn model(api: ModelApi, style: ReasoningStyle) -> WireModel {
    let info = ModelInfo {
        id: "m".to_owned(),
        provider: "p".to_owned(),
        api,
        context_window: 0,
        max_tokens: DEFAULT_MAX_TOKENS,
        reasoning: true,
        images: true,
        prices: TokenPrices::default(),
    };
    WireModel { info, api: HttpApi::of(api).unwrap(), style: Some(style), is_vendors: true, store: false }
}

fn request(thinking: ThinkingLevel, messages: Vec<ChatMessage>) -> ModelRequest {
    ModelRequest {
        system_prompt: None,
        messages,
        tools: Vec::new(),
        max_tokens: None,
        thinking,
        session_id: None,
    }
}

#[test]
fn a_model_that_always_reasons_is_never_told_not_to() {
    let sent = |thinking| sent(ModelApi::AnthropicMessages, ALWAYS, thinking, Vec::new());
    let off = sent(ThinkingLevel::Off);
    assert_eq!((off.get("thinking"), &off["output_config"]["effort"]), (None, &json!("low")));
    let most = sent(ThinkingLevel::XHigh);
    assert_eq!(most["thinking"]["type"], "adaptive");
    assert_eq!(most["output_config"]["effort"], "xhigh");
}

#[test]
fn a_budget_leaves_tokens_for_the_answer() {
    let sent = sent(ModelApi::AnthropicMessages, ReasoningStyle::Budget, ThinkingLevel::High, Vec::new());
    assert_eq!((&sent["max_tokens"], &sent["thinking"]["budget_tokens"]), (&json!(4096), &json!(3072)));
}

#[test]
fn an_effort_that_a_model_does_not_know_becomes_the_next_one() {
    let sent = |style, thinking| {
        let responses = sent(ModelApi::OpenaiResponses, style, thinking, Vec::new());
        let completions = sent(ModelApi::OpenaiCompletions, style, thinking, Vec::new());
        assert_eq!(responses["reasoning"].get("effort"), completions.get("reasoning_effort"));
        responses["reasoning"]["effort"].clone()
    };
    let old = ReasoningStyle::Effort { off: None, has_highest: false };
    assert_eq!(sent(old, ThinkingLevel::Minimal), "minimal");
    assert_eq!(sent(old, ThinkingLevel::XHigh), "high");
    assert_eq!(sent(TO_HIGHEST, ThinkingLevel::Minimal), "low");
    assert_eq!(sent(TO_HIGHEST, ThinkingLevel::XHigh), "xhigh");
    assert_eq!(sent(TO_HIGHEST, ThinkingLevel::Off), Value::Null);
}

#[test]
fn the_id_of_a_calls_item_goes_back_with_its_reasoning_alone() {
    let id_of = |signature: &str| {
        let thinking = ContentBlock::Thinking {
            thinking: "hm".to_owned(),
            thinking_signature: Some(signature.to_owned()),
            redacted: false,
        };
        let call = ToolCall { id: "call_1|fc_1".to_owned(), name: "read".to_owned(), arguments: json!({}) };
        let turn = AssistantMessage {
            content: vec![thinking, ContentBlock::ToolCall(call)],
            api: "openai-responses".to_owned(),
            provider: "p".to_owned(),
            model: "m".to_owned(),
            usage: TokenUsage::default(),
            stop_reason: StopReason::ToolUse,
            error_message: None,
            timestamp: 1,
        };
        let messages = vec![ChatMessage::Assistant(turn)];
        let body = sent(ModelApi::OpenaiResponses, TO_HIGHEST, ThinkingLevel::Medium, messages);
        let items = body["input"].as_array().cloned().unwrap();
        let call = items.iter().find(|item| item["type"] == "function_call").cloned().unwrap();
        call["id"].clone()
    };
    assert_eq!(id_of(r#"{"type":"reasoning","id":"rs_1","encrypted_content":"x"}"#), "fc_1");
    assert_eq!(id_of(r#"{"type":"reasoning","id":"rs_1"}"#), Value::Null);
}

#[test]
fn tools_and_effort_together_are_refused_where_openai_refuses_them() {
    let refused = |style, is_vendors, thinking, has_tools: bool| {
        let mut model = model(ModelApi::OpenaiCompletions, style);
        model.is_vendors = is_vendors;
        let tool =
            ToolDeclaration { name: "read".to_owned(), description: String::new(), parameters: json!({}) };
        let request =
            ModelRequest { tools: vec![tool; usize::from(has_tools)], ..request(thinking, Vec::new()) };
        super::check(&model, &request).err().map(|failure| failure.message)
    };
    let to_highest = ReasoningStyle::Effort { off: Some("none"), has_highest: true };
    let old = ReasoningStyle::Effort { off: None, has_highest: false };
    let expected = "`m` takes no tools by chat completions: use `openai/m`, which is the responses API";
    assert_eq!(refused(TO_HIGHEST, true, ThinkingLevel::Medium, true).as_deref(), Some(expected));
    assert!(refused(TO_HIGHEST, true, ThinkingLevel::Off, true).is_some());
    assert!(refused(to_highest, true, ThinkingLevel::Medium, true).is_some());
    assert_eq!(refused(to_highest, true, ThinkingLevel::Off, true), None);
    assert_eq!(refused(to_highest, true, ThinkingLevel::Medium, false), None);
    assert_eq!(refused(to_highest, false, ThinkingLevel::Medium, true), None);
    assert_eq!(refused(old, true, ThinkingLevel::Medium, true), None);
}
