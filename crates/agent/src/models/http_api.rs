//! The protocols by which models are asked over HTTP.

use crate::model::ModelApi;

/// A protocol that is spoken over HTTP.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum HttpApi {
    /// Anthropic's Messages.
    Messages,
    /// OpenAI's chat completions.
    Completions,
    /// OpenAI's responses.
    Responses,
}

impl HttpApi {
    /// The protocol of an API; `None`: it is not spoken over HTTP.
    pub(super) fn of(api: ModelApi) -> Option<Self> {
        match api {
            ModelApi::AnthropicMessages => Some(Self::Messages),
            ModelApi::OpenaiCompletions => Some(Self::Completions),
            ModelApi::OpenaiResponses => Some(Self::Responses),
            ModelApi::InProcess => None,
        }
    }
}
