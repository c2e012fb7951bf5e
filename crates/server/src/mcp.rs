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

use std::sync::{Arc, OnceLock};

use eyot::{Error, ErrorKind, Result, SandboxSpec};
use eyot_tools::Toolset;
use rmcp::model::Tool;
use tokio_util::task::TaskTracker;

pub use http::{AllowedHost, AllowedOrigin, HttpOptions, Tokens, serve_http};
pub(crate) use http::{POOL_HEADER, SESSION_ID, SessionLimits, service};
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
    /// The spec that sandboxes are made from, as far as it is known here.
    template: OnceLock<SandboxSpec>,
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
        let (template, sessions) = (OnceLock::new(), TaskTracker::new());
        Ok(Self { inner: Arc::new(Inner { tools, listing, pools, template, sessions }) })
    }

    /// Tells clients what sandboxes that are made from this spec reach and hold. Pools of callers say
    /// it themselves.
    #[must_use]
    pub fn with_template(self, template: SandboxSpec) -> Self {
        self.inner.template.get_or_init(|| template);
        self
    }

    /// Waits until every session has ended and its pool is destroyed.
    pub(crate) async fn ended(&self) {
        self.inner.sessions.close();
        self.inner.sessions.wait().await;
    }
}
