//! Answers of OpenAI's chat completions.

use serde_json::{Value, json};

use super::frames::FrameList;
use super::turn::{StandInPiece, StandInTurn, chunks};
use crate::message::StopReason;

/// The frames of an answer.
pub(super) fn frames(turn: &StandInTurn, model: &Value) -> FrameList {
    let mut answer = CompletionFrames { frames: FrameList::default(), model, calls: 0 };
    answer.send(&json!({"role": "assistant", "content": ""}), Value::Null);
    for piece in &turn.pieces {
        answer.add_piece(piece);
    }
    answer.send(&json!({}), json!(finish_reason(turn.stop_reason)));
    answer.send_usage(turn);
    answer.frames.data("[DONE]");
    answer.frames
}

/// The frame of an error in a stream.
pub(super) fn error_frame(error_type: &str) -> String {
    let data = json!({"error": {"type": error_type, "code": error_type, "message": error_type}});
    format!("data: {data}\n\n")
}

struct CompletionFrames<'a> {
    frames: FrameList,
    model: &'a Value,
    calls: usize,
}

impl CompletionFrames<'_> {
    fn add_piece(&mut self, piece: &StandInPiece) {
        match piece {
            StandInPiece::Text(text) | StandInPiece::Commentary(text) => {
                self.grow(text, |chunk| json!({ "content": chunk }))
            }
            StandInPiece::Thinking { text, .. } => {
                self.grow(text, |chunk| json!({ "reasoning_content": chunk }))
            }
            StandInPiece::RedactedThinking(_) => {}
            StandInPiece::Call { id, name, arguments } => {
                let index = self.calls;
                self.calls += 1;
                let function = json!({"name": name, "arguments": ""});
                let call = json!({"index": index, "id": id, "type": "function", "function": function});
                self.send(&json!({ "tool_calls": [call] }), Value::Null);
                self.grow(
                    arguments,
                    |chunk| json!({"tool_calls": [{"index": index, "function": {"arguments": chunk}}]}),
                );
            }
        }
    }

    fn grow(&mut self, text: &str, delta: impl Fn(String) -> Value) {
        let model = self.model;
        self.frames.grow(chunks(text), |frames, chunk| frames.data(frame(model, &delta(chunk), Value::Null)));
    }

    fn send(&mut self, delta: &Value, finish_reason: Value) {
        self.frames.data(frame(self.model, delta, finish_reason));
    }

    fn send_usage(&mut self, turn: &StandInTurn) {
        let cached = turn.usage.cache_read;
        let prompt = turn.usage.input + cached;
        let mut last = frame(self.model, &json!({}), Value::Null);
        last["choices"] = json!([]);
        last["usage"] = json!({
            "prompt_tokens": prompt,
            "completion_tokens": turn.usage.output,
            "total_tokens": prompt + turn.usage.output,
            "prompt_tokens_details": {"cached_tokens": cached},
        });
        self.frames.data(last);
    }
}

fn frame(model: &Value, delta: &Value, finish_reason: Value) -> Value {
    json!({
        "id": "chatcmpl-standin", "object": "chat.completion.chunk", "created": 1, "model": model,
        "choices": [{"index": 0, "delta": delta, "logprobs": null, "finish_reason": finish_reason}],
    })
}

fn finish_reason(reason: StopReason) -> &'static str {
    match reason {
        StopReason::Length => "length",
        StopReason::ToolUse => "tool_calls",
        StopReason::Refusal => "content_filter",
        StopReason::Stop | StopReason::Error | StopReason::Aborted => "stop",
    }
}
