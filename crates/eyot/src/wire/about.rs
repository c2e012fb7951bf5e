//! The server itself and its tools, on the wire.

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// The answer of a server that is up.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Health {
    /// `ok`.
    pub status: String,
}

/// The versions of a server and its API.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Version {
    /// Eyot's.
    pub version: String,
    /// The API's.
    pub api: String,
}

/// The answer of a tool.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct ToolAnswer {
    /// The pieces that the model reads.
    pub content: Vec<String>,
    /// The same as data, where the tool has it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(value_type = Option<Object>))]
    pub structured: Option<Value>,
    /// It says what went wrong.
    pub is_error: bool,
}
