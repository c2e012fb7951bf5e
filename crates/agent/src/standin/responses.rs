//! Answers of OpenAI's responses API.

use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::{Value, json};

use super::frames::FrameList;
use super::turn::{StandInPiece, StandInTurn, chunks};
use crate::message::StopReason;

/// The frames of an answer.
pub(super) fn frames(turn: &StandInTurn, model: &Value) -> FrameList {
    let mut answer = ResponseFrames { frames: FrameList::default(), sequence: 0, output: Vec::new() };
    let begun = response(model, "in_progress", &[]);
    answer.send("response.created", json!({ "response": begun }));
    answer.send("response.in_progress", json!({ "response": begun }));
    let is_refusal = turn.stop_reason == StopReason::Refusal;
    for piece in &turn.pieces {
        match piece {
            StandInPiece::Text(text) => answer.add_message(text, is_refusal, None),
            StandInPiece::Commentary(text) => answer.add_message(text, is_refusal, Some("commentary")),
            StandInPiece::Thinking { text, signature } => answer.add_reasoning(text, signature),
            StandInPiece::RedactedThinking(_) => {}
            StandInPiece::Call { id, name, arguments } => answer.add_call(id, name, arguments),
        }
    }
    let is_cut_short = turn.stop_reason == StopReason::Length;
    let status = if is_cut_short { "incomplete" } else { "completed" };
    let mut done = response(model, status, &answer.output);
    if is_cut_short {
        done["incomplete_details"] = json!({"reason": "max_output_tokens"});
    }
    let (cached, output) = (turn.usage.cache_read, turn.usage.output);
    let input = turn.usage.input + cached;
    done["usage"] = json!({
        "input_tokens": input,
        "input_tokens_details": {"cached_tokens": cached},
        "output_tokens": output,
        "output_tokens_details": {"reasoning_tokens": 0},
        "total_tokens": input + output,
    });
    answer.send(&format!("response.{status}"), json!({ "response": done }));
    answer.frames
}

/// The frame of an error in a stream.
pub(super) fn error_frame(error_type: &str) -> String {
    let data = json!({
        "type": "error", "code": error_type, "message": error_type, "param": null, "sequence_number": 0,
    });
    format!("event: error\ndata: {data}\n\n")
}

fn response(model: &Value, status: &str, output: &[Value]) -> Value {
    json!({
        "id": "resp_standin", "object": "response", "created_at": 1, "status": status, "model": model,
        "output": output, "error": null, "incomplete_details": null, "instructions": null, "metadata": {},
        "parallel_tool_calls": true, "temperature": 1.0, "tool_choice": "auto", "tools": [], "top_p": 1.0,
        "usage": null,
    })
}

/// The id of an item: no two have the same.
fn item_id(kind: &str) -> String {
    static NEXT: AtomicUsize = AtomicUsize::new(1);
    format!("{kind}_standin_{}", NEXT.fetch_add(1, Ordering::Relaxed))
}

struct ResponseFrames {
    frames: FrameList,
    sequence: u64,
    /// The complete items.
    output: Vec<Value>,
}

impl ResponseFrames {
    fn send(&mut self, name: &str, data: Value) {
        send(&mut self.frames, &mut self.sequence, name, data);
    }

    /// Sends the chunks of a text, each as a frame of this name with these fields.
    fn grow(&mut self, name: &str, text: &str, fields: &Value) {
        let sequence = &mut self.sequence;
        self.frames.grow(chunks(text), |frames, chunk| {
            let mut data = fields.clone();
            data["delta"] = json!(chunk);
            send(frames, sequence, name, data);
        });
    }

    fn begin_item(&mut self, item: &Value) {
        self.send("response.output_item.added", json!({"output_index": self.output.len(), "item": item}));
    }

    fn end_item(&mut self, item: Value) {
        self.send("response.output_item.done", json!({"output_index": self.output.len(), "item": item}));
        self.output.push(item);
    }

    fn add_message(&mut self, text: &str, is_refusal: bool, phase: Option<&str>) {
        let index = self.output.len();
        let id = item_id("msg");
        let kind = if is_refusal { "refusal" } else { "output_text" };
        let part = |text: &str| {
            if is_refusal {
                json!({"type": "refusal", "refusal": text})
            } else {
                json!({"type": "output_text", "text": text, "annotations": []})
            }
        };
        let item = |status: &str, content: Value| {
            let item = json!({
                "id": id, "type": "message", "role": "assistant", "status": status, "content": content,
            });
            match phase {
                Some(phase) => with(&item, "phase", json!(phase)),
                None => item,
            }
        };
        let place = json!({"item_id": id, "output_index": index, "content_index": 0});
        self.begin_item(&item("in_progress", json!([])));
        self.send("response.content_part.added", with(&place, "part", part("")));
        self.grow(&format!("response.{kind}.delta"), text, &with(&place, "logprobs", json!([])));
        let field = if is_refusal { "refusal" } else { "text" };
        let done = with(&with(&place, field, json!(text)), "logprobs", json!([]));
        self.send(&format!("response.{kind}.done"), done);
        self.send("response.content_part.done", with(&place, "part", part(text)));
        self.end_item(item("completed", json!([part(text)])));
    }

    fn add_reasoning(&mut self, text: &str, signature: &str) {
        let index = self.output.len();
        let id = item_id("rs");
        let place = json!({"item_id": id, "output_index": index, "summary_index": 0});
        let part = |text: &str| json!({"type": "summary_text", "text": text});
        self.begin_item(&json!({"id": id, "type": "reasoning", "summary": []}));
        self.send("response.reasoning_summary_part.added", with(&place, "part", part("")));
        self.grow("response.reasoning_summary_text.delta", text, &place);
        self.send("response.reasoning_summary_text.done", with(&place, "text", json!(text)));
        self.send("response.reasoning_summary_part.done", with(&place, "part", part(text)));
        let item = json!({
            "id": id, "type": "reasoning", "summary": [part(text)], "encrypted_content": signature,
        });
        self.end_item(item);
    }

    fn add_call(&mut self, call_id: &str, name: &str, arguments: &str) {
        let index = self.output.len();
        let id = item_id("fc");
        let item = |status: &str, arguments: &str| {
            json!({
                "id": id, "type": "function_call", "status": status, "call_id": call_id, "name": name,
                "arguments": arguments,
            })
        };
        let place = json!({"item_id": id, "output_index": index});
        self.begin_item(&item("in_progress", ""));
        self.grow("response.function_call_arguments.delta", arguments, &place);
        self.send("response.function_call_arguments.done", with(&place, "arguments", json!(arguments)));
        self.end_item(item("completed", arguments));
    }
}

fn send(frames: &mut FrameList, sequence: &mut u64, name: &str, mut data: Value) {
    data["type"] = json!(name);
    data["sequence_number"] = json!(*sequence);
    *sequence += 1;
    frames.event(name, &data);
}

fn with(fields: &Value, name: &str, value: Value) -> Value {
    let mut fields = fields.clone();
    fields[name] = value;
    fields
}
