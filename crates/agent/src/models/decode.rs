//! Streams of answers: the vendors' frames in, our events out, with one decoder for each API.
//!
//! Frames are read exactly as on the wire, because the order of the pieces, the signatures of reasoning and the details of
//! a refusal go back to the vendor unchanged.

mod anthropic;
mod chat_completions;
#[cfg(test)]
mod hostile;
mod responses;
mod turn;

use serde_json::Value;

use super::failure;
use super::http_api::HttpApi;
use crate::model::{ModelError, ModelErrorKind, ModelEvent};
use crate::usage::TokenUsage;

/// A frame of a stream of server-sent events.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct StreamFrame {
    pub(super) event: Option<String>,
    pub(super) data: String,
}

/// A decoder for the frames of one turn.
pub(super) trait TurnDecoder: Send {
    /// Reads a frame and returns its events. The last event of a turn is [`ModelEvent::Done`].
    fn read(&mut self, frame: Value) -> Result<Vec<ModelEvent>, ModelError>;

    /// The tokens that the turn took so far, as far as the provider said so.
    fn usage(&self) -> TokenUsage;

    /// Reads a frame that is not JSON: `[DONE]`.
    fn read_end_mark(&mut self) -> Result<Vec<ModelEvent>, ModelError> {
        Ok(Vec::new())
    }

    /// Handles the end of the stream. Returns the last events if the turn was complete without an end mark.
    fn end(&mut self) -> Result<Vec<ModelEvent>, ModelError> {
        Err(ModelError::cut())
    }
}

/// The decoder of an API.
pub(super) fn decoder(api: HttpApi) -> Box<dyn TurnDecoder> {
    match api {
        HttpApi::Messages => Box::<anthropic::AnthropicDecoder>::default(),
        HttpApi::Completions => Box::<chat_completions::CompletionsDecoder>::default(),
        HttpApi::Responses => Box::<responses::ResponsesDecoder>::default(),
    }
}

/// Reads one frame of a stream.
pub(super) fn read(
    decoder: &mut dyn TurnDecoder,
    frame: &StreamFrame,
) -> Result<Vec<ModelEvent>, ModelError> {
    let data = frame.data.trim();
    match data {
        "" => Ok(Vec::new()),
        "[DONE]" => decoder.read_end_mark(),
        _ => match serde_json::from_str::<Value>(data) {
            Ok(value) if frame.event.as_deref() == Some("error") => Err(failure::of_stream(&value)),
            Ok(value) => decoder.read(value),
            Err(_) => Err(ModelError::new(ModelErrorKind::Malformed, "the model's answer is not JSON")),
        },
    }
}

fn text_of<'a>(value: &'a Value, field: &str) -> &'a str {
    value[field].as_str().unwrap_or_default()
}

/// A count of tokens, as OpenAI's APIs say it.
fn count_of(value: &Value) -> u64 {
    value.as_u64().unwrap_or_default()
}

/// The tokens of a turn of OpenAI's APIs, where those that were read include those of the cache.
fn openai_usage(read: u64, written: u64, from_cache: u64, to_cache: u64) -> TokenUsage {
    let input = read.saturating_sub(from_cache.saturating_add(to_cache));
    TokenUsage {
        input,
        output: written,
        cache_read: from_cache,
        cache_write: to_cache,
        ..TokenUsage::default()
    }
}
