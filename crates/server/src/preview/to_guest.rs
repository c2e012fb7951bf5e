//! Rewrites a request for the guest: for its port alone, without the tokens and cookies that opened
//! the preview.
//!
//! `Host` stays the name that the browser called, so that it agrees with `Origin` for servers that
//! compare the two (WebSockets, forms), and so that addresses that a server makes from it lead back
//! here.

use axum::body::Body;
use axum::extract::Request;
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, Uri, Version, header};

use super::address::Address;
use super::entry::scheme;
use super::refusal::Denial;
use super::{cookies, query};
use crate::hop_by_hop::drop_hop_by_hop;

/// Headers that only this server sends or handles.
const OURS: [&str; 5] = ["authorization", "expect", "forwarded", "x-real-ip", "x-original-url"];

/// Tells whether a request asks for a WebSocket, the one protocol that a connection can change to.
pub(super) fn wants_websocket(request: &Request) -> bool {
    let headers = request.headers();
    let is_upgrade = |value: &HeaderValue| {
        let text = value.to_str().unwrap_or_default();
        text.split(',').any(|word| word.trim().eq_ignore_ascii_case("upgrade"))
    };
    let mut protocols = headers.get_all(header::UPGRADE).iter();
    let is_websocket = |value: &HeaderValue| value.as_bytes().eq_ignore_ascii_case(b"websocket");
    request.method() == Method::GET
        && headers.get_all(header::CONNECTION).iter().any(is_upgrade)
        && protocols.next().is_some_and(is_websocket)
        && protocols.next().is_none()
}

/// Rewrites a request for the guest.
pub(super) fn rewritten(address: &Address, request: Request, websocket: bool) -> Result<Request, Denial> {
    if [Method::CONNECT, Method::TRACE].contains(request.method()) {
        return Err(Denial::invalid("previews take no CONNECT and no TRACE"));
    }
    let (mut parts, body) = request.into_parts();
    let path = address.path_inside(&parts.uri);
    let rest = query::split(parts.uri.query()).rest;
    let target = rest.map_or(path.to_owned(), |rest| format!("{path}?{rest}"));
    let uri = target.parse::<Uri>().map_err(|_| Denial::invalid("the path can't be read"))?;
    if !uri.path().starts_with('/') || uri.authority().is_some() {
        return Err(Denial::invalid("the path must begin with `/`"));
    }
    let scheme = scheme(&parts.headers);
    strip(&mut parts.headers);
    say_where_it_came(&mut parts.headers, address, scheme);
    if websocket {
        parts.headers.insert(header::CONNECTION, HeaderValue::from_static("Upgrade"));
        parts.headers.insert(header::UPGRADE, HeaderValue::from_static("websocket"));
    }
    let mut rewritten = Request::new(if websocket { Body::empty() } else { body });
    *rewritten.method_mut() = parts.method;
    *rewritten.uri_mut() = uri;
    *rewritten.version_mut() = Version::HTTP_11;
    *rewritten.headers_mut() = parts.headers;
    Ok(rewritten)
}

fn strip(headers: &mut HeaderMap) {
    drop_hop_by_hop(headers);
    let is_ours = |name: &&HeaderName| {
        let name = name.as_str();
        OURS.contains(&name) || name.starts_with("eyot-") || name.starts_with("x-forwarded-")
    };
    let ours: Vec<HeaderName> = headers.keys().filter(is_ours).cloned().collect();
    ours.into_iter().for_each(|name| drop(headers.remove(name)));
    cookies::strip(headers);
    // A page that was opened with a token in its address tells nobody; a client that makes this up doesn't either.
    let tells_ticket =
        |value: &HeaderValue| String::from_utf8_lossy(value.as_bytes()).contains(query::TICKET);
    if headers.get(header::REFERER).is_some_and(tells_ticket) {
        headers.remove(header::REFERER);
    }
}

fn say_where_it_came(headers: &mut HeaderMap, address: &Address, scheme: &'static str) {
    if let Some(host) = headers.get(header::HOST).cloned() {
        headers.insert("x-forwarded-host", host);
    }
    headers.insert("x-forwarded-proto", HeaderValue::from_static(scheme));
    if let (true, Ok(prefix)) = (address.is_path(), HeaderValue::from_str(&address.prefix())) {
        headers.insert("x-forwarded-prefix", prefix);
    }
}
