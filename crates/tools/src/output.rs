//! The answer of a call.

use eyot::Error;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::clip::clip;

/// The answer of a call: content for the model, the same as data where the tool declares a shape,
/// and whether it failed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ToolOutput {
    /// The content that the model reads.
    pub content: Vec<ToolContent>,
    /// The same as data, in the shape that the tool declares.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub structured: Option<Value>,
    /// The call failed, or what it ran did.
    pub is_error: bool,
}

/// A piece of what the model reads.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum ToolContent {
    /// Text.
    Text(String),
    /// An image.
    Image {
        /// The file, as base64.
        data: String,
        /// The type, such as `image/png`.
        mime_type: String,
    },
}

impl ToolOutput {
    /// Plain text.
    pub fn text(text: impl Into<String>) -> Self {
        Self { content: vec![ToolContent::Text(text.into())], structured: None, is_error: false }
    }

    /// Data: the model reads it as JSON. What can't be JSON (a map with keys that are no strings, say) is an error.
    pub fn json(data: &impl Serialize) -> Self {
        match serde_json::to_value(data) {
            Ok(value) => Self { structured: Some(value.clone()), ..Self::text(value.to_string()) },
            Err(error) => Self::error(format!("the answer is not JSON: {error}")),
        }
    }

    /// A failure, as a sentence that says what to do otherwise. One that repeats a megabyte of arguments keeps its ends.
    pub fn error(sentence: impl Into<String>) -> Self {
        let sentence = clip(&sentence.into(), |_| "so much is not repeated".to_owned());
        Self { is_error: true, ..Self::text(sentence) }
    }

    /// The same answer with an image behind it: a file as base64, and its type, such as `image/png`.
    #[must_use]
    pub fn and_image(mut self, data: impl Into<String>, mime_type: impl Into<String>) -> Self {
        self.content.push(ToolContent::Image { data: data.into(), mime_type: mime_type.into() });
        self
    }

    /// The same answer, said to be a failure or not.
    #[must_use]
    pub fn with_error(self, is_error: bool) -> Self {
        Self { is_error, ..self }
    }

    /// All its text, one piece after the other.
    pub fn as_text(&self) -> String {
        let texts = self.content.iter().filter_map(|piece| match piece {
            ToolContent::Text(text) => Some(text.as_str()),
            ToolContent::Image { .. } => None,
        });
        texts.collect::<Vec<_>>().join("\n")
    }
}

/// The error's sentence, and its hint on a line of its own.
impl From<Error> for ToolOutput {
    fn from(error: Error) -> Self {
        match error.hint() {
            Some(hint) => Self::error(format!("{error}\nhint: {hint}")),
            None => Self::error(error.to_string()),
        }
    }
}
