//! A decoder for Anthropic's Messages API.

use serde_json::Value;

use super::turn::TurnBuilder;
use super::{TurnDecoder, text_of};
use crate::message::StopReason;
use crate::model::{ModelError, ModelEvent};
use crate::models::failure;
use crate::usage::TokenUsage;

/// The decoder for Anthropic's Messages API.
#[derive(Default)]
pub(super) struct AnthropicDecoder {
    turn: TurnBuilder,
    stop_reason: Option<StopReason>,
}

impl TurnDecoder for AnthropicDecoder {
    fn read(&mut self, frame: Value) -> Result<Vec<ModelEvent>, ModelError> {
        let number = frame["index"].as_u64().unwrap_or_default();
        match text_of(&frame, "type") {
            "message_start" => self.count(&frame["message"]["usage"]),
            "content_block_start" => self.begin(number, &frame["content_block"]),
            "content_block_delta" => self.add(number, &frame["delta"]),
            "content_block_stop" => self.turn.end_piece(number),
            "message_delta" => {
                self.stop_reason =
                    frame["delta"]["stop_reason"].as_str().map(stop_reason).or(self.stop_reason);
                self.count(&frame["usage"]);
            }
            "message_stop" => self.turn.end(self.stop_reason.unwrap_or(StopReason::Stop)),
            "error" => return Err(failure::of_stream(&frame)),
            // `ping`, and frames that are newer than this code.
            _ => {}
        }
        Ok(self.turn.take_events())
    }

    fn usage(&self) -> TokenUsage {
        self.turn.usage()
    }
}

impl AnthropicDecoder {
    fn begin(&mut self, number: u64, block: &Value) {
        match text_of(block, "type") {
            "text" => self.turn.add_text(number, text_of(block, "text")),
            "thinking" => {
                self.turn.begin_thinking(number);
                self.turn.add_thinking(number, text_of(block, "thinking"));
                self.turn.add_signature(number, text_of(block, "signature"));
            }
            "redacted_thinking" => self.turn.add_redacted_thinking(number, text_of(block, "data")),
            "tool_use" => {
                self.turn.begin_call(number, text_of(block, "id"), text_of(block, "name"));
                // The arguments usually come in pieces, and `input` is empty.
                if block["input"].as_object().is_some_and(|input| !input.is_empty()) {
                    self.turn.add_arguments(number, &block["input"].to_string());
                }
            }
            _ => {}
        }
    }

    fn add(&mut self, number: u64, delta: &Value) {
        match text_of(delta, "type") {
            "text_delta" => self.turn.add_text(number, text_of(delta, "text")),
            "thinking_delta" => self.turn.add_thinking(number, text_of(delta, "thinking")),
            "signature_delta" => self.turn.add_signature(number, text_of(delta, "signature")),
            "input_json_delta" => self.turn.add_arguments(number, text_of(delta, "partial_json")),
            _ => {}
        }
    }

    /// Takes the counts that a frame has. Each frame has the sums so far.
    fn count(&mut self, counts: &Value) {
        let usage = self.turn.usage_mut();
        let fields = [
            ("input_tokens", &mut usage.input),
            ("output_tokens", &mut usage.output),
            ("cache_read_input_tokens", &mut usage.cache_read),
            ("cache_creation_input_tokens", &mut usage.cache_write),
        ];
        for (name, count) in fields {
            *count = counts[name].as_u64().unwrap_or(*count);
        }
    }
}

fn stop_reason(name: &str) -> StopReason {
    match name {
        "max_tokens" | "model_context_window_exceeded" => StopReason::Length,
        "tool_use" => StopReason::ToolUse,
        "refusal" | "sensitive" => StopReason::Refusal,
        // `end_turn`, `stop_sequence`, `pause_turn`, and newer reasons.
        _ => StopReason::Stop,
    }
}
