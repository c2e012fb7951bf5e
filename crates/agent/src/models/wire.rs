//! The bodies of requests: a [`ModelRequest`] in, the vendor's JSON out, with one function for each API.
//!
//! The bodies are the same as those of pi-ai 0.76, the model library of Flue's runtime, for the same conversation. The test
//! in `pi_bodies.rs` compares them. These differences are intended:
//!
//! - Arguments of a tool call that are not a JSON object go back as `{"INVALID_JSON": text}`, which is how Anthropic's guide to
//!   streamed arguments sends such a text. pi-ai guesses at an object.
//! - The answer of a tool call that the conversation no longer has is left out. APIs refuse it.
//! - Reasoning at the end of a turn is left out, and so is a turn of reasoning alone. APIs refuse them.
//! - An answer of a tool that is empty stays empty for OpenAI. pi-ai writes that an image is attached.
//! - Anthropic: a tool's schema is sent whole, with `$defs` and `additionalProperties`. pi-ai keeps `properties` and `required`.
//! - Anthropic: reasoning whose text was left out goes back with its signature. pi-ai leaves it out.
//! - Anthropic: images of a failed call stand behind the answers of its turn. pi-ai sends them inside, which the API refuses.
//! - Anthropic: models that always reason are asked for low effort when reasoning is off. pi-ai asks them not to reason, which
//!   the API refuses.
//! - Anthropic: a budget for reasoning is never below 1024 tokens, which is the least that the API takes. Where a turn has no
//!   room for it, the model is asked not to reason.
//! - OpenAI: the limit of output tokens is always sent. pi-ai sends it only if the caller set one.
//! - Chat completions for a server that is not OpenAI's: instructions have the role `system`, the limit of output tokens is
//!   `max_tokens`, and `store` is not sent, because those servers expect this. pi-ai decides by a list of host names.
//! - Chat completions: `tools` is left out if there are none. pi-ai sends an empty list after a tool call; OpenAI's API
//!   refuses that.
//! - Responses: two texts of one turn that have no ids get two. pi-ai gives both the same, which the API refuses.
//! - Responses: a text's own id is sent where the reasoning before it is. The API refuses one without the other.
//! - Responses: a tool call of another model has no item id. pi-ai derives one from a hash if the provider differs.
//! - Responses: a tool call's item id is sent only with the reasoning before it. The API refuses one without the other.
//! - OpenAI: `minimal` is `low` for the models that do not know it.
//! - Responses: encrypted reasoning is requested for every reasoning model, because some models reason without being asked.

pub(super) mod anthropic;
pub(super) mod chat_completions;
#[cfg(test)]
mod efforts;
mod history;
#[cfg(test)]
mod pi_bodies;
pub(super) mod responses;
#[cfg(test)]
mod sent_back;

use serde_json::{Value, json};

use super::facts::ReasoningStyle;
use super::http_api::HttpApi;
use crate::message::ContentBlock;
use crate::model::{ModelError, ModelErrorKind, ModelInfo, ModelRequest, ThinkingLevel};

/// The facts about a model that the bodies depend on.
#[derive(Debug, Clone)]
pub(super) struct WireModel {
    pub(super) info: ModelInfo,
    pub(super) api: HttpApi,
    pub(super) style: Option<ReasoningStyle>,
    /// Set if the server is the vendor's own, not a compatible one.
    pub(super) is_vendors: bool,
    /// Set if OpenAI may store the answers of its responses API.
    pub(super) store: bool,
}

/// Returns the body of a request for one turn.
pub(super) fn body(model: &WireModel, request: &ModelRequest) -> Value {
    match model.api {
        HttpApi::Messages => anthropic::body(model, request),
        HttpApi::Completions => chat_completions::body(model, request),
        HttpApi::Responses => responses::body(model, request),
    }
}

/// Refuses a request that the vendor's API is known to refuse whatever stands in it: OpenAI's newer models take no tools by chat
/// completions while they reason.
pub(super) fn check(model: &WireModel, request: &ModelRequest) -> Result<(), ModelError> {
    let is_new = matches!(model.style, Some(ReasoningStyle::Effort { has_highest: true, .. }));
    let reasons = model.effort(request) != Some("none");
    let is_completions = model.api == HttpApi::Completions;
    if !(is_completions && model.is_vendors && is_new && reasons && !request.tools.is_empty()) {
        return Ok(());
    }
    let id = &model.info.id;
    let message =
        format!("`{id}` takes no tools by chat completions: use `openai/{id}`, which is the responses API");
    Err(ModelError::new(ModelErrorKind::Invalid, message))
}

impl WireModel {
    /// Returns the most tokens that the model may write in this turn.
    fn max_tokens(&self, request: &ModelRequest) -> u32 {
        request.max_tokens.unwrap_or(self.info.max_tokens)
    }

    /// Returns OpenAI's name for the requested effort, or `None` if the request should not mention it.
    fn effort(&self, request: &ModelRequest) -> Option<&'static str> {
        let (off, has_highest) = match self.style {
            _ if !self.info.reasoning => return None,
            Some(ReasoningStyle::Effort { off, has_highest }) => (off, has_highest),
            Some(ReasoningStyle::Budget | ReasoningStyle::Adaptive { .. }) | None => (None, false),
        };
        match request.thinking {
            ThinkingLevel::Off => off,
            // Models that know `none` or `xhigh` do not know `minimal`.
            ThinkingLevel::Minimal if off.is_some() || has_highest => Some("low"),
            ThinkingLevel::Minimal => Some("minimal"),
            ThinkingLevel::Low => Some("low"),
            ThinkingLevel::Medium => Some("medium"),
            ThinkingLevel::XHigh if has_highest => Some("xhigh"),
            ThinkingLevel::High | ThinkingLevel::XHigh => Some("high"),
        }
    }
}

/// Returns the arguments of a tool call as an object, whatever the model wrote.
fn arguments_object(arguments: &Value) -> Value {
    match arguments {
        Value::Object(_) => arguments.clone(),
        Value::Null => json!({}),
        Value::String(text) => json!({ "INVALID_JSON": text }),
        other => json!({ "INVALID_JSON": other.to_string() }),
    }
}

/// Joins the pieces of text, one per line.
fn joined_text(content: &[ContentBlock]) -> String {
    content.iter().filter_map(ContentBlock::as_text).collect::<Vec<_>>().join("\n")
}

fn has_images(content: &[ContentBlock]) -> bool {
    content.iter().any(|block| matches!(block, ContentBlock::Image { .. }))
}

fn data_url(data: &str, mime_type: &str) -> String {
    format!("data:{mime_type};base64,{data}")
}

/// Returns OpenAI's cache key for a conversation, which has at most 64 characters.
fn prompt_cache_key(session_id: &str) -> String {
    session_id.chars().take(64).collect()
}

/// Returns an id with only letters, digits, `_` and `-`, and at most `most_bytes` bytes.
fn plain_id(id: &str, most_bytes: usize) -> String {
    let plain = |c: char| if c.is_ascii_alphanumeric() || c == '_' || c == '-' { c } else { '_' };
    id.chars().map(plain).take(most_bytes).collect()
}

/// Splits a tool call's id. Ids from OpenAI's responses API have two parts, `call|item`.
fn id_parts(id: &str) -> (&str, Option<&str>) {
    match id.split_once('|') {
        Some((call, item)) => (call, Some(item)),
        None => (id, None),
    }
}
