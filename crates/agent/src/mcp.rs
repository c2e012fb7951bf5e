//! Tools of MCP servers that are reached by HTTP.
//!
//! A connection provides the server's tools as [`ToolDef`]s, which can be combined with any other tools. The server is not
//! trusted: everything it sends is bounded, its tools get only their arguments, and the client offers it no capabilities
//! (no sampling, no elicitation, no roots). Not supported: servers that are started as a program, and OAuth.

mod call;
mod content;
mod events;
mod failure;
mod http;
mod link;
mod listing;
mod naming;
mod options;
mod progress;
mod questions;
mod request;
mod secrets;
mod sse;
mod streamable;
mod unanswered;

use std::collections::HashSet;
use std::sync::Arc;

use eyot::{Error, ErrorKind, Result};
use eyot_tools::{ToolContext, ToolDef};
use rmcp::model::Tool;
use serde_json::Value;

use link::McpLink;
pub use options::{McpServerOptions, McpTransport};

/// A connection to an MCP server. Dropping it closes it; its tools then answer with an error.
#[derive(Debug)]
pub struct McpConnection {
    link: Arc<McpLink>,
    tools: Vec<ToolDef>,
}

/// Connects to an MCP server and lists its tools.
///
/// A tool is named `mcp__SERVER__TOOL`, where letters other than ASCII's letters, digits, `_` and `-` become `_`; a name of
/// more than 64 bytes is shortened, which its description says. An answer is a text that names images, sound and binary
/// resources by type and size; its images come behind it.
///
/// A call always has an answer. It is an error answer when the server says so, is gone, or does not answer within
/// `timeout_ms`. What the server reports of its progress goes to the call's context. A session that was lost or has expired
/// is opened again by the next call. A call that is cancelled ends at once, and the server is told.
///
/// Errors: `invalid` (an option, an address that is not an MCP server, two tools of the same name), `permission` (HTTP 401
/// and 403), `not_found` (HTTP 404), `unavailable` (nothing answers there, or it refuses), `timeout`, `too_large` (more
/// than 2,000 tools, or a message of more than 16 MiB). Their hints say what to change. No error holds a header's value.
///
/// ```no_run
/// use eyot_agent::{McpServerOptions, connect_mcp_server};
/// use eyot_tools::Toolset;
///
/// # async fn example() -> eyot::Result<()> {
/// let key = std::env::var("DOCS_KEY").unwrap_or_default();
/// let options = McpServerOptions {
///     timeout_ms: 20_000,
///     tools: Some(vec!["search".to_owned()]),
///     ..McpServerOptions::new("https://docs.example.com/mcp")
/// };
/// let docs = connect_mcp_server("docs", options.with_header("authorization", format!("Bearer {key}"))).await?;
/// let tools = Toolset::new("docs", docs.tools().to_vec())?;
/// assert!(tools.get("mcp__docs__search").is_some());
/// docs.close().await;
/// # Ok(())
/// # }
/// ```
pub async fn connect_mcp_server(name: &str, options: McpServerOptions) -> Result<McpConnection> {
    // If this is dropped at any point, the connection closes its link.
    let mut connection = McpConnection { link: Arc::new(McpLink::new(name, &options)?), tools: Vec::new() };
    match connection.list(options.tools.as_deref()).await {
        Ok(tools) => connection.tools = tools,
        Err(error) => {
            connection.close().await;
            return Err(error);
        }
    }
    Ok(connection)
}

/// Connects to several MCP servers, and returns the connections with all of their tools. If one can't be connected to, the
/// others are closed.
pub async fn connect_mcp_servers(
    servers: impl IntoIterator<Item = (String, McpServerOptions)>,
) -> Result<(Vec<McpConnection>, Vec<ToolDef>)> {
    let (mut connections, mut tools) = (Vec::<McpConnection>::new(), Vec::new());
    for (name, options) in servers {
        match connect_mcp_server(&name, options).await {
            Ok(connection) => {
                tools.extend(connection.tools().to_vec());
                connections.push(connection);
            }
            Err(error) => {
                for connection in connections {
                    connection.close().await;
                }
                return Err(error);
            }
        }
    }
    Ok((connections, tools))
}

impl McpConnection {
    /// Returns the name that the caller gave to the server.
    pub fn name(&self) -> &str {
        self.link.server()
    }

    /// Returns the server's tools.
    pub fn tools(&self) -> &[ToolDef] {
        &self.tools
    }

    /// Closes the connection. Waiting calls get an error, and the session is deleted at the server. This waits at most eight
    /// seconds. A second call does nothing.
    pub async fn close(&self) {
        self.link.close().await;
    }

    async fn list(&self, names: Option<&[String]>) -> Result<Vec<ToolDef>> {
        let server = self.name();
        let listed = self.link.connect().await?;
        let chosen = listing::chosen(server, listed, names)?;
        let mut taken = HashSet::new();
        chosen
            .iter()
            .map(|tool| {
                let tool = self.offered(tool)?;
                if taken.insert(tool.name().to_owned()) {
                    Ok(tool)
                } else {
                    Err(duplicate(server, tool.name()))
                }
            })
            .collect()
    }

    /// Returns the tool as it is offered to a model.
    fn offered(&self, tool: &Tool) -> Result<ToolDef> {
        let server = self.name();
        let (name, is_shortened) = naming::tool_name(server, &tool.name);
        // Once more: JSON can write a credential with escapes.
        let hide = |text: String| self.link.secrets().hide_credentials(text);
        let description = hide(naming::description(server, tool, is_shortened));
        let schema = naming::input_schema(server, tool)?;
        let schema = serde_json::from_str(&hide(schema.to_string())).unwrap_or(schema);
        let (link, own_name): (_, Arc<str>) = (self.link.clone(), Arc::from(tool.name.as_ref()));
        let run = move |context: ToolContext, input: Value| {
            let (link, own_name) = (link.clone(), own_name.clone());
            let arguments = if let Value::Object(arguments) = input { arguments } else { Default::default() };
            async move { Ok(call::call(link, own_name, context, arguments).await) }
        };
        Ok(ToolDef::new(&name, &description, schema, run)?.handling_cancel())
    }
}

impl Drop for McpConnection {
    fn drop(&mut self) {
        self.link.abandon();
    }
}

/// Returns the error for two tools with the same name, in the words of the reference.
fn duplicate(server: &str, name: &str) -> Error {
    let message = format!("MCP tools from server \"{server}\" produced duplicate tool name \"{name}\".");
    Error::new(ErrorKind::Invalid, message).with_hint("leave one of them out: list the others in `tools`")
}
