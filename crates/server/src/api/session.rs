//! Signs browsers in at the page. A key becomes a session whose cookie no script can read and no
//! other site's page can use.

use std::time::Instant;

use axum::extract::State;
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::{Extension, Json};
use eyot::wire::{SessionAnswer, SessionBody};
use eyot::{Error, ErrorKind};
use eyot_engine::store::KeyRow;

use super::access::{Access, is_a_pages, or_later};
use super::extract::JsonBody;
use super::keys::hash;
use super::sessions::LIFE;
use super::state::Api;
use super::turns::Right;
use crate::http::Peer;
use crate::http::own_cookie::OwnCookie;
use crate::http::own_page::{self, OnlyFromThePage, OwnPage};
use crate::http::token;
use crate::preview::scheme;
use crate::problem::{Problems, Refusal};

/// The session's cookie.
const COOKIE: OwnCookie = OwnCookie("eyot_session");

/// Tells whether this is the name of the session's cookie. Guests neither see nor set it.
pub(crate) fn is_sessions(name: &str) -> bool {
    COOKIE.is(name)
}

fn is_tls(headers: &HeaderMap) -> bool {
    scheme(headers) == "https"
}

/// Returns the values of the session's cookie in a request.
fn cookie_values(headers: &HeaderMap) -> impl Iterator<Item = &str> {
    COOKIE.values(headers, is_tls(headers))
}

/// Tells whether a request has the session's cookie, valid or not.
pub(super) fn is_shown(headers: &HeaderMap) -> bool {
    cookie_values(headers).next().is_some()
}

/// Returns the key and the time limit of the session with which the page sends a request, if the
/// session lasts and its key is not revoked.
pub(super) async fn holder(api: &Api, headers: &HeaderMap) -> Result<Option<(KeyRow, Right)>, Error> {
    let Some(proof) = own_page::proof(headers) else { return Ok(None) };
    let now = Instant::now();
    match cookie_values(headers).find_map(|cookie| api.sessions().key(cookie, proof, now)) {
        Some((key, right)) => Ok(api.keys().holder_of_hash(key).await?.map(|key| (key, right))),
        None => Ok(None),
    }
}

/// Makes the `Set-Cookie` value: for this host alone, for no script, and for no other site.
fn cookie(headers: &HeaderMap, value: &str, seconds: u64) -> HeaderValue {
    let (name, secure) = (COOKIE.name(is_tls(headers)), if is_tls(headers) { "; Secure" } else { "" });
    let text = format!("{name}={value}; Path=/; Max-Age={seconds}; HttpOnly; SameSite=Strict{secure}");
    HeaderValue::from_str(&text).unwrap_or(HeaderValue::from_static(""))
}

fn wrong_key(api: &Api, peer: Option<Extension<Peer>>) -> Response {
    let refused = Refusal::unauthorized("the key is wrong, or was revoked").into_response();
    or_later(api, peer.map(|Extension(peer)| peer), refused)
}

fn signed_in(key: KeyRow, proof: Option<String>) -> SessionAnswer {
    SessionAnswer { needs_key: true, signed_in: true, name: Some(key.name), pools: key.pools, proof }
}

/// Returns the caller: the holder of the key that comes with the request, or the key that a browser
/// signed in with.
///
/// Needs no key; a wrong one is refused.
#[utoipa::path(get, path = "/v1/session", tag = "session", security(()),
    responses((status = 200, body = SessionAnswer), Problems))]
pub(super) async fn who(
    State(api): State<Api>,
    page: Option<Extension<OwnPage>>,
    peer: Option<Extension<Peer>>,
    headers: HeaderMap,
) -> Result<Response, Refusal> {
    let nobody =
        SessionAnswer { needs_key: true, signed_in: false, name: None, pools: Vec::new(), proof: None };
    let answer = match api.access() {
        Access::Anybody if page.is_none() && is_a_pages(&headers) => return Err(own_page::not_the_page()),
        Access::Anybody => {
            let pools = api.engine().pools().await?;
            SessionAnswer { needs_key: false, signed_in: true, pools, ..nobody }
        }
        Access::Keys => {
            let key = match token::bearer_token(&headers) {
                Some(key) => match api.keys().holder(key).await? {
                    Some(holder) => Some(holder),
                    None => return Ok(wrong_key(&api, peer)),
                },
                None if page.is_some() => holder(&api, &headers).await?.map(|(key, _)| key),
                None => None,
            };
            key.map_or(nobody, |key| signed_in(key, None))
        }
    };
    Ok(([(header::CACHE_CONTROL, "no-store")], Json(answer)).into_response())
}

/// Signs a browser in with an API key, for 12 hours.
///
/// The answer sets a cookie and has the proof that belongs to it. This is for the page at `/`;
/// programs send their key with each request.
#[utoipa::path(post, path = "/v1/session", tag = "session", security(()), request_body = SessionBody,
    responses((status = 200, body = SessionAnswer), Problems))]
pub(super) async fn sign_in(
    State(api): State<Api>,
    _: OnlyFromThePage,
    peer: Option<Extension<Peer>>,
    headers: HeaderMap,
    JsonBody(SessionBody { key }): JsonBody<SessionBody>,
) -> Result<Response, Refusal> {
    if api.access() == Access::Anybody {
        return Err(Error::new(ErrorKind::Conflict, "no key is needed here, so nobody signs in").into());
    }
    let key = key.trim();
    let holder = api.keys().holder(key).await?;
    let Some(holder) = holder else { return Ok(wrong_key(&api, peer)) };
    let revoked = api.turns().revoked(&holder.id);
    let opened = api.sessions().open(hash(key), revoked.child_token(), Instant::now())?;
    let set = cookie(&headers, &opened.cookie, LIFE.as_secs());
    let answer = signed_in(holder, Some(opened.proof));
    let head = [(header::SET_COOKIE, set), (header::CACHE_CONTROL, HeaderValue::from_static("no-store"))];
    Ok((head, Json(answer)).into_response())
}

/// Signs a browser out, and ends its requests under way.
///
/// Succeeds if it is signed out already.
#[utoipa::path(delete, path = "/v1/session", tag = "session", security(()), responses((status = 204), Problems))]
pub(super) async fn sign_out(
    State(api): State<Api>,
    _: OnlyFromThePage,
    headers: HeaderMap,
) -> Result<Response, Refusal> {
    cookie_values(&headers).for_each(|cookie| api.sessions().close(cookie));
    Ok((StatusCode::NO_CONTENT, [(header::SET_COOKIE, cookie(&headers, "", 0))]).into_response())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn over_tls_the_cookie_is_the_hosts_alone_and_one_without_that_is_not_looked_at() {
        let mut headers = HeaderMap::new();
        headers.insert(header::COOKIE, HeaderValue::from_static("eyot_session=a; __Host-eyot_session=b"));
        assert_eq!(cookie_values(&headers).collect::<Vec<_>>(), ["a"]);
        let plain = cookie(&headers, "v", 5);
        assert_eq!(plain, "eyot_session=v; Path=/; Max-Age=5; HttpOnly; SameSite=Strict");
        headers.insert("x-forwarded-proto", HeaderValue::from_static("https"));
        assert_eq!(cookie_values(&headers).collect::<Vec<_>>(), ["b"]);
        let secure = cookie(&headers, "v", 5);
        assert_eq!(secure, "__Host-eyot_session=v; Path=/; Max-Age=5; HttpOnly; SameSite=Strict; Secure");
    }
}
