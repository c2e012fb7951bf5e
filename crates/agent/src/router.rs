//! Agents over HTTP, with the routes, the bodies and the quirks of Flue 0.7.1.

mod access;
mod admin;
mod body;
mod cursor;
mod document;
mod failure;
mod invoke;
mod parameters;
mod run_streams;
mod runs;
mod shapes;

use axum::Router;
use axum::routing::{get, post};
use tokio_util::sync::CancellationToken;

use crate::agents::Agents;

pub use access::RunAccess;
pub use document::{admin_document, public_document};
pub use failure::{RouteFailure, route_not_found};

/// Options of the routers.
#[derive(Debug, Clone, Default)]
pub struct RouterOptions {
    /// Lets callers start every agent, and adds to errors what helps the agents' author. For a server whose callers are its
    /// own people; Flue calls it `FLUE_MODE=local`.
    pub is_local: bool,
    /// Ends the streams of events. Their clients come back with `Last-Event-ID`.
    pub stop: CancellationToken,
}

/// The state that all handlers share.
#[derive(Clone)]
struct RouterState {
    agents: Agents,
    options: RouterOptions,
}

/// Returns the routes that start agents and show their runs, as Flue's `flue()`: `POST /agents/{name}/{id}`, `GET /runs/{run}`,
/// `GET /runs/{run}/events`, `GET /runs/{run}/stream`, and their description at `/openapi.json` and `/agents/openapi.json`.
///
/// A program mounts it where it likes. It lets everybody in: what callers may see is set by [`RunAccess`].
pub fn router(agents: Agents, options: RouterOptions) -> Router {
    let only_post = async || RouteFailure::method_not_allowed("POST");
    let only_get = async || RouteFailure::method_not_allowed("GET");
    Router::new()
        .route("/openapi.json", get(document::public))
        .route("/agents/openapi.json", get(document::public))
        .route("/agents/{name}/{id}", post(invoke::invoke).fallback(only_post))
        .route("/runs/{run}", get(runs::get).fallback(only_get))
        .route("/runs/{run}/events", get(runs::events).fallback(only_get))
        .route("/runs/{run}/stream", get(runs::stream).fallback(only_get))
        .with_state(RouterState { agents, options })
}

/// Returns the routes that list agents, their instances and their runs, as Flue's `admin()`, to be nested at `/admin`, say. They
/// change nothing. Beside Flue's there are `/runs/{run}/events` and `/runs/{run}/stream`, which play a run again.
pub fn admin_router(agents: Agents, options: RouterOptions) -> Router {
    Router::new()
        .route("/openapi.json", get(document::admin))
        .route("/agents", get(admin::agents))
        .route("/agents/{name}/instances", get(admin::instances))
        .route("/agents/{name}/instances/{id}/runs", get(admin::instance_runs))
        .route("/runs", get(admin::runs))
        .route("/runs/{run}", get(runs::get))
        .route("/runs/{run}/events", get(runs::events))
        .route("/runs/{run}/stream", get(runs::stream))
        .fallback(failure::nothing_here)
        .method_not_allowed_fallback(failure::nothing_here)
        .with_state(RouterState { agents, options })
}
