//! A decoder for OpenAI's chat completions.

use serde_json::Value;
use uuid::Uuid;

use super::turn::TurnBuilder;
use super::{TurnDecoder, count_of, openai_usage, text_of};
use crate::message::StopReason;
use crate::model::{ModelError, ModelErrorKind, ModelEvent};
use crate::models::failure;
use crate::models::wire::chat_completions::REASONING_FIELDS;
use crate::usage::TokenUsage;

/// The decoder for OpenAI's chat completions. Only tool calls have numbers in a frame, so pieces are numbered here: text or
/// reasoning continues until another piece begins.
#[derive(Default)]
pub(super) struct CompletionsDecoder {
    turn: TurnBuilder,
    next_number: u64,
    open: Option<OpenPiece>,
    calls: Vec<OpenCall>,
    stop_reason: Option<StopReason>,
    is_done: bool,
}

/// A piece of text or reasoning that is not complete.
#[derive(Clone, Copy, PartialEq)]
enum OpenPiece {
    Text(u64),
    Thinking(u64),
}

/// A tool call that is not complete.
struct OpenCall {
    number: u64,
    index: Option<u64>,
    id: String,
}

impl TurnDecoder for CompletionsDecoder {
    fn read(&mut self, frame: Value) -> Result<Vec<ModelEvent>, ModelError> {
        if !frame["error"].is_null() {
            return Err(failure::of_stream(&frame));
        }
        let choice = &frame["choices"][0];
        self.count(&frame["usage"]);
        self.count(&choice["usage"]);
        self.add(&choice["delta"]);
        // Some servers give an empty reason as long as the answer goes on.
        if let Some(reason) = choice["finish_reason"].as_str().filter(|reason| !reason.is_empty()) {
            self.stop_reason = Some(stop_reason(reason)?);
        }
        Ok(self.turn.take_events())
    }

    fn usage(&self) -> TokenUsage {
        self.turn.usage()
    }

    fn read_end_mark(&mut self) -> Result<Vec<ModelEvent>, ModelError> {
        self.end()
    }

    fn end(&mut self) -> Result<Vec<ModelEvent>, ModelError> {
        match self.stop_reason {
            Some(stop_reason) if !self.is_done => {
                self.is_done = true;
                self.turn.end(stop_reason);
                Ok(self.turn.take_events())
            }
            Some(_) => Ok(Vec::new()),
            None => Err(ModelError::cut()),
        }
    }
}

impl CompletionsDecoder {
    fn add(&mut self, delta: &Value) {
        let reasoning = REASONING_FIELDS.into_iter().find(|field| !text_of(delta, field).is_empty());
        if let Some(field) = reasoning {
            self.add_thinking(field, text_of(delta, field));
        }
        self.add_text(text_of(delta, "content"));
        if !text_of(delta, "refusal").is_empty() {
            self.turn.refuse();
            self.add_text(text_of(delta, "refusal"));
        }
        for call in delta["tool_calls"].as_array().into_iter().flatten() {
            self.add_call(call);
        }
    }

    fn add_text(&mut self, delta: &str) {
        if delta.is_empty() {
            return;
        }
        let number = match self.open {
            Some(OpenPiece::Text(number)) => number,
            _ => {
                self.close();
                let number = self.number();
                self.open = Some(OpenPiece::Text(number));
                number
            }
        };
        self.turn.add_text(number, delta);
    }

    fn add_thinking(&mut self, field: &str, delta: &str) {
        let number = match self.open {
            Some(OpenPiece::Thinking(number)) => number,
            _ => {
                self.close();
                let number = self.number();
                self.turn.begin_thinking(number);
                self.turn.add_signature(number, field);
                self.open = Some(OpenPiece::Thinking(number));
                number
            }
        };
        self.turn.add_thinking(number, delta);
    }

    fn add_call(&mut self, call: &Value) {
        let (index, id) = (call["index"].as_u64(), text_of(call, "id"));
        let known = self.calls.iter().rfind(|known| known.is(index, id)).map(|known| known.number);
        let number = known.unwrap_or_else(|| self.begin_call(index, id, text_of(&call["function"], "name")));
        match &call["function"]["arguments"] {
            Value::String(delta) => self.turn.add_arguments(number, delta),
            // Some servers send the object itself instead of text.
            arguments @ Value::Object(_) => self.turn.add_arguments(number, &arguments.to_string()),
            _ => {}
        }
    }

    fn begin_call(&mut self, index: Option<u64>, id: &str, name: &str) -> u64 {
        self.close();
        let number = self.number();
        let id = if id.is_empty() { format!("call_{}", Uuid::now_v7().simple()) } else { id.to_owned() };
        self.turn.begin_call(number, &id, name);
        self.calls.push(OpenCall { number, index, id });
        number
    }

    /// Ends the current piece of text or reasoning.
    fn close(&mut self) {
        if let Some(OpenPiece::Text(number) | OpenPiece::Thinking(number)) = self.open.take() {
            self.turn.end_piece(number);
        }
    }

    fn number(&mut self) -> u64 {
        self.next_number += 1;
        self.next_number
    }

    fn count(&mut self, counts: &Value) {
        if !counts.is_object() {
            return;
        }
        let details = &counts["prompt_tokens_details"];
        let from_cache =
            details["cached_tokens"].as_u64().unwrap_or_else(|| count_of(&counts["prompt_cache_hit_tokens"]));
        let (read, written) = (count_of(&counts["prompt_tokens"]), count_of(&counts["completion_tokens"]));
        let to_cache = count_of(&details["cache_write_tokens"]);
        *self.turn.usage_mut() = openai_usage(read, written, from_cache, to_cache);
    }
}

impl OpenCall {
    /// Returns whether a piece belongs to this call. Some servers give every call the same index, so a different id means
    /// another call.
    fn is(&self, index: Option<u64>, id: &str) -> bool {
        match index {
            Some(_) => self.index == index && (id.is_empty() || id == self.id),
            None => id.is_empty() || id == self.id,
        }
    }
}

fn stop_reason(name: &str) -> Result<StopReason, ModelError> {
    match name {
        // `model_length` is Mistral's, `max_tokens` some gateways'.
        "length" | "model_length" | "max_tokens" => Ok(StopReason::Length),
        // OpenAI's, then those of TGI and of gateways.
        "stop" | "eos" | "eos_token" | "stop_sequence" | "end_turn" | "end" => Ok(StopReason::Stop),
        "tool_calls" | "function_call" => Ok(StopReason::ToolUse),
        "content_filter" => Ok(StopReason::Refusal),
        "network_error" => {
            Err(ModelError::new(ModelErrorKind::Unavailable, "the provider lost the model's answer"))
        }
        // vLLM's `abort`, the `error` of others, and what is new: nobody says that the answer is whole.
        other => Err(failure::of_end(other)),
    }
}
