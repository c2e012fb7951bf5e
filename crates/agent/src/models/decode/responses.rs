//! A decoder for OpenAI's responses API.

use serde_json::{Value, json};

use super::turn::TurnBuilder;
use super::{TurnDecoder, count_of, openai_usage, text_of};
use crate::message::StopReason;
use crate::model::{ModelError, ModelEvent};
use crate::models::failure;
use crate::usage::TokenUsage;

/// The decoder for OpenAI's responses API. Each item of the answer is a piece of the turn.
#[derive(Default)]
pub(super) struct ResponsesDecoder {
    turn: TurnBuilder,
}

impl TurnDecoder for ResponsesDecoder {
    fn read(&mut self, frame: Value) -> Result<Vec<ModelEvent>, ModelError> {
        let number = frame["output_index"].as_u64().unwrap_or_default();
        let delta = text_of(&frame, "delta");
        match text_of(&frame, "type") {
            "response.output_item.added" => self.begin(number, &frame["item"]),
            "response.reasoning_summary_text.delta" | "response.reasoning_text.delta" => {
                self.turn.begin_thinking(number);
                self.turn.add_thinking(number, delta);
            }
            "response.reasoning_summary_part.done" => self.turn.add_thinking(number, "\n\n"),
            "response.output_text.delta" => self.turn.add_text(number, delta),
            "response.refusal.delta" => {
                self.turn.refuse();
                self.turn.add_text(number, delta);
            }
            "response.function_call_arguments.delta" => self.turn.add_arguments(number, delta),
            "response.function_call_arguments.done" => {
                self.turn.set_arguments(number, text_of(&frame, "arguments"));
            }
            "response.output_item.done" => self.end_item(number, &frame["item"]),
            "response.completed" | "response.incomplete" => self.end_turn(&frame["response"]),
            "response.failed" => return Err(failure::of_stream(&frame["response"])),
            "error" => return Err(failure::of_stream(&frame)),
            _ => {}
        }
        Ok(self.turn.take_events())
    }

    fn usage(&self) -> TokenUsage {
        self.turn.usage()
    }
}

impl ResponsesDecoder {
    fn begin(&mut self, number: u64, item: &Value) {
        match text_of(item, "type") {
            "reasoning" => self.turn.begin_thinking(number),
            "function_call" => {
                self.turn.begin_call(number, &call_id(item), text_of(item, "name"));
                self.turn.add_arguments(number, text_of(item, "arguments"));
            }
            _ => {}
        }
    }

    /// Ends an item, which the frame contains as a whole.
    fn end_item(&mut self, number: u64, item: &Value) {
        match text_of(item, "type") {
            "reasoning" => {
                self.turn.begin_thinking(number);
                let summary = parts(&item["summary"]);
                let text = if summary.is_empty() { parts(&item["content"]) } else { summary };
                self.turn.set_thinking(number, &text);
                self.turn.add_signature(number, &item.to_string());
            }
            "function_call" => {
                self.turn.begin_call(number, &call_id(item), text_of(item, "name"));
                self.turn.set_arguments(number, text_of(item, "arguments"));
            }
            "message" => {
                if !self.turn.has(number) {
                    self.add_message(number, item);
                }
                if let Some(signature) = text_signature(item) {
                    self.turn.sign_text(number, signature);
                }
            }
            _ => {}
        }
        self.turn.end_piece(number);
    }

    /// Adds a message that came without earlier pieces.
    fn add_message(&mut self, number: u64, item: &Value) {
        for part in item["content"].as_array().into_iter().flatten() {
            self.turn.add_text(number, text_of(part, "text"));
            if text_of(part, "type") == "refusal" {
                self.turn.refuse();
                self.turn.add_text(number, text_of(part, "refusal"));
            }
        }
    }

    fn end_turn(&mut self, response: &Value) {
        let counts = &response["usage"];
        let details = &counts["input_tokens_details"];
        let (read, written) = (count_of(&counts["input_tokens"]), count_of(&counts["output_tokens"]));
        let (from_cache, to_cache) =
            (count_of(&details["cached_tokens"]), count_of(&details["cache_write_tokens"]));
        *self.turn.usage_mut() = openai_usage(read, written, from_cache, to_cache);
        let stop_reason = match response["incomplete_details"]["reason"].as_str() {
            Some("content_filter") => StopReason::Refusal,
            Some(_) => StopReason::Length,
            None => StopReason::Stop,
        };
        self.turn.end(stop_reason);
    }
}

/// The id and the phase of a message, in the form of pi-ai: Flue's conversations have the same.
fn text_signature(item: &Value) -> Option<String> {
    let id = item["id"].as_str().filter(|id| !id.is_empty())?;
    let mut signature = json!({"v": 1, "id": id});
    if let Some(phase) = item["phase"].as_str() {
        signature["phase"] = json!(phase);
    }
    Some(signature.to_string())
}

/// Joins the id of a call and the id of its item: both are needed when the call is sent back.
fn call_id(item: &Value) -> String {
    match text_of(item, "id") {
        "" => text_of(item, "call_id").to_owned(),
        id => format!("{}|{id}", text_of(item, "call_id")),
    }
}

fn parts(parts: &Value) -> String {
    let texts = parts.as_array().into_iter().flatten().map(|part| text_of(part, "text"));
    texts.collect::<Vec<_>>().join("\n\n")
}
