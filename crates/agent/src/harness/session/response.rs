//! The answer of a prompt.

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::operation::OperationResult;
use crate::usage::TokenUsage;

/// The answer of a prompt.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PromptResponse {
    /// The model's last text.
    pub text: String,
    /// The result, if one was asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub data: Option<Value>,
    /// The tokens of the prompt, including its summaries but not its tasks.
    pub usage: TokenUsage,
    /// The model's id.
    pub model: String,
}

impl OperationResult for PromptResponse {
    fn to_event(&self) -> Value {
        let model = json!({"id": self.model});
        match &self.data {
            Some(data) => json!({"data": data, "usage": self.usage, "model": model}),
            None => json!({"text": self.text, "usage": self.usage, "model": model}),
        }
    }

    fn usage(&self) -> Option<TokenUsage> {
        Some(self.usage)
    }
}
