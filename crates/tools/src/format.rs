//! The tools of a toolset as the programs want them that show them to a model.

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::definition::{Effect, ToolDef};
use super::set::Toolset;

/// The form of a tool's declaration.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ToolFormat {
    /// Anthropic's messages: `{name, description, input_schema}`.
    Anthropic,
    /// OpenAI's chat completions: `{type: "function", function: {name, description, parameters}}`.
    #[serde(rename = "openai")]
    OpenAi,
    /// OpenAI's responses: `{type: "function", name, description, parameters, strict: false}`.
    #[serde(rename = "openai-responses")]
    OpenAiResponses,
    /// The Model Context Protocol: `{name, description, inputSchema, outputSchema?, annotations?}`.
    Mcp,
}

impl ToolFormat {
    /// Every format there is.
    pub const ALL: [Self; 4] = [Self::Anthropic, Self::OpenAi, Self::OpenAiResponses, Self::Mcp];

    /// The name, such as `openai-responses`.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Anthropic => "anthropic",
            Self::OpenAi => "openai",
            Self::OpenAiResponses => "openai-responses",
            Self::Mcp => "mcp",
        }
    }
}

impl Toolset {
    /// An array with every tool in this form, to be handed over as it is.
    pub fn schemas(&self, format: ToolFormat) -> Value {
        self.tools().iter().map(|tool| tool.declaration(format)).collect()
    }
}

impl ToolDef {
    /// The tool in this form.
    pub fn declaration(&self, format: ToolFormat) -> Value {
        let (name, description, schema) = (self.name(), self.description(), self.input_schema());
        match format {
            ToolFormat::Anthropic => match self.anthropic_type() {
                Some(of_its_own) => json!({ "type": of_its_own, "name": name }),
                None => json!({ "name": name, "description": description, "input_schema": schema }),
            },
            ToolFormat::OpenAi => {
                let function = json!({ "name": name, "description": description, "parameters": schema });
                json!({ "type": "function", "function": function })
            }
            // Strict is the default there, and takes no argument that may be left out.
            ToolFormat::OpenAiResponses => json!({
                "type": "function", "name": name, "description": description, "parameters": schema, "strict": false,
            }),
            ToolFormat::Mcp => {
                let mut tool = json!({ "name": name, "description": description, "inputSchema": schema });
                if let Some(output) = self.output_schema() {
                    tool["outputSchema"] = output.clone();
                }
                if let Some(effect) = self.effect {
                    tool["annotations"] = annotations(effect);
                }
                tool
            }
        }
    }
}

/// Returns MCP's hints. Without them a client assumes the worst.
fn annotations(effect: Effect) -> Value {
    match effect {
        Effect::Reads => json!({ "readOnlyHint": true, "openWorldHint": false }),
        Effect::Adds => json!({
            "readOnlyHint": false, "destructiveHint": false, "idempotentHint": true, "openWorldHint": false,
        }),
    }
}
