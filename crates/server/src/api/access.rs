//! Authenticates each request: the caller is the holder of its key or session, or anybody if the
//! server needs no key.

use std::sync::Arc;

use axum::extract::{Request, State};
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use eyot::{Error, ErrorKind, SandboxName};
use eyot_engine::store::KeyRow;

use super::session;
use super::state::Api;
use super::turns::Right;
use crate::http::Peer;
use crate::http::holding::hold_until_sent;
use crate::http::idle::let_in;
use crate::http::own_page::OwnPage;
use crate::http::token::Client;
use crate::problem::Refusal;

/// The callers that the server lets in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Access {
    /// Callers with a key.
    Keys,
    /// Every caller, with access to every pool. For loopback, and for sockets that only their owner
    /// can open.
    Anybody,
}

/// The caller of a request: the holder of a key, or `None` if the server needs no key.
#[derive(Debug, Clone)]
pub(super) struct Caller(Option<Arc<KeyRow>>);

impl Caller {
    /// Returns the id of the caller's key.
    pub fn key_id(&self) -> Option<&str> {
        self.0.as_ref().map(|key| key.id.as_str())
    }

    /// Returns the name of the caller's key; `None`: the server needs no key.
    pub fn key_name(&self) -> Option<&SandboxName> {
        self.0.as_ref().map(|key| &key.name)
    }

    /// Tells whether the caller may import, make and remove images, which all keys share.
    pub fn may_change_images(&self, api: &Api) -> bool {
        self.key_name().is_none_or(|name| api.image_keys().contains(name))
    }

    /// Refuses keys that may not change the images.
    pub fn refuse_unless_it_may_change_images(&self, api: &Api, what: &str) -> Result<(), Refusal> {
        if self.may_change_images(api) {
            return Ok(());
        }
        let message = format!("{what}: the images are the whole server's, and this key may not change them");
        let hint = "whoever runs the server names the keys that may: `eyot serve --image-key NAME`";
        Err(Error::new(ErrorKind::Permission, message).with_hint(hint).into())
    }

    /// Tells whether the caller may use this pool.
    pub fn opens(&self, pool: &SandboxName) -> bool {
        self.0.as_ref().is_none_or(|key| key.opens(pool))
    }

    /// Returns the caller as sessions tell clients apart.
    pub fn client(&self) -> Client {
        self.0.as_ref().map_or(Client::Anybody, |key| Client::Key(key.id.clone()))
    }

    /// Returns the pools that the caller may use; `None`: all.
    pub fn pools(&self) -> Option<&[SandboxName]> {
        self.0.as_ref().map(|key| key.pools.as_slice())
    }

    /// Returns the pool that is named, or else the key's default pool. A pool that the caller may
    /// not use is `not_found`.
    pub fn pool(&self, named: Option<&str>) -> Result<SandboxName, Refusal> {
        let pool = match (named, &self.0) {
            (Some(named), _) => SandboxName::parse(named).map_err(|error| error.context("choose a pool"))?,
            (None, Some(key)) => key.pools.first().cloned().ok_or_else(|| self.no_pool("default"))?,
            (None, None) => SandboxName::parse(eyot_engine::DEFAULT_SANDBOX)?,
        };
        if self.opens(&pool) { Ok(pool) } else { Err(self.no_pool(pool.as_str())) }
    }

    /// The words are the same whether or not there is one that the caller may not use.
    fn no_pool(&self, name: &str) -> Refusal {
        let error = Error::new(ErrorKind::NotFound, format!("there is no pool `{name}`"));
        match &self.0 {
            Some(key) => {
                let pools: Vec<String> = key.pools.iter().map(|pool| format!("`{pool}`")).collect();
                error.with_hint(format!("this key opens {}", pools.join(", "))).into()
            }
            None => error.into(),
        }
    }
}

/// Lets a request with a right key pass, within the limits of that key. The key is taken out, so
/// that no log can show it.
pub(super) async fn require(State(api): State<Api>, mut request: Request, next: Next) -> Response {
    let is_own_page = request.extensions().get::<OwnPage>().is_some();
    let (caller, right) = match api.access() {
        Access::Anybody if is_a_pages(request.headers()) && !is_own_page => return not_for_pages(),
        Access::Anybody => (Caller(None), None),
        Access::Keys => match holder(&api, request.headers(), is_own_page).await {
            Ok((key, right)) => (Caller(Some(Arc::new(key))), right),
            Err(refused) => {
                let peer = request.extensions().get::<Peer>().copied();
                return or_later(&api, peer, refused);
            }
        },
    };
    let_in(request.extensions());
    if let Err(wait) = api.rates().begin(caller.key_id()) {
        api.metrics().refused("rate_of_key");
        return wait.of_key();
    }
    let Some(turn) = api.turns().take(caller.key_id(), right) else {
        api.metrics().refused("requests_of_key");
        return api.turns().refusal();
    };
    request.headers_mut().remove(header::AUTHORIZATION);
    request.headers_mut().remove(header::COOKIE);
    request.extensions_mut().insert(caller);
    request.extensions_mut().insert(turn.clone());
    match turn.during(next.run(request)).await {
        Some(answer) => hold_until_sent(answer, turn),
        None => unauthorized("the key was revoked, or the session ended, while this was done"),
    }
}

/// Returns `refused`, or, for an address that sends too many requests without a right key, an
/// answer that says how long to wait. It is called after the look-up, so a right key is let in
/// whatever others at its address have sent. Keys have 256 random bits: the limit only keeps the
/// log short.
pub(super) fn or_later(api: &Api, peer: Option<Peer>, refused: Response) -> Response {
    if refused.status() != StatusCode::UNAUTHORIZED {
        return refused;
    }
    match api.rates().begin_stranger(peer.unwrap_or(Peer::Socket)) {
        Ok(()) => refused,
        Err(wait) => {
            api.metrics().refused("rate_of_wrong_keys");
            wait.of_stranger()
        }
    }
}

/// Tells whether a web page sent this and its browser does not say which page. Browsers name no
/// origin for pages of the server's own origin, and a preview below a path is one of them. If no
/// key is needed, that alone would let a sandbox's page in.
pub(super) fn is_a_pages(headers: &HeaderMap) -> bool {
    let site = headers.get("sec-fetch-site");
    site.is_some_and(|site| site != "none") && !headers.contains_key(header::ORIGIN)
}

fn not_for_pages() -> Response {
    let reason = "a web page asks for this, by its `Sec-Fetch-Site`, and no key is needed here";
    Refusal::from(Error::new(ErrorKind::Permission, reason)).into_response()
}

/// Returns the key of a request and, if it came by a session, the time limit of that session.
async fn holder(
    api: &Api,
    headers: &HeaderMap,
    is_own_page: bool,
) -> Result<(KeyRow, Option<Right>), Response> {
    let Some(shown) = crate::http::token::bearer_token(headers) else {
        if session::is_shown(headers) && !headers.contains_key(header::AUTHORIZATION) {
            let (key, right) = signed_in(api, headers, is_own_page).await?;
            return Ok((key, Some(right)));
        }
        return Err(unauthorized("the server wants a key, and the request has none"));
    };
    match api.keys().holder(shown).await {
        Ok(Some(key)) => Ok((key, None)),
        Ok(None) => Err(unauthorized("the key is wrong, or was revoked")),
        Err(error) => Err(Refusal::from(error).into_response()),
    }
}

/// Returns the key of a browser's session. The cookie counts only in a request of the page itself.
async fn signed_in(api: &Api, headers: &HeaderMap, is_own_page: bool) -> Result<(KeyRow, Right), Response> {
    if !is_own_page {
        let reason = "a session is the page's of this server alone, and it is not the page that asks";
        return Err(Refusal::from(Error::new(ErrorKind::Permission, reason)).into_response());
    }
    match session::holder(api, headers).await {
        Ok(Some(held)) => Ok(held),
        Ok(None) => Err(unauthorized("the session has ended, or its key was revoked: sign in again")),
        Err(error) => Err(Refusal::from(error).into_response()),
    }
}

fn unauthorized(sentence: &'static str) -> Response {
    let mut response = Refusal::unauthorized(sentence).into_response();
    let challenge = HeaderValue::from_static("Bearer realm=\"eyot\"");
    response.headers_mut().insert(header::WWW_AUTHENTICATE, challenge);
    response
}
