//! Answers of Anthropic's Messages API.

use serde_json::{Value, json};

use super::frames::FrameList;
use super::turn::{StandInPiece, StandInTurn, chunks};
use crate::message::StopReason;

/// The frames of an answer.
pub(super) fn frames(turn: &StandInTurn, model: &Value) -> FrameList {
    let mut frames = FrameList::default();
    let usage = json!({
        "input_tokens": turn.usage.input,
        "output_tokens": 1,
        "cache_read_input_tokens": turn.usage.cache_read,
        "cache_creation_input_tokens": turn.usage.cache_write,
    });
    let message = json!({
        "id": "msg_standin", "type": "message", "role": "assistant", "model": model, "content": [],
        "stop_reason": null, "stop_sequence": null, "usage": usage,
    });
    send(&mut frames, "message_start", json!({ "message": message }));
    send(&mut frames, "ping", json!({}));
    for (index, piece) in turn.pieces.iter().enumerate() {
        add_piece(&mut frames, index, piece);
    }
    let delta = json!({"stop_reason": stop_reason(turn.stop_reason), "stop_sequence": null});
    send(
        &mut frames,
        "message_delta",
        json!({"delta": delta, "usage": {"output_tokens": turn.usage.output}}),
    );
    send(&mut frames, "message_stop", json!({}));
    frames
}

/// The frame of an error in a stream.
pub(super) fn error_frame(error_type: &str) -> String {
    let data = json!({"type": "error", "error": {"type": error_type, "message": error_type}});
    format!("event: error\ndata: {data}\n\n")
}

fn add_piece(frames: &mut FrameList, index: usize, piece: &StandInPiece) {
    let (block, delta_type, field, text) = match piece {
        StandInPiece::Text(text) | StandInPiece::Commentary(text) => {
            (json!({"type": "text", "text": ""}), "text_delta", "text", text.as_str())
        }
        StandInPiece::Thinking { text, .. } => {
            let block = json!({"type": "thinking", "thinking": "", "signature": ""});
            (block, "thinking_delta", "thinking", text.as_str())
        }
        StandInPiece::RedactedThinking(data) => {
            (json!({"type": "redacted_thinking", "data": data}), "", "", "")
        }
        StandInPiece::Call { id, name, arguments } => {
            let block = json!({"type": "tool_use", "id": id, "name": name, "input": {}});
            (block, "input_json_delta", "partial_json", arguments.as_str())
        }
    };
    send(frames, "content_block_start", json!({"index": index, "content_block": block}));
    frames.grow(chunks(text), |frames, chunk| {
        let delta = json!({"type": delta_type, field: chunk});
        send(frames, "content_block_delta", json!({"index": index, "delta": delta}));
    });
    if let StandInPiece::Thinking { signature, .. } = piece {
        let delta = json!({"type": "signature_delta", "signature": signature});
        send(frames, "content_block_delta", json!({"index": index, "delta": delta}));
    }
    send(frames, "content_block_stop", json!({ "index": index }));
}

fn send(frames: &mut FrameList, name: &str, mut data: Value) {
    data["type"] = json!(name);
    frames.event(name, &data);
}

fn stop_reason(reason: StopReason) -> &'static str {
    match reason {
        StopReason::Length => "max_tokens",
        StopReason::ToolUse => "tool_use",
        StopReason::Refusal => "refusal",
        StopReason::Stop | StopReason::Error | StopReason::Aborted => "end_turn",
    }
}
