//! Answers that arrive completely: their events, and the resulting turn.

use std::time::Duration;

use eyot_agent::standin::StandInTurn;
use eyot_agent::{ContentBlock, ModelApi, ModelEvent, StopReason, TokenUsage, ToolCall};
use serde_json::json;

use crate::setup::{APIS, KEY, Vendor, hello};

fn call(block: &ContentBlock) -> &ToolCall {
    match block {
        ContentBlock::ToolCall(call) => call,
        other => panic!("{other:?} is no call"),
    }
}

#[tokio::test]
async fn a_text_comes_in_pieces_and_as_a_whole() {
    for api in APIS {
        let usage = TokenUsage { input: 20, output: 7, cache_read: 100, ..TokenUsage::default() };
        let vendor = Vendor::playing(api, [StandInTurn::text("Grüße, 世界!").with_usage(usage)]).await;
        let events = vendor.ask(hello()).await.unwrap();
        let deltas: Vec<_> = events
            .iter()
            .filter_map(|event| match event {
                ModelEvent::TextDelta(delta) => Some(delta.as_str()),
                _ => None,
            })
            .collect();
        assert!(deltas.len() > 1, "{api:?}: {deltas:?}");
        assert_eq!(deltas.concat(), "Grüße, 世界!");
        let Some(ModelEvent::Done(turn)) = events.last() else { panic!("{events:?}") };
        assert_eq!(
            turn.content.iter().map(ContentBlock::as_text).collect::<Vec<_>>(),
            [Some("Grüße, 世界!")]
        );
        assert_eq!(turn.stop_reason, StopReason::Stop);
        assert_eq!(turn.usage, TokenUsage { total_tokens: 127, ..usage }, "{api:?}");
    }
}

#[tokio::test]
async fn anthropic_counts_what_it_wrote_to_its_cache() {
    let usage = TokenUsage { input: 1, output: 2, cache_read: 3, cache_write: 4, ..TokenUsage::default() };
    let turn = StandInTurn::text("x").with_usage(usage);
    let vendor = Vendor::playing(ModelApi::AnthropicMessages, [turn]).await;
    assert_eq!(vendor.turn(hello()).await.usage, TokenUsage { total_tokens: 10, ..usage });
}

#[tokio::test]
async fn parallel_tool_calls_keep_their_order_and_their_arguments() {
    for api in APIS {
        let turn = StandInTurn::text("I read both.")
            .and_call("call_1", "read", json!({"path": "a.txt"}))
            .and_call("call_2", "read", json!({"path": "b.txt"}));
        let vendor = Vendor::playing(api, [turn]).await;
        let events = vendor.ask(hello()).await.unwrap();
        let Some(ModelEvent::Done(turn)) = events.last() else { panic!("{events:?}") };
        assert_eq!(turn.stop_reason, StopReason::ToolUse);
        let calls: Vec<_> = turn.content[1..].iter().map(call).collect();
        assert_eq!(calls.len(), 2);
        assert_eq!(
            (&calls[0].arguments["path"], &calls[1].arguments["path"]),
            (&json!("a.txt"), &json!("b.txt"))
        );
        for call in calls {
            let started = ModelEvent::ToolCallStart { id: call.id.clone(), name: "read".to_owned() };
            assert!(events.contains(&started), "{api:?}");
            let text: String = events
                .iter()
                .filter_map(|event| match event {
                    ModelEvent::ToolCallDelta { id, json } if *id == call.id => Some(json.as_str()),
                    _ => None,
                })
                .collect();
            assert_eq!(ToolCall::parse_arguments(&text), call.arguments);
        }
    }
}

#[tokio::test]
async fn arguments_that_are_no_json_stay_text() {
    for api in APIS {
        let turn = StandInTurn::empty().and_raw_call("call_1", "read", "{\"path\": ");
        let turn = Vendor::playing(api, [turn]).await.turn(hello()).await;
        assert_eq!(call(&turn.content[0]).arguments, json!("{\"path\": "), "{api:?}");
    }
}

#[tokio::test]
async fn a_call_without_arguments_has_an_empty_object() {
    for api in APIS {
        let turn = StandInTurn::empty().and_raw_call("call_1", "read", "");
        let turn = Vendor::playing(api, [turn]).await.turn(hello()).await;
        assert_eq!(call(&turn.content[0]).arguments, json!({}), "{api:?}");
    }
}

#[tokio::test]
async fn reasoning_comes_in_pieces_with_its_signature() {
    for api in APIS {
        let turn = StandInTurn::empty().and_thinking("first this, then that", "sig-1").and_text("done");
        let events = Vendor::playing(api, [turn]).await.ask(hello()).await.unwrap();
        assert_eq!(events[0], ModelEvent::ThinkingStart, "{api:?}");
        assert!(events.contains(&ModelEvent::ThinkingEnd("first this, then that".to_owned())), "{api:?}");
        let Some(ModelEvent::Done(turn)) = events.last() else { panic!("{events:?}") };
        let ContentBlock::Thinking { thinking, thinking_signature: Some(signature), redacted: false } =
            &turn.content[0]
        else {
            panic!("{turn:?}")
        };
        assert_eq!(thinking, "first this, then that");
        match api {
            ModelApi::AnthropicMessages => assert_eq!(signature, "sig-1"),
            ModelApi::OpenaiCompletions => assert_eq!(signature, "reasoning_content"),
            _ => assert!(signature.contains("\"encrypted_content\":\"sig-1\""), "{signature}"),
        }
        assert_eq!(turn.content[1].as_text(), Some("done"));
    }
}

#[tokio::test]
async fn reasoning_and_text_keep_their_order_at_anthropic() {
    let turn = StandInTurn::empty()
        .and_thinking("one", "sig-1")
        .and_redacted_thinking("hidden")
        .and_text("a")
        .and_thinking("two", "sig-2")
        .and_call("call_1", "read", json!({"path": "a"}));
    let turn = Vendor::playing(ModelApi::AnthropicMessages, [turn]).await.turn(hello()).await;
    let thinking = |text: &str, signature: &str, redacted| ContentBlock::Thinking {
        thinking: text.to_owned(),
        thinking_signature: Some(signature.to_owned()),
        redacted,
    };
    assert_eq!(turn.content[0], thinking("one", "sig-1", false));
    assert_eq!(turn.content[1], thinking("[Reasoning redacted]", "hidden", true));
    assert_eq!(turn.content[2], ContentBlock::text("a"));
    assert_eq!(turn.content[3], thinking("two", "sig-2", false));
    assert_eq!(call(&turn.content[4]).id, "call_1");
}

#[tokio::test]
async fn the_reason_to_stop_is_told() {
    for api in APIS {
        for reason in [StopReason::Length, StopReason::Refusal, StopReason::Stop] {
            let vendor = Vendor::playing(api, [StandInTurn::text("so far").stopped_by(reason)]).await;
            assert_eq!(vendor.turn(hello()).await.stop_reason, reason, "{api:?}");
        }
    }
}

#[tokio::test]
async fn a_request_has_the_key_and_the_sessions_id() {
    for api in APIS {
        let vendor = Vendor::playing(api, [StandInTurn::text("x")]).await;
        vendor.turn(hello()).await;
        let asked = vendor.stand_in.requests().remove(0);
        match api {
            ModelApi::AnthropicMessages => {
                assert_eq!(asked.headers["x-api-key"], KEY);
                assert!(!asked.headers.contains_key("authorization"));
            }
            _ => assert_eq!(asked.headers["authorization"], format!("Bearer {KEY}")),
        }
        if api == ModelApi::OpenaiResponses {
            assert_eq!(asked.headers["session_id"], "session-1");
            assert_eq!(asked.body["prompt_cache_key"], "session-1");
        }
        // The request contains no placeholder `-`.
        assert!(!asked.body.to_string().contains("\"-\""), "{}", asked.body);
    }
}

#[tokio::test]
async fn dropping_the_stream_ends_the_request() {
    let turn = StandInTurn::text(&"word ".repeat(100)).slowed(Duration::from_millis(50));
    let vendor = Vendor::playing(ModelApi::AnthropicMessages, [turn]).await;
    let stream = vendor.model.stream(hello()).await.unwrap();
    assert_eq!(vendor.stand_in.answers_dropped(), 0);
    drop(stream);
    let ended = async {
        while vendor.stand_in.answers_dropped() == 0 {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(Duration::from_secs(20), ended).await.expect("the request is still open");
}
