//! Flue's routes, as Flue has them: agents and runs at the root, inspection below `/admin`. Keys, pools and limits hold as
//! everywhere, and a refusal of theirs has Flue's envelope.

use axum::Router;
use axum::body::{Body, to_bytes};
use axum::extract::{DefaultBodyLimit, FromRequestParts, Request, State};
use axum::http::{HeaderValue, header};
use axum::middleware::{Next, from_fn, from_fn_with_state};
use axum::response::{IntoResponse, Response};
use eyot::wire::{PROBLEM_JSON, Problem};
use eyot_agent::{RouterOptions, admin_router, router};
use serde_json::json;
use tokio_util::sync::CancellationToken;

use super::OfPool;
use crate::api::access::{self, Access, Caller};
use crate::api::query::Params;
use crate::api::small_bodies;
use crate::api::state::Api;
use crate::problem::Refusal;

/// The largest problem that is put into Flue's envelope, in bytes.
const MAX_PROBLEM_BYTES: usize = 64 << 10;

/// Returns Flue's routes; none, if the server runs no agents.
pub(in crate::api) fn routes(api: &Api, stop: &CancellationToken) -> Router {
    let Some(agents) = api.agents() else { return Router::new() };
    let options = RouterOptions { is_local: api.access() == Access::Anybody, stop: stop.clone() };
    router(agents.clone(), options.clone())
        .nest("/admin", admin_router(agents.clone(), options))
        .layer(from_fn_with_state(api.clone(), tell_access))
        .layer(from_fn_with_state(api.clone(), small_bodies::read_first))
        .layer(from_fn_with_state(api.clone(), require_key))
        .layer(DefaultBodyLimit::max(api.limits().max_json_bytes))
        .layer(from_fn(in_envelope))
}

/// Tells whether a path without a route is one of Flue's, so that its refusal has Flue's envelope.
pub(in crate::api) fn is_of_flue(path: &str) -> bool {
    let first = path.split('/').nth(1);
    matches!(first, Some("agents" | "runs"))
}

/// Tells whether a path is that of a document, which has nothing of anybody: what makes a client from it needs no key.
fn is_document(path: &str) -> bool {
    matches!(path, "/openapi.json" | "/agents/openapi.json" | "/admin/openapi.json")
}

/// Lets a request with a right key pass, and every request for a document.
async fn require_key(State(api): State<Api>, request: Request, next: Next) -> Response {
    if is_document(request.uri().path()) {
        next.run(request).await
    } else {
        access::require(State(api), request, next).await
    }
}

/// Tells the routes what the caller may see and start.
async fn tell_access(State(api): State<Api>, request: Request, next: Next) -> Response {
    if is_document(request.uri().path()) {
        return next.run(request).await;
    }
    let (mut parts, body) = request.into_parts();
    let told = async {
        let caller = Caller::from_request_parts(&mut parts, &api).await?;
        let Params(OfPool { pool }) = Params::from_request_parts(&mut parts, &api).await?;
        let pool = caller.pool(pool.as_deref())?;
        Ok::<_, Refusal>(caller.run_access(Some(pool.to_string())))
    };
    match told.await {
        Ok(access) => {
            parts.extensions.insert(access);
            next.run(Request::from_parts(parts, body)).await
        }
        Err(refused) => refused.into_response(),
    }
}

/// Puts the problem of a refusal into Flue's envelope.
async fn in_envelope(request: Request, next: Next) -> Response {
    let response = next.run(request).await;
    let is_problem = response.headers().get(header::CONTENT_TYPE).is_some_and(|kind| kind == PROBLEM_JSON);
    if !is_problem {
        return response;
    }
    let (mut parts, body) = response.into_parts();
    let bytes = to_bytes(body, MAX_PROBLEM_BYTES).await.unwrap_or_default();
    let Ok(problem) = serde_json::from_slice::<Problem>(&bytes) else {
        return Response::from_parts(parts, Body::from(bytes));
    };
    let details = problem.hint.unwrap_or_default();
    let envelope = json!({"error": {"type": problem.kind, "message": problem.detail, "details": details}});
    parts.headers.remove(header::CONTENT_LENGTH);
    parts.headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    Response::from_parts(parts, Body::from(envelope.to_string()))
}
