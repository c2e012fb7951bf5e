//! The tool table over the Model Context Protocol, with the official SDK (`rmcp`): by standard
//! input and output ([`serve_stdio`]), and by streamable HTTP ([`serve_http`]).
//!
//! Each MCP session has a new pool, which is made when the session first uses a sandbox and
//! destroyed when it ends, however it ends; or all sessions share one pool that stays
//! ([`SessionPools`]).

mod call;
mod http;
mod listing;
mod pools;
mod progress;
mod session;
mod stdio;

use std::sync::Arc;

use eyot::{Error, ErrorKind, Result};
use eyot_tools::Toolset;
use rmcp::model::Tool;
use tokio_util::task::TaskTracker;

pub use http::{AllowedHost, AllowedOrigin, HttpOptions, Tokens, serve_http};
pub(crate) use http::{SESSION_ID, SessionLimits, service};
pub(crate) use pools::CallersPool;
pub use pools::SessionPools;
pub use stdio::serve_stdio;

/// The longest message of a client, in bytes: 16 MiB.
pub const MAX_MESSAGE_BYTES: usize = 16 << 20;

/// The most calls of one session at once. Further ones are answered with an error.
pub const MAX_CALLS: usize = 64;

/// The tools that are served, and the pools that they act on. Clones are the same server.
#[derive(Clone)]
pub struct McpServer {
    inner: Arc<Inner>,
}

struct Inner {
    tools: Toolset,
    listing: Vec<Tool>,
    pools: SessionPools,
    /// Tracks the sessions that are open or ending.
    sessions: TaskTracker,
}

impl McpServer {
    /// Makes a server of these tools. Fails with `internal` if a tool cannot be declared to MCP
    /// clients.
    pub fn new(tools: Toolset, pools: SessionPools) -> Result<Self> {
        let listing = listing::tools(&tools).map_err(|error| {
            Error::new(ErrorKind::Internal, format!("declare the tools: {error}")).with_source(error)
        })?;
        Ok(Self { inner: Arc::new(Inner { tools, listing, pools, sessions: TaskTracker::new() }) })
    }

    /// Waits until every session has ended and its pool is destroyed.
    pub(crate) async fn ended(&self) {
        self.inner.sessions.close();
        self.inner.sessions.wait().await;
    }
}
