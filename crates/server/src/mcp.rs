//! The tool table over the Model Context Protocol, with the official SDK (`rmcp`): by standard input and output
//! ([`serve_stdio`]), and by streamable HTTP ([`serve_http`]).
//!
//! An MCP session has a pool of its own, which is made when it first uses a sandbox and destroyed when it ends, however
//! it ends; or all sessions share one that stays ([`Pools`]).

mod call;
mod http;
mod listing;
mod pools;
mod progress;
mod session;
mod stdio;

use std::sync::Arc;

use eyot::tools::Toolset;
use eyot::{Error, ErrorKind, Result};
use rmcp::model::Tool;
use tokio_util::task::TaskTracker;

pub use http::{AllowedHost, AllowedOrigin, HttpOptions, Tokens, serve_http};
pub(crate) use http::{SESSION_ID, SessionLimits, service};
pub(crate) use pools::CallersPool;
pub use pools::Pools;
pub use stdio::serve_stdio;

/// The longest message that is taken from a client, in bytes: 16 MiB.
pub const MAX_MESSAGE_BYTES: usize = 16 << 20;

/// How many calls of one session may run at once; further ones are answered with an error.
pub const MAX_CALLS: usize = 64;

/// What is served: tools, and the sandboxes they act on. Clones are the same server.
#[derive(Clone)]
pub struct McpServer {
    inner: Arc<Inner>,
}

struct Inner {
    tools: Toolset,
    listing: Vec<Tool>,
    pools: Pools,
    /// Open as long as a session or the end of one is under way.
    sessions: TaskTracker,
}

impl McpServer {
    /// A server of these tools. `internal`: a tool can't be declared to MCP clients.
    pub fn new(tools: Toolset, pools: Pools) -> Result<Self> {
        let listing = listing::tools(&tools).map_err(|error| {
            Error::new(ErrorKind::Internal, format!("declare the tools: {error}")).with_source(error)
        })?;
        Ok(Self { inner: Arc::new(Inner { tools, listing, pools, sessions: TaskTracker::new() }) })
    }

    /// Comes back when every session has ended and what it had is destroyed.
    pub(crate) async fn ended(&self) {
        self.inner.sessions.close();
        self.inner.sessions.wait().await;
    }
}
