//! Tests with frames that no vendor should send, from servers that are broken or speak a protocol only roughly.

use serde_json::{Value, json};

use super::{StreamFrame, decoder, read};
use crate::message::{ContentBlock, StopReason};
use crate::model::{ModelApi, ModelError, ModelErrorKind, ModelEvent, ModelTurn};
use crate::models::http_api::HttpApi;

const APIS: [ModelApi; 3] =
    [ModelApi::AnthropicMessages, ModelApi::OpenaiCompletions, ModelApi::OpenaiResponses];

/// Reads frames and then the end of the stream.
fn read_all(api: ModelApi, frames: &[&str]) -> Result<Vec<ModelEvent>, ModelError> {
    let mut decoder = decoder(HttpApi::of(api).unwrap());
    let mut events = Vec::new();
    for data in frames {
        events.extend(read(&mut *decoder, &StreamFrame { event: None, data: (*data).to_owned() })?);
        if matches!(events.last(), Some(ModelEvent::Done(_))) {
            return Ok(events);
        }
    }
    events.extend(decoder.end()?);
    Ok(events)
}

fn turn(api: ModelApi, frames: &[Value]) -> ModelTurn {
    let frames: Vec<String> = frames.iter().map(Value::to_string).collect();
    let frames: Vec<&str> = frames.iter().map(String::as_str).collect();
    match read_all(api, &frames).unwrap().pop() {
        Some(ModelEvent::Done(turn)) => turn,
        other => panic!("{other:?}"),
    }
}

fn choice(delta: &Value, finish_reason: &Value) -> Value {
    json!({"choices": [{"index": 0, "delta": delta, "finish_reason": finish_reason}]})
}

#[test]
fn any_json_is_read_without_a_panic() {
    let odd = [
        "null",
        "[]",
        "3",
        "\"text\"",
        "{}",
        r#"{"type":5,"index":-1,"delta":7,"choices":{}}"#,
        r#"{"type":"content_block_delta","index":99,"delta":{"type":"text_delta"}}"#,
        r#"{"type":"content_block_stop"}"#,
        r#"{"type":"message_start","message":{"usage":{"input_tokens":-5,"output_tokens":1e99}}}"#,
        r#"{"choices":[{"delta":{"tool_calls":[null,3,{"index":"x"}],"content":[1]}}],"usage":{"prompt_tokens":1,"prompt_tokens_details":{"cached_tokens":18446744073709551615,"cache_write_tokens":9}}}"#,
        r#"{"type":"response.function_call_arguments.done","output_index":18446744073709551615}"#,
        r#"{"type":"response.output_item.done","item":{"type":"function_call"}}"#,
        r#"{"type":"response.output_item.done","item":{"type":"reasoning","summary":7}}"#,
    ];
    for api in APIS {
        let end = read_all(api, &odd).unwrap_err();
        assert_eq!(end.kind, ModelErrorKind::Cut, "{api:?}");
    }
}

#[test]
fn what_is_no_json_is_malformed() {
    for api in APIS {
        let end = read_all(api, &["<html>"]).unwrap_err();
        assert_eq!(end.kind, ModelErrorKind::Malformed);
    }
}

#[test]
fn a_turn_of_chat_completions_is_complete_without_the_end_mark() {
    let turn = turn(
        ModelApi::OpenaiCompletions,
        &[choice(&json!({"content": "hi"}), &Value::Null), choice(&json!({}), &json!("stop"))],
    );
    assert_eq!((turn.content, turn.stop_reason), (vec![ContentBlock::text("hi")], StopReason::Stop));
}

#[test]
fn calls_that_share_an_index_or_have_none_are_told_apart_by_their_ids() {
    for index in [json!(0), Value::Null] {
        let call = |id: &str, arguments: &str| {
            let function = json!({"name": "read", "arguments": arguments});
            json!({"tool_calls": [{"index": index, "id": id, "function": function}]})
        };
        let turn = turn(
            ModelApi::OpenaiCompletions,
            &[
                choice(&call("a", "{\"n\":1}"), &Value::Null),
                choice(&call("b", "{\"n\":"), &Value::Null),
                choice(
                    &json!({"tool_calls": [{"index": index, "function": {"arguments": "2}"}}]}),
                    &Value::Null,
                ),
                // Some servers end a turn with tool calls like any other.
                choice(&json!({}), &json!("stop")),
            ],
        );
        let calls: Vec<_> = turn
            .content
            .iter()
            .map(|block| match block {
                ContentBlock::ToolCall(call) => (call.id.as_str(), call.arguments.clone()),
                other => panic!("{other:?}"),
            })
            .collect();
        assert_eq!(calls, [("a", json!({"n": 1})), ("b", json!({"n": 2}))]);
        assert_eq!(turn.stop_reason, StopReason::ToolUse);
    }
}

#[test]
fn a_call_without_an_id_gets_one() {
    let call = json!({"tool_calls": [{"index": 0, "function": {"name": "read", "arguments": {"a": 1}}}]});
    let turn = turn(ModelApi::OpenaiCompletions, &[choice(&call, &json!("tool_calls"))]);
    let ContentBlock::ToolCall(call) = &turn.content[0] else { panic!("{turn:?}") };
    assert!(call.id.starts_with("call_") && call.id.len() > 20, "{}", call.id);
    assert_eq!(call.arguments, json!({"a": 1}));
}

#[test]
fn reasoning_in_each_of_its_fields_is_read_and_ends_where_text_begins() {
    for field in ["reasoning_content", "reasoning", "reasoning_text"] {
        let turn = turn(
            ModelApi::OpenaiCompletions,
            &[
                choice(&json!({ field: "a" }), &Value::Null),
                choice(&json!({ field: "b" }), &Value::Null),
                choice(&json!({"content": "c"}), &json!("length")),
            ],
        );
        let thinking = ContentBlock::Thinking {
            thinking: "ab".to_owned(),
            thinking_signature: Some(field.to_owned()),
            redacted: false,
        };
        assert_eq!(turn.content, [thinking, ContentBlock::text("c")]);
        assert_eq!(turn.stop_reason, StopReason::Length);
    }
}

#[test]
fn a_refusal_of_chat_completions_is_one() {
    let frames = [choice(&json!({"refusal": "no"}), &Value::Null), choice(&json!({}), &json!("stop"))];
    let turn = turn(ModelApi::OpenaiCompletions, &frames);
    assert_eq!((turn.content, turn.stop_reason), (vec![ContentBlock::text("no")], StopReason::Refusal));
}

#[test]
fn an_answer_of_responses_may_come_in_whole_items() {
    let item = json!({"type": "message", "content": [{"type": "output_text", "text": "hi"}]});
    let call =
        json!({"type": "function_call", "call_id": "c", "id": "fc", "name": "read", "arguments": "{}"});
    let turn = turn(
        ModelApi::OpenaiResponses,
        &[
            json!({"type": "response.output_item.done", "output_index": 0, "item": item}),
            json!({"type": "response.output_item.done", "output_index": 1, "item": call}),
            json!({"type": "response.completed", "response": {"usage": {"input_tokens": 5, "output_tokens": 2}}}),
        ],
    );
    assert_eq!(turn.content[0], ContentBlock::text("hi"));
    let ContentBlock::ToolCall(call) = &turn.content[1] else { panic!("{turn:?}") };
    assert_eq!((call.id.as_str(), turn.stop_reason), ("c|fc", StopReason::ToolUse));
    assert_eq!((turn.usage.input, turn.usage.output, turn.usage.total_tokens), (5, 2, 7));
}

#[test]
fn a_turn_that_the_server_gave_up_is_no_complete_answer() {
    for reason in ["abort", "error", "something_new"] {
        let frames =
            [choice(&json!({"content": "half a sen"}), &Value::Null), choice(&json!({}), &json!(reason))];
        let frames = frames.map(|frame| frame.to_string());
        let end = read_all(ModelApi::OpenaiCompletions, &[&frames[0], &frames[1], "[DONE]"]).unwrap_err();
        assert_eq!(end.kind, ModelErrorKind::Cut, "{reason}");
        assert!(end.message.contains(reason), "{end}");
    }
    let frames = [choice(&json!({"content": "half"}), &json!("")).to_string()];
    let end = read_all(ModelApi::OpenaiCompletions, &[&frames[0]]).unwrap_err();
    assert_eq!(end.kind, ModelErrorKind::Cut);
    let long = turn(ModelApi::OpenaiCompletions, &[choice(&json!({"content": "x"}), &json!("model_length"))]);
    assert_eq!(long.stop_reason, StopReason::Length);
}

#[test]
fn a_call_that_was_cut_before_its_first_argument_is_left_out() {
    let function = json!({"name": "delete", "arguments": ""});
    let call = json!({"content": "I delete.", "tool_calls": [{"index": 0, "id": "a", "function": function}]});
    let completions = [choice(&call, &json!("length"))];
    let block = json!({"type": "tool_use", "id": "a", "name": "delete", "input": {}});
    let text = json!({"type": "text", "text": "I delete."});
    let messages = [
        json!({"type": "content_block_start", "index": 0, "content_block": text}),
        json!({"type": "content_block_start", "index": 1, "content_block": block}),
        json!({"type": "message_delta", "delta": {"stop_reason": "max_tokens"}}),
        json!({"type": "message_stop"}),
    ];
    let item =
        json!({"type": "function_call", "call_id": "a", "id": "fc", "name": "delete", "arguments": ""});
    let incomplete = json!({"incomplete_details": {"reason": "max_output_tokens"}});
    let responses = [
        json!({"type": "response.output_text.delta", "output_index": 0, "delta": "I delete."}),
        json!({"type": "response.output_item.added", "output_index": 1, "item": item}),
        json!({"type": "response.incomplete", "response": incomplete}),
    ];
    for (api, frames) in APIS.into_iter().zip([&messages[..], &completions, &responses]) {
        let turn = turn(api, frames);
        assert_eq!(turn.content, [ContentBlock::text("I delete.")], "{api:?}");
        assert_eq!(turn.stop_reason, StopReason::Length, "{api:?}");
    }
}
