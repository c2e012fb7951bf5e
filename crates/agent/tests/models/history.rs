//! Conversations that are sent to a model: its own, and those of another model.

use eyot_agent::standin::StandInTurn;
use eyot_agent::{
    AssistantMessage, ChatMessage, ContentBlock, ModelApi, ModelTurn, StopReason, TokenUsage,
    ToolResultMessage,
};
use serde_json::{Value, json};

use crate::setup::{APIS, Vendor, request};

fn said(vendor: &Vendor, turn: &ModelTurn) -> ChatMessage {
    let info = vendor.model.info();
    ChatMessage::Assistant(AssistantMessage {
        content: turn.content.clone(),
        api: info.api.as_str().to_owned(),
        provider: info.provider.clone(),
        model: info.id.clone(),
        usage: TokenUsage::default(),
        stop_reason: turn.stop_reason,
        error_message: None,
        timestamp: 1,
    })
}

fn result(id: &str, content: Vec<ContentBlock>) -> ChatMessage {
    ChatMessage::ToolResult(ToolResultMessage {
        tool_call_id: id.to_owned(),
        tool_name: "read".to_owned(),
        content,
        details: Value::Null,
        is_error: true,
        timestamp: 2,
    })
}

fn image() -> ContentBlock {
    ContentBlock::Image { data: "aGk=".to_owned(), mime_type: "image/png".to_owned() }
}

/// Returns the request after a turn with reasoning and a tool call, and the tool's answer with an image.
async fn sent_back(api: ModelApi) -> Value {
    let turn = StandInTurn::empty().and_thinking("hm", "sig-1").and_redacted_thinking("hidden").and_call(
        "call_1",
        "read",
        json!({"path": "a.png"}),
    );
    let vendor = Vendor::playing(api, [turn, StandInTurn::text("done")]).await;
    let turn = vendor.turn(request(vec![ChatMessage::user("look")])).await;
    let message = said(&vendor, &turn);
    let ChatMessage::Assistant(said) = &message else { unreachable!() };
    let id = said.tool_calls().next().unwrap().id.clone();
    let answer = result(&id, vec![ContentBlock::text("an image"), image()]);
    vendor.turn(request(vec![ChatMessage::user("look"), message, answer])).await;
    vendor.last_body()
}

#[tokio::test]
async fn anthropic_gets_its_reasoning_back_and_the_image_of_a_failed_call_behind_its_answer() {
    let body = sent_back(ModelApi::AnthropicMessages).await;
    let mark = json!({"type": "ephemeral"});
    assert_eq!(body["system"], json!([{"type": "text", "text": "You help.", "cache_control": mark}]));
    assert_eq!(body["tools"][0]["cache_control"], mark);
    assert_eq!(
        body["messages"][1]["content"],
        json!([
            {"type": "thinking", "thinking": "hm", "signature": "sig-1"},
            {"type": "redacted_thinking", "data": "hidden"},
            {"type": "tool_use", "id": "call_1", "name": "read", "input": {"path": "a.png"}},
        ])
    );
    let source = json!({"type": "base64", "media_type": "image/png", "data": "aGk="});
    let image = json!({"type": "image", "source": source, "cache_control": mark});
    assert_eq!(
        body["messages"][2]["content"],
        json!([
            {"type": "tool_result", "tool_use_id": "call_1", "is_error": true, "content": "an image"},
            image,
        ])
    );
}

#[tokio::test]
async fn chat_completions_get_reasoning_in_its_field_and_images_in_a_message_of_the_user() {
    let body = sent_back(ModelApi::OpenaiCompletions).await;
    let messages = &body["messages"];
    assert_eq!(messages[0], json!({"role": "system", "content": "You help."}));
    assert_eq!(messages[2]["reasoning_content"], "hm");
    assert_eq!(messages[2]["tool_calls"][0]["function"]["arguments"], "{\"path\":\"a.png\"}");
    assert_eq!(messages[3], json!({"role": "tool", "content": "an image", "tool_call_id": "call_1"}));
    assert_eq!(messages[4]["role"], "user");
    assert_eq!(messages[4]["content"][1]["image_url"]["url"], "data:image/png;base64,aGk=");
}

#[tokio::test]
async fn responses_get_their_items_back_and_images_inside_of_outputs() {
    let body = sent_back(ModelApi::OpenaiResponses).await;
    let input = &body["input"];
    assert_eq!(body["include"], json!(["reasoning.encrypted_content"]));
    assert_eq!(input[0], json!({"role": "developer", "content": "You help."}));
    assert_eq!(input[2]["encrypted_content"], "sig-1");
    assert_eq!(input[3]["call_id"], "call_1");
    assert!(input[3]["id"].as_str().is_some_and(|id| id.starts_with("fc_")), "{input}");
    assert_eq!(input[4]["call_id"], "call_1");
    assert_eq!(input[4]["output"][1]["image_url"], "data:image/png;base64,aGk=");
}

/// Returns a conversation with a model of OpenAI's responses API.
fn foreign() -> Vec<ChatMessage> {
    let call = |id: &str| {
        ContentBlock::ToolCall(eyot_agent::ToolCall {
            id: id.to_owned(),
            name: "read".to_owned(),
            arguments: json!("{\"path\": "),
        })
    };
    let thinking = |text: &str, redacted| ContentBlock::Thinking {
        thinking: text.to_owned(),
        thinking_signature: Some("{\"type\":\"reasoning\",\"encrypted_content\":\"x\"}".to_owned()),
        redacted,
    };
    let turn = |content, stop_reason| {
        ChatMessage::Assistant(AssistantMessage {
            content,
            api: "openai-responses".to_owned(),
            provider: "openai".to_owned(),
            model: "gpt-5".to_owned(),
            usage: TokenUsage::default(),
            stop_reason,
            error_message: None,
            timestamp: 1,
        })
    };
    vec![
        ChatMessage::user("look"),
        turn(vec![ContentBlock::text("half a sen")], StopReason::Error),
        turn(
            vec![thinking("out loud", false), thinking("", true), call("call.1|fc_1"), call("call_2|fc_2")],
            StopReason::ToolUse,
        ),
        result("call_2|fc_2", vec![ContentBlock::text("no such file")]),
        ChatMessage::user("go on"),
        result("call_9", vec![ContentBlock::text("the answer of nothing")]),
    ]
}

#[tokio::test]
async fn a_conversation_with_another_model_is_made_acceptable() {
    for api in APIS {
        let vendor = Vendor::playing(api, [StandInTurn::text("x")]).await;
        vendor.turn(request(foreign())).await;
        let body = vendor.last_body();
        let text = body.to_string();
        assert!(!text.contains("half a sen") && !text.contains("the answer of nothing"), "{api:?}: {text}");
        assert!(!text.contains("encrypted_content\\") && !text.contains("redacted"), "{api:?}: {text}");
        match api {
            ModelApi::AnthropicMessages => {
                let turn = &body["messages"][1]["content"];
                assert_eq!(turn[0], json!({"type": "text", "text": "out loud"}));
                assert_eq!((&turn[1]["id"], &turn[2]["id"]), (&json!("call_1_fc_1"), &json!("call_2_fc_2")));
                assert_eq!(turn[1]["input"], json!({"INVALID_JSON": "{\"path\": "}));
                let results = &body["messages"][2]["content"];
                assert_eq!(results[0]["tool_use_id"], "call_2_fc_2");
                assert_eq!(
                    (&results[1]["tool_use_id"], &results[1]["is_error"]),
                    (&json!("call_1_fc_1"), &json!(true))
                );
            }
            ModelApi::OpenaiCompletions => {
                let messages = &body["messages"];
                assert_eq!(messages[2]["content"], "out loud");
                assert_eq!(messages[2]["tool_calls"][0]["id"], "call_1");
                assert_eq!(
                    (&messages[3]["tool_call_id"], &messages[4]["tool_call_id"]),
                    (&json!("call_2"), &json!("call_1"))
                );
            }
            _ => {
                let input = &body["input"];
                assert_eq!(input[2]["content"][0]["text"], "out loud");
                assert_eq!((&input[3]["call_id"], &input[3]["id"]), (&json!("call_1"), &Value::Null));
                assert_eq!(
                    (&input[5]["call_id"], &input[6]["call_id"]),
                    (&json!("call_2"), &json!("call_1"))
                );
            }
        }
    }
}

#[tokio::test]
async fn a_model_that_sees_no_images_gets_a_note_in_their_place() {
    for api in APIS {
        let vendor = Vendor::playing(api, [StandInTurn::text("x")]).await;
        let blind = eyot_agent::resolve_model(&format!("{}/blind", vendor.name)).unwrap();
        let said = eyot_agent::UserMessage { content: vec![image(), image()], timestamp: 1 };
        assert!(blind.stream(request(vec![ChatMessage::User(said)])).await.is_ok());
        let text = vendor.last_body().to_string();
        assert_eq!(text.matches("model does not support images").count(), 1, "{text}");
        assert!(!text.contains("aGk="), "{text}");
    }
}

#[tokio::test]
async fn reasoning_without_a_signature_goes_back_as_text() {
    let turn = StandInTurn::empty().and_thinking("cut off", "").and_text("and on");
    let vendor = Vendor::playing(ModelApi::AnthropicMessages, [turn, StandInTurn::text("x")]).await;
    let turn = vendor.turn(request(vec![ChatMessage::user("a")])).await;
    vendor.turn(request(vec![ChatMessage::user("a"), said(&vendor, &turn), ChatMessage::user("b")])).await;
    let expected = json!([{"type": "text", "text": "cut off"}, {"type": "text", "text": "and on"}]);
    assert_eq!(vendor.last_body()["messages"][1]["content"], expected);
}

#[tokio::test]
async fn texts_of_responses_go_back_with_their_ids_and_phases() {
    let first = StandInTurn::empty()
        .and_thinking("hm", "sig-1")
        .and_commentary("I look.")
        .and_commentary("I look again.")
        .and_text("done");
    let unreasoned = StandInTurn::empty().and_commentary("I look.");
    let vendor =
        Vendor::playing(ModelApi::OpenaiResponses, [first, unreasoned, StandInTurn::text("x")]).await;
    let ask = |messages: Vec<ChatMessage>| vendor.turn(request(messages));
    let first = said(&vendor, &ask(vec![ChatMessage::user("a")]).await);
    let kept = serde_json::to_string(&first).unwrap();
    assert_eq!(serde_json::from_str::<ChatMessage>(&kept).unwrap(), first);
    let second =
        said(&vendor, &ask(vec![ChatMessage::user("a"), first.clone(), ChatMessage::user("b")]).await);
    let messages =
        vec![ChatMessage::user("a"), first, ChatMessage::user("b"), second, ChatMessage::user("c")];
    ask(messages.clone()).await;
    let body = vendor.last_body();
    let texts: Vec<&Value> =
        body["input"].as_array().unwrap().iter().filter(|item| item["type"] == "message").collect();
    let phases: Vec<&Value> = texts.iter().map(|text| &text["phase"]).collect();
    let commentary = json!("commentary");
    assert_eq!(phases, [&commentary, &commentary, &Value::Null, &commentary]);
    for text in &texts[..3] {
        let id = text["id"].as_str().unwrap();
        assert!(kept.contains(&format!(r#"\"id\":\"{id}\""#)), "{id}: {kept}");
    }
    // The vendor wants the reasoning that belongs to an id, so without reasoning the id is another.
    assert_eq!(texts[3]["id"], "msg_3");

    let other = Vendor::playing(ModelApi::OpenaiResponses, [StandInTurn::text("x")]).await;
    other.turn(request(messages)).await;
    assert!(!other.last_body().to_string().contains("commentary"));
}
