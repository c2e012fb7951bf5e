//! One port of one sandbox on this host's loopback, for `eyot browse`: a preview without a server.
//! Other users of the host reach the listener too, and so does a web page whose name was rebound to
//! loopback. A request needs the token of the address, and a host name that no page on the web can
//! have.

use std::net::Ipv4Addr;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use axum::Router;
use axum::extract::{Request, State};
use axum::http::HeaderValue;
use axum::http::header;
use axum::http::header::InvalidHeaderValue;
use axum::http::uri::Authority;
use axum::middleware::{Next, from_fn_with_state};
use axum::response::{IntoResponse, Response};
use eyot::wire::{PREVIEW_TOKEN, PreviewAnswer};
use eyot::{CancellationToken, Error, ErrorKind, Result, Sandbox, SandboxId, SandboxName};
use futures_util::future::BoxFuture;
use prometheus_client::metrics::gauge::Gauge;
use tokio::net::TcpListener;

use crate::api::{Listener, PreviewLimits, ServeLimits};
use crate::http::guard::Guard;
use crate::http::listen;
use crate::preview::{
    BaseAddress, GrantRequest, GrantSecrets, Grants, OneSandbox, PREFIX, PreviewTarget, Previews,
    SandboxSource, TTL_MS_RANGE, answer, divert,
};
use crate::problem::Refusal;

/// A port of a sandbox, served on loopback.
pub struct Browse {
    listener: TcpListener,
    previews: Arc<Previews>,
    address: PreviewAnswer,
    host: HeaderValue,
    stop: CancellationToken,
}

impl Browse {
    /// Listens on a free port of 127.0.0.1. `open` finds the sandbox, or wakes it, for each
    /// request; `id` is part of the address.
    ///
    /// # Errors
    /// `unavailable` if there is no free port.
    pub async fn bind(
        id: SandboxId,
        port: u16,
        open: impl Fn() -> BoxFuture<'static, Result<Sandbox>> + Send + Sync + 'static,
    ) -> Result<Self> {
        let cannot = |error: std::io::Error| {
            Error::new(ErrorKind::Unavailable, "open a port on this host's loopback").with_source(error)
        };
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.map_err(cannot)?;
        let host = listener.local_addr().map_err(cannot)?.to_string();
        let host: Authority = host.parse().map_err(|_| Error::new(ErrorKind::Internal, "name the port"))?;
        let target = PreviewTarget { sandbox: id.clone(), port };
        let (pool, grants) = (SandboxName::parse("browse")?, Grants::default());
        let address = grant(&grants, &pool, &target, &host)?;
        let own_host = own_host(&address).ok_or_else(|| Error::new(ErrorKind::Internal, "name the host"))?;
        let source = SandboxSource::One(OneSandbox { id, pool, grants, open: Box::new(open) });
        let stop = CancellationToken::new();
        let guard = Arc::new(Guard::new(Vec::new(), Vec::new()));
        let previews =
            Previews::new(source, guard, Vec::new(), PreviewLimits::default(), false, stop.clone());
        Ok(Self { listener, previews: Arc::new(previews), address, host: own_host, stop })
    }

    /// Returns the address, with a token that lets one browser in, and one that programs send.
    pub fn address(&self) -> &PreviewAnswer {
        &self.address
    }

    /// Serves until it is dropped.
    pub async fn serve(self) {
        let _ends = self.stop.clone().drop_guard();
        let router = Router::new()
            .fallback(elsewhere)
            .layer(from_fn_with_state(self.previews, divert))
            .layer(from_fn_with_state(self.host, lead_programs));
        let limits = ServeLimits::default();
        listen::serve(
            Listener::Tcp(self.listener),
            router,
            &limits,
            Gauge::default(),
            self.stop,
            CancellationToken::new(),
        )
        .await;
    }
}

/// Grants access to the preview for the longest time that a grant may last.
fn grant(
    grants: &Grants,
    pool: &SandboxName,
    target: &PreviewTarget,
    host: &Authority,
) -> Result<PreviewAnswer> {
    let (now, ttl) = (SystemTime::now(), Duration::from_millis(*TTL_MS_RANGE.end()));
    let issued: Option<GrantSecrets> =
        grants.issue(GrantRequest { target, pool, key: None, ttl, public: false }, now)?;
    let base = BaseAddress { scheme: "http", host };
    let path_url = base.path_url(target);
    let url = base.host_url(target, &[]).unwrap_or_else(|| path_url.clone());
    Ok(answer(target, [url, path_url], issued, now + ttl))
}

/// Returns the host of an address.
fn own_host(address: &PreviewAnswer) -> Option<HeaderValue> {
    let url: axum::http::Uri = address.url.parse().ok()?;
    HeaderValue::from_str(url.authority()?.as_str()).ok()
}

/// Lets a program with a token call the sandbox by a plain name of this host's loopback, too. No page of another site can send
/// the header. Its value is checked by the preview.
async fn lead_programs(State(host): State<HeaderValue>, mut request: Request, next: Next) -> Response {
    let headers = request.headers();
    let named: Option<Authority> =
        headers.get(header::HOST).and_then(|host| host.to_str().ok()).and_then(|host| host.parse().ok());
    let is_loopback = |named: &Authority| {
        ["127.0.0.1", "localhost"].iter().any(|name| named.host().eq_ignore_ascii_case(name))
    };
    let is_below_a_path = request.uri().path().starts_with(PREFIX);
    if let Some(named) = named.filter(is_loopback)
        && headers.contains_key(PREVIEW_TOKEN)
        && !is_below_a_path
    {
        // The sandbox's server may compare the two.
        let is_own = headers.get(header::ORIGIN).is_some_and(|origin| *origin == format!("http://{named}"));
        if let (true, Ok(origin)) = (is_own, origin_of(&host)) {
            request.headers_mut().insert(header::ORIGIN, origin);
        }
        request.headers_mut().insert(header::HOST, host);
    }
    next.run(request).await
}

fn origin_of(host: &HeaderValue) -> std::result::Result<HeaderValue, InvalidHeaderValue> {
    HeaderValue::from_bytes(&[b"http://", host.as_bytes()].concat())
}

async fn elsewhere() -> Response {
    let hint = format!(
        "open the address that `eyot browse` has printed, or send the token that --json prints as `{PREVIEW_TOKEN}`"
    );
    let error =
        Error::new(ErrorKind::Permission, "this is not the address of the sandbox's port").with_hint(hint);
    Refusal::from(error).into_response()
}
