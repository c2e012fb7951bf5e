//! The list of a server's tools: reading all pages within limits, and selecting tools by name.

use std::collections::HashSet;

use eyot::{Error, Result};
use rmcp::model::{ErrorCode, PaginatedRequestParams, Tool};
use rmcp::service::{Peer, RoleClient, ServiceError};

/// The most tools of one server.
const MAX_TOOLS: usize = 2_000;
/// The most pages of its list.
const MAX_PAGES: usize = 1_000;
/// The most bytes of the whole list.
const MAX_LIST_BYTES: usize = 16 << 20;

/// The reason for a missing list.
pub(super) enum ListingFailure {
    /// The server did not answer.
    Service(ServiceError),
    /// The server's list breaks a limit.
    Limit(String),
}

/// Returns every tool that the server lists.
pub(super) async fn all_tools(peer: &Peer<RoleClient>) -> Result<Vec<Tool>, ListingFailure> {
    let limit = |limit: String| Err(ListingFailure::Limit(limit));
    let (mut tools, mut bytes) = (Vec::new(), 0);
    let mut cursors = HashSet::new();
    let mut cursor = None;
    for _ in 0..MAX_PAGES {
        let page = match peer.list_tools(Some(PaginatedRequestParams::default().with_cursor(cursor))).await {
            Ok(page) => page,
            Err(error) if has_no_tools(peer, &error) => return Ok(tools),
            Err(error) => return Err(ListingFailure::Service(error)),
        };
        bytes += page.tools.iter().map(size).sum::<usize>();
        tools.extend(page.tools);
        if tools.len() > MAX_TOOLS {
            return limit(format!("it lists more than {MAX_TOOLS} tools"));
        }
        if bytes > MAX_LIST_BYTES {
            return limit(format!("its list of tools has more than {} MiB", MAX_LIST_BYTES >> 20));
        }
        let Some(next) = page.next_cursor else { return Ok(tools) };
        bytes += next.len();
        if !cursors.insert(next.clone()) {
            return limit("its list of tools leads back to a page that was already read".to_owned());
        }
        cursor = Some(next);
    }
    limit(format!("its list of tools has more than {MAX_PAGES} pages"))
}

/// Returns whether the server says that it has no tools at all.
fn has_no_tools(peer: &Peer<RoleClient>, error: &ServiceError) -> bool {
    let declares_tools = peer.peer_info().is_some_and(|server| server.capabilities.tools.is_some());
    matches!(error, ServiceError::McpError(error) if error.code == ErrorCode::METHOD_NOT_FOUND)
        && !declares_tools
}

fn size(tool: &Tool) -> usize {
    serde_json::to_vec(tool).map_or(MAX_LIST_BYTES, |json| json.len())
}

/// Returns the tools with these names, or all of them.
pub(super) fn chosen(server: &str, tools: Vec<Tool>, names: Option<&[String]>) -> Result<Vec<Tool>> {
    let Some(names) = names else { return Ok(tools) };
    let unknown = names.iter().find(|name| !tools.iter().any(|tool| tool.name == name.as_str()));
    if let Some(unknown) = unknown {
        let there: Vec<String> = tools.iter().map(|tool| format!("`{}`", tool.name)).collect();
        let there = if there.is_empty() { "no tools".to_owned() } else { there.join(", ") };
        let reason = format!("names `{unknown}`, which MCP server `{server}` does not have; it has {there}");
        return Err(Error::invalid("tools", eyot_tools::clip(&reason, |_| "more tools".to_owned())));
    }
    Ok(tools.into_iter().filter(|tool| names.iter().any(|name| tool.name == name.as_str())).collect())
}
