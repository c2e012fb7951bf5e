//! MCP by streamable HTTP at `/mcp`. Every request passes, in this order: the check of `Host` and
//! `Origin`, which keeps web pages out; CORS, for allowed origins; the token; its session; and only
//! then rmcp.
//!
//! There is no TLS: for clients on other machines, put a proxy with a certificate in front.

mod sessions;

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::http::HeaderName;
use axum::middleware::from_fn_with_state;
use eyot::{Error, Result};
use prometheus_client::metrics::gauge::Gauge;
use rmcp::transport::streamable_http_server::session::local::LocalSessionManager;
use rmcp::transport::{StreamableHttpServerConfig, StreamableHttpService};
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

use super::session::McpSession;
use super::{MAX_MESSAGE_BYTES, McpServer};
use crate::http::cors::cors;
use crate::http::guard::{self, Guard};
use crate::http::limits::ServeLimits;
use crate::http::listen::{self, Listener};
use crate::http::token;
use sessions::McpSessions;
pub(crate) use sessions::SessionLimits;

pub use crate::http::token::Tokens;
pub use crate::http::{AllowedHost, AllowedOrigin};

pub(crate) const SESSION_ID: HeaderName = HeaderName::from_static("mcp-session-id");
/// The header by which a client has more than one pool without sessions, or another than its key's.
pub(crate) const POOL_HEADER: HeaderName = HeaderName::from_static("eyot-pool");

/// The options of a server: its callers, and the lifetime of sessions.
#[derive(Debug, Clone)]
pub struct HttpOptions {
    /// The tokens that let clients in.
    pub tokens: Tokens,
    /// Names by which clients may call the server, beside loopback's.
    pub allowed_hosts: Vec<AllowedHost>,
    /// Origins of the web pages that may use the server from a browser. Empty: none may.
    pub allowed_origins: Vec<AllowedOrigin>,
    /// The time after which an unused session ends. One whose client listens, or waits for an
    /// answer, is in use.
    pub session_timeout: Duration,
    /// The most sessions at once.
    pub max_sessions: usize,
    /// The limits of connections and requests.
    pub limits: ServeLimits,
}

impl HttpOptions {
    /// Takes these tokens. Sessions end after an hour without use, and there may be 100 of them.
    pub fn new(tokens: Tokens) -> Self {
        let session_timeout = Duration::from_secs(3600);
        let (allowed_hosts, allowed_origins, limits) = (vec![], vec![], ServeLimits::default());
        Self { tokens, allowed_hosts, allowed_origins, session_timeout, max_sessions: 100, limits }
    }
}

/// Serves on this listener until `stop` is cancelled, and returns when every session has been
/// cleaned up. Fails with `invalid` if other machines can reach the listener and the token was
/// generated rather than given.
pub async fn serve_http(
    server: &McpServer,
    listener: TcpListener,
    options: HttpOptions,
    stop: CancellationToken,
) -> Result<()> {
    refuse_to_be_open(&listener, &options.tokens)?;
    let (limits, cut) = (options.limits.clone(), CancellationToken::new());
    let router = router(server, options, &stop);
    listen::serve(Listener::Tcp(listener), router, &limits, Gauge::default(), stop, cut).await;
    server.ended().await;
    Ok(())
}

fn refuse_to_be_open(listener: &TcpListener, tokens: &Tokens) -> Result<()> {
    let loopback = listener.local_addr().is_ok_and(|address| address.ip().is_loopback());
    if loopback || !tokens.is_generated() {
        Ok(())
    } else {
        let reason = "can be reached from other machines, and no token was given";
        Err(Error::invalid("address", reason).with_hint("give a token, or listen on 127.0.0.1"))
    }
}

fn router(server: &McpServer, options: HttpOptions, stop: &CancellationToken) -> Router {
    let HttpOptions { session_timeout: timeout, max_sessions: max, .. } = options;
    service(server, SessionLimits { timeout, max, max_of_client: max }, stop)
        .layer(from_fn_with_state(Arc::new(options.tokens), token::require))
        .layer(cors(&options.allowed_origins))
        .layer(from_fn_with_state(
            Arc::new(Guard::new(options.allowed_hosts, options.allowed_origins)),
            guard::check,
        ))
}

/// Serves MCP at the path where it is mounted. The layers above authenticate the client and note it
/// as a [`token::Client`].
pub(crate) fn service(server: &McpServer, limits: SessionLimits, stop: &CancellationToken) -> Router {
    let manager = Arc::new(session_manager());
    let sessions = McpSessions::new(Arc::clone(&manager), server, limits, stop);
    // Ours comes first and says more; two lists would only differ.
    let config = StreamableHttpServerConfig::default()
        .disable_allowed_hosts()
        .disable_allowed_origins()
        .with_max_request_body_bytes(MAX_MESSAGE_BYTES)
        .with_cancellation_token(stop.clone());
    let server = server.clone();
    let mcp = StreamableHttpService::new(move || Ok(McpSession::over_http(&server)), manager, config);
    Router::new().route_service("/mcp", mcp).layer(from_fn_with_state(sessions, sessions::keep))
}

/// Makes the session manager without rmcp's timeout, which would end a session in the middle of a
/// long call. [`McpSessions`](sessions::McpSessions) ends unused ones.
fn session_manager() -> LocalSessionManager {
    let mut manager = LocalSessionManager::default();
    manager.session_config.keep_alive = None;
    manager
}
