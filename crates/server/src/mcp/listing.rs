//! The tools in the form in which MCP clients list them.

use eyot_tools::{ToolFormat, Toolset};
use rmcp::model::Tool;
use serde_json::Error;

/// Returns the tools in the order of the table.
pub(super) fn tools(tools: &Toolset) -> Result<Vec<Tool>, Error> {
    tools.tools().iter().map(|tool| serde_json::from_value(tool.declaration(ToolFormat::Mcp))).collect()
}
