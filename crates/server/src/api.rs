//! The HTTP API under `/v1`: pools, their sandboxes, and the processes and files in them.
//!
//! A handler maps a route to one call of the library and stops. A wrong request is answered with a
//! problem (RFC 9457). The API's document (OpenAPI 3.1) is made from the handlers themselves.

mod about;
mod access;
mod agents;
mod coded;
mod docs;
mod document;
mod egress;
mod events;
mod events_stream;
mod exec;
mod exec_socket;
mod exec_stream;
mod extract;
mod files;
mod handles;
mod host_reach;
mod images;
pub(crate) mod keys;
mod mcp;
mod metrics;
mod once_more;
mod pools;
mod ports;
mod previews;
mod processes;
mod query;
mod rates;
mod revoked;
mod sandboxes;
mod search;
mod session;
mod sessions;
mod small_bodies;
mod snapshots;
mod sockets;
mod state;
mod stopping;
mod terminals;
mod tools;
mod turns;
mod watch;

use std::sync::Arc;

use axum::extract::DefaultBodyLimit;
use axum::http::{Method, StatusCode, Uri};
use axum::middleware::from_fn_with_state;
use axum::response::{IntoResponse, Response};
use axum::{Extension, Router};
use eyot::{Error, ErrorKind, Result};
use tokio_util::sync::CancellationToken;
use utoipa::OpenApi;
use utoipa::openapi::OpenApi as Document;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::http::cors::cors;
use crate::http::guard::{self, Guard};
pub use crate::http::limits::ServeLimits;
use crate::http::listen;
pub use crate::http::listen::Listener;
pub use crate::http::{AllowedHost, AllowedOrigin, Certificate};
use crate::mcp::McpServer;
use crate::preview::{self, Previews, SandboxSource};
pub use crate::preview::{PreviewDomain, PreviewLimits};

use crate::problem::Refusal;
pub use access::Access;
use document::ApiDocument;
use revoked::Revoked;
pub(crate) use session::is_sessions;
use stopping::Stopping;

pub use keys::{Keys, NewKey};
pub use state::Api;

/// Returns the routes that need a key.
fn protected() -> OpenApiRouter<Api> {
    OpenApiRouter::new()
        .routes(routes!(sandboxes::create, sandboxes::list))
        .routes(routes!(sandboxes::get, sandboxes::patch, sandboxes::destroy))
        .routes(routes!(sandboxes::open))
        .routes(routes!(sandboxes::wake))
        .routes(routes!(sandboxes::sleep))
        .routes(routes!(sandboxes::usage))
        .routes(routes!(sandboxes::capabilities))
        .routes(routes!(exec::exec))
        .routes(routes!(exec_stream::exec_stream))
        .routes(routes!(exec_stream::exec_again, exec_stream::exec_end))
        .routes(routes!(files::read, files::write, files::remove))
        .routes(routes!(files::stat))
        .routes(routes!(files::exists))
        .routes(routes!(files::list))
        .routes(routes!(files::mkdir))
        .routes(routes!(files::rename))
        .routes(routes!(files::tree_out, files::tree_in))
        .routes(routes!(search::glob))
        .routes(routes!(search::grep))
        .routes(routes!(watch::watch))
        .routes(routes!(processes::start, processes::list))
        .routes(routes!(processes::live))
        .routes(routes!(processes::wait))
        .routes(routes!(processes::write_stdin))
        .routes(routes!(processes::logs))
        .routes(routes!(processes::signal))
        .routes(routes!(egress::rules, egress::set_rules))
        .routes(routes!(egress::decisions))
        .routes(routes!(ports::published))
        .routes(routes!(ports::connect))
        .routes(routes!(previews::open, previews::close))
        .routes(routes!(images::list, images::remove))
        .routes(routes!(images::pull))
        .routes(routes!(images::import))
        .routes(routes!(snapshots::take))
        .routes(routes!(snapshots::roll_back))
        .routes(routes!(snapshots::list))
        .routes(routes!(snapshots::get, snapshots::remove))
        .routes(routes!(snapshots::fork))
        .routes(routes!(snapshots::commit))
        .routes(routes!(snapshots::diff))
        .routes(routes!(pools::list))
        .routes(routes!(pools::get, pools::close))
        .routes(routes!(pools::transfer))
        .routes(routes!(pools::make))
        .routes(routes!(events::list))
        .routes(routes!(tools::declare))
        .routes(routes!(tools::call))
        .routes(routes!(tools::call_pool))
        .routes(routes!(metrics::metrics))
        .routes(routes!(agents::list))
        .routes(routes!(agents::begin))
        .routes(routes!(agents::runs))
        .routes(routes!(agents::run))
        .routes(routes!(agents::run_events))
        .routes(routes!(agents::stream))
        .routes(routes!(agents::abort))
        .routes(routes!(agents::resume))
        .routes(routes!(agents::waiting))
        .routes(routes!(agents::answer))
        .routes(routes!(terminals::open, terminals::list))
        .routes(routes!(terminals::end))
        .routes(routes!(exec_socket::exec_socket))
        .routes(routes!(terminals::attach))
}

/// Returns the routes that need no key.
fn open() -> OpenApiRouter<Api> {
    OpenApiRouter::with_openapi(ApiDocument::openapi())
        .routes(routes!(about::health))
        .routes(routes!(about::version))
        .routes(routes!(about::document))
        .routes(routes!(session::who, session::sign_in, session::sign_out))
}

/// Returns the API's document (OpenAPI 3.1).
pub fn document() -> Document {
    document::complete(open().merge(protected()).into_openapi())
}

/// Returns the API as routes.
pub fn router(api: &Api) -> Router {
    let (protected, document) = protected().split_for_parts();
    let known = query::KnownParameters::of(&document);
    let protected = protected
        .route_layer(from_fn_with_state(known, query::refuse_unknown))
        .route_layer(from_fn_with_state(api.clone(), small_bodies::read_first))
        .route_layer(from_fn_with_state(api.clone(), access::require))
        .layer(DefaultBodyLimit::max(api.limits().max_json_bytes));
    Router::from(open())
        .merge(docs::router())
        .merge(protected)
        .fallback(nowhere)
        .method_not_allowed_fallback(method_not_allowed)
        .with_state(api.clone())
}

async fn nowhere(method: Method, uri: Uri) -> Response {
    if agents::flue_routes::is_of_flue(uri.path()) {
        return eyot_agent::route_not_found(method, uri).await.into_response();
    }
    Refusal::from(Error::new(ErrorKind::NotFound, "there is nothing at this path")).into_response()
}

async fn method_not_allowed() -> Refusal {
    Refusal::of_status(StatusCode::METHOD_NOT_ALLOWED, "this path has no such method")
}

/// Serves the API and MCP on this listener until `stop` is cancelled. Answers that are under way
/// then have [`ServeLimits::drain_timeout_ms`] to end.
pub async fn serve(
    api: &Api,
    listener: Listener,
    options: ServeOptions,
    stop: CancellationToken,
) -> Result<()> {
    prepare(api, listener, options, stop).await?.run().await
}

/// Prepares everything that [`serve`] needs. A failure comes here, before anybody is told that the
/// server is ready.
pub async fn prepare(
    api: &Api,
    listener: Listener,
    options: ServeOptions,
    stop: CancellationToken,
) -> Result<ReadyServer> {
    let mcp = mcp::server(api)?;
    let revoked = Revoked::watch(api.clone()).await?;
    let cut = CancellationToken::new();
    let guard = Guard::new(options.allowed_hosts, options.allowed_origins.clone());
    let guard = Arc::new(guard.with_page(options.page));
    let (domains, limits) = (options.preview_domains, options.preview_limits);
    // The other half of the connections is the API's.
    let limits =
        PreviewLimits { at_once: limits.at_once.min(api.limits().max_connections.div_ceil(2)), ..limits };
    let previews = Previews::new(
        SandboxSource::Server(api.clone()),
        Arc::clone(&guard),
        domains,
        limits,
        options.page,
        stop.clone(),
    );
    let router = router(api)
        .merge(mcp::router(api, &mcp, &stop))
        .merge(agents::flue_routes::routes(api, &stop))
        .layer(from_fn_with_state(api.clone(), metrics::measure))
        .layer(cors(&options.allowed_origins))
        .layer(from_fn_with_state(Arc::clone(&guard), guard::check));
    let router = if options.page {
        // There is nothing of anybody in its files, and browsers name the page as the origin of its own scripts.
        router.merge(crate::page::router().layer(from_fn_with_state(guard, guard::check_host)))
    } else {
        router
    };
    let router = router
        .layer(from_fn_with_state(Arc::new(previews), preview::divert))
        .layer(Extension(Stopping { stop: stop.clone(), cut: cut.clone() }));
    Ok(ReadyServer { api: api.clone(), listener, router, mcp, revoked, stop, cut })
}

/// A server that is ready to run, made by [`prepare`].
pub struct ReadyServer {
    api: Api,
    listener: Listener,
    router: Router,
    mcp: McpServer,
    revoked: Revoked,
    stop: CancellationToken,
    cut: CancellationToken,
}

impl ReadyServer {
    /// Serves until it is told to stop. Fails if revoked keys cannot be watched any more; the
    /// server has ended then.
    pub async fn run(self) -> Result<()> {
        let Self { api, listener, router, mcp, revoked, stop, cut } = self;
        let serving = listen::serve(listener, router, api.limits(), api.metrics().connections(), stop, cut);
        let ended = tokio::select! {
            () = serving => Ok(()),
            // What can't be taken back any more is not given either.
            failed = revoked.end_theirs() => Err(failed),
        };
        mcp.ended().await;
        ended
    }
}

/// The names by which clients may call the server, beside loopback's, and the web pages that may
/// use it.
#[derive(Debug, Clone)]
pub struct ServeOptions {
    /// Names that clients may put into `Host`.
    pub allowed_hosts: Vec<AllowedHost>,
    /// Origins of the web pages that may use the server from a browser. Empty: none may.
    pub allowed_origins: Vec<AllowedOrigin>,
    /// Domains whose names `{port}-{id}.DOMAIN` all lead here, beside `localhost`. URLs of previews
    /// are made from the first.
    pub preview_domains: Vec<PreviewDomain>,
    /// The limits of previews.
    pub preview_limits: PreviewLimits,
    /// Serves the page at `/`; `true` by default. Browsers then give previews below a path no
    /// origin: they keep no cookies and no storage, and load nothing that needs a token. Previews
    /// on hosts of their own are not affected.
    pub page: bool,
}

impl Default for ServeOptions {
    fn default() -> Self {
        let (allowed_hosts, allowed_origins, preview_domains, preview_limits) = Default::default();
        Self { allowed_hosts, allowed_origins, preview_domains, preview_limits, page: true }
    }
}
