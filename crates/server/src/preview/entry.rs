//! Decides whether a request may enter a preview. A public preview is open to everybody. Otherwise
//! the request needs a token in a header, or the cookie that the browser got for an address's
//! one-time token.

use std::time::SystemTime;

use axum::body::Body;
use axum::extract::Request;
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode, header};
use axum::response::Response;
use eyot::SandboxName;
use eyot::wire::PREVIEW_TOKEN;

use super::address::Address;
use super::grants::{Grants, NewCookie};
use super::refusal::Denial;
use super::{cookies, query};

/// The most token headers of a request that are checked.
const LOOKED_AT: usize = 4;

/// The decision about a request that may enter.
pub(super) enum Admission {
    In,
    /// Redirects to the same address without its token, or with the `/` that it lacked.
    Redirect(Box<Response>),
}

/// Lets a request in, or redirects it, or refuses it with an explanation.
pub(super) fn enter(
    grants: &Grants,
    pool: &SandboxName,
    address: &Address,
    request: &Request,
) -> Result<Admission, Denial> {
    let (headers, now) = (request.headers(), SystemTime::now());
    let ticket = query::split(request.uri().query()).ticket;
    let opens_a_page = request.method() == Method::GET;
    if let (true, Some(ticket)) = (opens_a_page, ticket)
        && let Some(exchanged) = grants.exchange(&address.target, pool, ticket, now)?
    {
        return redirect(address, request, Some(&exchanged));
    }
    let by_token = |shown: &str| grants.opens_by_token(&address.target, pool, shown, now);
    let by_cookie = |shown: &str| grants.opens_by_cookie(&address.target, pool, shown, now);
    if !tokens(headers).any(by_token) && !grants.is_public(&address.target, pool, now) {
        if !cookies::shown(headers, address).any(by_cookie) {
            return Err(Denial::unauthorized());
        }
        if is_another_pages(headers) {
            return Err(Denial::forbidden(
                "another site's page asks for this, by its `Origin` or `Sec-Fetch-Site`",
            ));
        }
    }
    if opens_a_page && (ticket.is_some() || address.lacks_slash()) {
        redirect(address, request, None)
    } else {
        Ok(Admission::In)
    }
}

fn tokens(headers: &HeaderMap) -> impl Iterator<Item = &str> {
    headers.get_all(PREVIEW_TOKEN).iter().filter_map(|value| value.to_str().ok()).take(LOOKED_AT)
}

/// Tells whether a page of another origin made the browser send this, with the browser's cookie.
/// Following a link to a preview does not count.
fn is_another_pages(headers: &HeaderMap) -> bool {
    let text = |value: &HeaderValue| value.to_str().unwrap_or_default().to_ascii_lowercase();
    let host = headers.get(header::HOST).map(text).unwrap_or_default();
    let is_own = |origin: String| {
        origin.strip_prefix("http://").or(origin.strip_prefix("https://")).is_some_and(|own| own == host)
    };
    let mut origins = headers.get_all(header::ORIGIN).iter();
    let says = |name: &str| headers.get(name).map(text);
    let is_from_elsewhere = matches!(says("sec-fetch-site").as_deref(), Some("cross-site" | "same-site"));
    let is_by_link = says("sec-fetch-mode").as_deref() == Some("navigate");
    origins.any(|origin| !is_own(text(origin))) || (is_from_elsewhere && !is_by_link)
}

/// Returns the scheme that the browser used, as the proxy in front reports it.
pub(crate) fn scheme(headers: &HeaderMap) -> &'static str {
    let said = headers.get("x-forwarded-proto");
    if said.is_some_and(|proto| proto.as_bytes().eq_ignore_ascii_case(b"https")) { "https" } else { "http" }
}

fn redirect(
    address: &Address,
    request: &Request,
    exchanged: Option<&NewCookie>,
) -> Result<Admission, Denial> {
    let mut to = own_path(request.uri().path());
    if address.lacks_slash() {
        to.push('/');
    }
    if let Some(rest) = query::split(request.uri().query()).rest {
        to = format!("{to}?{rest}");
    }
    let mut response = Response::builder()
        .status(StatusCode::SEE_OTHER)
        .header(header::LOCATION, to)
        .header(header::CACHE_CONTROL, "no-store")
        .header(header::REFERRER_POLICY, "no-referrer");
    if let Some(exchanged) = exchanged {
        let cookie = cookies::set(address, exchanged, scheme(request.headers()));
        response = response.header(header::SET_COOKIE, cookie);
    }
    let response =
        response.header(header::CONTENT_TYPE, "text/plain; charset=utf-8").body(Body::from(FOR_PROGRAMS));
    let response = response.map_err(|_| Denial::invalid("the path can't be written into a redirect"))?;
    Ok(Admission::Redirect(Box::new(response)))
}

/// The text below a redirect, which a browser does not show.
const FOR_PROGRAMS: &str = "This address is for one browser, which goes on by itself, with a cookie.\n\
    A program sends the header eyot-preview-token, with the `token` of `eyot browse --json` or `eyot preview --json`.\n";

/// Makes a path begin with exactly one `/`. With two, or with `\`, a browser would take the rest
/// for another host.
fn own_path(path: &str) -> String {
    format!("/{}", path.trim_start_matches(['/', '\\']))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_redirect_stays_on_its_host() {
        for (path, to) in
            [("/", "/"), ("/a//b", "/a//b"), ("//evil.example/x", "/evil.example/x"), ("/\\evil", "/evil")]
        {
            assert_eq!(own_path(path), to, "{path}");
        }
    }

    #[test]
    fn a_page_of_another_origin_is_known_by_what_the_browser_says() {
        let is_another = |pairs: &[(&'static str, &str)]| {
            let mut headers = HeaderMap::new();
            headers.insert(header::HOST, HeaderValue::from_static("a.p.example:7070"));
            for (name, value) in pairs {
                headers.append(*name, value.parse().unwrap());
            }
            is_another_pages(&headers)
        };
        assert!(!is_another(&[]));
        assert!(!is_another(&[("origin", "http://a.p.example:7070")]));
        assert!(!is_another(&[("origin", "https://A.p.example:7070"), ("sec-fetch-site", "same-origin")]));
        assert!(!is_another(&[("sec-fetch-site", "cross-site"), ("sec-fetch-mode", "navigate")]));
        for origin in ["http://b.p.example:7070", "http://a.p.example", "null", "", "ftp://a.p.example:7070"]
        {
            assert!(is_another(&[("origin", origin)]), "{origin}");
        }
        assert!(is_another(&[("sec-fetch-site", "same-site"), ("sec-fetch-mode", "no-cors")]));
    }
}
