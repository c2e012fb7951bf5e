//! MCP beside the API: the default tools at `/mcp` (the toolset `pool`, or what the provider brings), acting in the pool of the key that opens the
//! session. The sandboxes stay when the session ends.

use std::time::Duration;

use axum::Router;
use axum::extract::{Request, State};
use axum::middleware::{Next, from_fn_with_state};
use axum::response::{IntoResponse, Response};
use eyot::Result;
use eyot_tools::default_tools;
use tokio_util::sync::CancellationToken;

use super::access::{self, Caller};
use super::state::Api;
use crate::mcp::{CallersPool, McpServer, POOL_HEADER, SessionLimits, SessionPools, service};
use crate::problem::Refusal;

/// The limits of sessions: of all keys together, and of one key.
const LIMITS: SessionLimits =
    SessionLimits { timeout: Duration::from_secs(3600), max: 1000, max_of_client: 100 };

/// Makes the server of the tools that every key may use.
pub(super) fn server(api: &Api) -> Result<McpServer> {
    McpServer::new(default_tools(api.engine().provider().as_ref())?, SessionPools::PerCaller)
}

/// Returns the routes of `/mcp`, which need a key.
pub(super) fn router(api: &Api, server: &McpServer, stop: &CancellationToken) -> Router {
    service(server, LIMITS, stop)
        .layer(from_fn_with_state(api.clone(), introduce))
        .layer(from_fn_with_state(api.clone(), access::require))
}

/// Notes on a request which key its session belongs to.
async fn introduce(State(api): State<Api>, caller: Caller, mut request: Request, next: Next) -> Response {
    let named = request.headers().get(POOL_HEADER).and_then(|pool| pool.to_str().ok());
    let pool = caller.pool(named).and_then(|pool| Ok(api.pool(&pool)?.pool().clone()));
    match pool {
        Ok(pool) => {
            request.extensions_mut().insert(CallersPool(pool));
            request.extensions_mut().insert(caller.client());
            next.run(request).await
        }
        Err(refusal) => Refusal::into_response(refusal),
    }
}
