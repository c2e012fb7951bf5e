//! Previews: a port of a sandbox as web pages, for browsers and programs without an API key.
//!
//! A request belongs to a preview by its `Host` (`{port}-{id}.localhost`, or below a domain of the
//! server) or by its path (`/preview/{sandbox}/{port}/`). It then never reaches the API, and no
//! other request reaches a preview. Tokens and the server's cookies are removed; the guest gets the
//! rest, with the `Host` that the browser called: HTTP, WebSockets and server-sent events. Each
//! request has a new connection into the sandbox, so no answer can go to the wrong request.

mod address;
mod answer;
mod body;
mod cookies;
mod entry;
mod forward;
mod from_guest;
mod grants;
mod limits;
mod query;
mod refusal;
mod socket;
mod source;
mod to_guest;

use std::sync::Arc;

use axum::extract::{Request, State};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use eyot::Error;
use tokio_util::sync::CancellationToken;

use crate::http::guard::Guard;
use crate::http::idle::let_in;
use crate::problem::Refusal;

pub(crate) use address::{Address, BaseAddress, PREFIX, PreviewTarget, RequestTarget};
pub(crate) use answer::answer;
pub use grants::TTL_MS_RANGE;
pub(crate) use grants::{GrantRequest, GrantSecrets, Grants, TTL_MS};

pub(crate) use entry::scheme;
pub(crate) use source::{OneSandbox, SandboxSource};

pub use address::PreviewDomain;
pub use limits::PreviewLimits;

use entry::Admission;
use limits::Places;
use refusal::Denial;

/// State that all previews of a listener share.
pub(crate) struct Previews {
    source: SandboxSource,
    guard: Arc<Guard>,
    domains: Arc<[PreviewDomain]>,
    limits: PreviewLimits,
    /// Set if the server has a page. Previews below a path must not share its origin.
    has_page: bool,
    places: Places,
    /// Cancelled when the server stops.
    stop: CancellationToken,
}

/// The domains of previews, for the handler that makes their addresses.
#[derive(Clone)]
pub(crate) struct Domains(pub Arc<[PreviewDomain]>);

impl Previews {
    pub(crate) fn new(
        source: SandboxSource,
        guard: Arc<Guard>,
        domains: Vec<PreviewDomain>,
        limits: PreviewLimits,
        has_page: bool,
        stop: CancellationToken,
    ) -> Self {
        let places = Places::new(limits);
        Self { source, guard, domains: domains.into(), limits, has_page, places, stop }
    }
}

/// Handles requests for previews, and passes on all others.
pub(crate) async fn divert(
    State(previews): State<Arc<Previews>>,
    mut request: Request,
    next: Next,
) -> Response {
    match RequestTarget::of(request.uri(), request.headers(), &previews.domains) {
        RequestTarget::Server => {
            request.extensions_mut().insert(Domains(Arc::clone(&previews.domains)));
            next.run(request).await
        }
        RequestTarget::Preview(address) => {
            let wants_page = refusal::wants_page(request.headers());
            match previews.answer(address, request).await {
                Ok(response) => response,
                Err(denial) => denial.render(wants_page),
            }
        }
        RequestTarget::Invalid(denial) => denial.render(refusal::wants_page(request.headers())),
    }
}

impl Previews {
    async fn answer(&self, address: Address, request: Request) -> Result<Response, Denial> {
        if let (true, Some(objection)) =
            (address.is_path(), self.guard.objection_to_host(request.uri(), request.headers()))
        {
            return Err(Denial::forbidden(objection));
        }
        let sandbox = &address.target.sandbox;
        let pool = self.source.pool_of(sandbox).await.map_err(Refusal::from)?;
        let pool = pool.ok_or_else(Denial::gone)?;
        match entry::enter(self.source.grants(), &pool, &address, &request)? {
            Admission::Redirect(response) => Ok(*response),
            Admission::In => {
                let place = self.places.take(&pool, sandbox).ok_or_else(Denial::full)?;
                let_in(request.extensions());
                self.forward(&address, &pool, request, place).await
            }
        }
    }
}

impl From<Error> for Denial {
    fn from(error: Error) -> Self {
        Refusal::from(error).into()
    }
}

impl IntoResponse for Denial {
    fn into_response(self) -> Response {
        self.render(false)
    }
}
