//! Checks `Host` and `Origin`. A web page in a browser on this machine may send requests here, and
//! by DNS rebinding even read the answers. But the browser then names the page in `Origin`, and in
//! `Host` the name that it believes to call.

use std::fmt;
use std::net::IpAddr;
use std::str::FromStr;
use std::sync::Arc;

use axum::extract::{Request, State};
use axum::http::uri::{Authority, Uri};
use axum::http::{HeaderMap, HeaderValue, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use eyot::{Error, ErrorKind};

use super::own_page::{self, OwnPage};
use crate::problem::Refusal;

/// A name by which clients may call the server: `example.com`, or `example.com:8443` for that port alone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AllowedHost {
    host: String,
    port: Option<u16>,
}

/// A web page's origin: `https://example.com`, `http://localhost:5173`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AllowedOrigin {
    scheme: String,
    host: String,
    port: u16,
}

impl FromStr for AllowedHost {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        let authority = Authority::from_str(text).ok().filter(|authority| !authority.as_str().contains('@'));
        let authority = authority.filter(|authority| !authority.host().is_empty());
        let authority = authority.ok_or_else(|| {
            format!("`{text}` is not a valid host; write `example.com` or `example.com:8443`")
        })?;
        Ok(Self { host: normal(authority.host()), port: authority.port_u16() })
    }
}

impl FromStr for AllowedOrigin {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || {
            format!("`{text}` is not a valid origin; write `https://example.com` or `http://localhost:5173`")
        };
        let uri = Uri::from_str(text).map_err(|_| wrong())?;
        let scheme = uri.scheme_str().ok_or_else(wrong)?;
        let ends =
            text.len() - scheme.len() == "://".len() + uri.authority().ok_or_else(wrong)?.as_str().len();
        if !ends || text.contains('@') {
            return Err(wrong());
        }
        let port = match (uri.port_u16(), scheme) {
            (Some(port), _) => port,
            (None, "http") => 80,
            (None, "https") => 443,
            (None, _) => return Err(wrong()),
        };
        let host = uri.host().filter(|host| !host.is_empty()).map(normal).ok_or_else(wrong)?;
        Ok(Self { scheme: scheme.to_ascii_lowercase(), host, port })
    }
}

impl AllowedHost {
    /// Returns the host without its port.
    pub(crate) fn host(&self) -> &str {
        &self.host
    }
}

impl fmt::Display for AllowedHost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.host)?;
        self.port.map_or(Ok(()), |port| write!(f, ":{port}"))
    }
}

/// Normalizes a host, so that `[::1]` and `::1`, and `Example.com.` and `example.com`, are equal.
pub(crate) fn normal(host: &str) -> String {
    host.trim_start_matches('[').trim_end_matches(']').trim_end_matches('.').to_ascii_lowercase()
}

/// Tells whether an `Origin` header is on the list.
pub(crate) fn is_listed(origin: &HeaderValue, origins: &[AllowedOrigin]) -> bool {
    let origin = origin.to_str().ok().and_then(|text| AllowedOrigin::from_str(text).ok());
    origin.is_some_and(|origin| origins.contains(&origin))
}

/// The names and origins that are allowed.
pub(crate) struct Guard {
    hosts: Vec<AllowedHost>,
    origins: Vec<AllowedOrigin>,
    /// Set if the server has a page of its own.
    has_page: bool,
}

impl Guard {
    pub(crate) fn new(hosts: Vec<AllowedHost>, origins: Vec<AllowedOrigin>) -> Self {
        Self { hosts, origins, has_page: false }
    }

    /// Lets the server's own page in, or not.
    pub(crate) fn with_page(self, has_page: bool) -> Self {
        Self { has_page, ..self }
    }

    fn objection(&self, uri: &Uri, headers: &HeaderMap) -> Option<&'static str> {
        self.objection_to_host(uri, headers).or_else(|| self.objection_to_origin(headers))
    }

    /// Returns the objection to the name by which the client calls the server; `None`: the name is
    /// fine.
    pub(crate) fn objection_to_host(&self, uri: &Uri, headers: &HeaderMap) -> Option<&'static str> {
        let hosts = headers.get_all(header::HOST);
        let named: Vec<_> =
            hosts.iter().map(|host| host.to_str().ok().and_then(|text| text.parse().ok())).collect();
        // A request line may name a host of its own, and then that one counts.
        let line_is_fine = uri.authority().is_none_or(|authority| self.admits(authority));
        let [Some(host)] = named.as_slice() else {
            return Some("send one `Host` header");
        };
        if !self.admits(host) || !line_is_fine {
            return Some("the `Host` is not one of this server's names; `--allow-host NAME` adds one");
        }
        None
    }

    fn objection_to_origin(&self, headers: &HeaderMap) -> Option<&'static str> {
        let mut origins = headers.get_all(header::ORIGIN).iter();
        let is_own = self.has_page && own_page::asks(headers);
        if is_own || origins.all(|origin| is_listed(origin, &self.origins)) {
            None
        } else {
            Some("the `Origin` is not allowed to use this server; `--allow-origin ORIGIN` adds one")
        }
    }

    fn admits(&self, authority: &Authority) -> bool {
        let host = normal(authority.host());
        let is_loopback =
            host == "localhost" || host.parse::<IpAddr>().is_ok_and(|address| address.is_loopback());
        let is_named = |allowed: &AllowedHost| {
            allowed.host == host && allowed.port.is_none_or(|port| authority.port_u16() == Some(port))
        };
        !authority.as_str().contains('@') && (is_loopback || self.hosts.iter().any(is_named))
    }
}

/// Passes a request on if its `Host` is the server's, and if no web page sent it or one that is
/// allowed.
pub(crate) async fn check(State(guard): State<Arc<Guard>>, mut request: Request, next: Next) -> Response {
    if guard.has_page && own_page::asks(request.headers()) {
        request.extensions_mut().insert(OwnPage);
    }
    match guard.objection(request.uri(), request.headers()) {
        None => next.run(request).await,
        Some(objection) => refused(objection),
    }
}

/// Passes a request on if its `Host` is the server's, whichever page sent it.
pub(crate) async fn check_host(State(guard): State<Arc<Guard>>, request: Request, next: Next) -> Response {
    match guard.objection_to_host(request.uri(), request.headers()) {
        None => next.run(request).await,
        Some(objection) => refused(objection),
    }
}

fn refused(objection: &'static str) -> Response {
    tracing::warn!(objection, "a request is refused");
    Refusal::from(Error::new(ErrorKind::Permission, objection)).into_response()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn guard(hosts: &[&str], origins: &[&str]) -> Guard {
        let hosts = hosts.iter().map(|host| host.parse().unwrap()).collect();
        Guard::new(hosts, origins.iter().map(|origin| origin.parse().unwrap()).collect())
    }

    fn passes(guard: &Guard, uri: &str, headers: &[(&'static str, &str)]) -> bool {
        let headers = headers.iter().map(|(name, value)| {
            (header::HeaderName::from_static(name), HeaderValue::from_str(value).unwrap())
        });
        let mut map = HeaderMap::new();
        headers.for_each(|(name, value)| {
            map.append(name, value);
        });
        guard.objection(&uri.parse().unwrap(), &map).is_none()
    }

    #[test]
    fn loopback_is_a_host_by_every_name_and_nothing_else_is_unless_it_is_listed() {
        let plain = guard(&[], &[]);
        for host in ["localhost", "LOCALHOST:7070", "127.0.0.1:1", "127.8.9.1", "[::1]:7070"] {
            assert!(passes(&plain, "/mcp", &[("host", host)]), "{host}");
        }
        let strangers =
            ["evil.com", "localhost.evil.com", "127.0.0.1.nip.io", "10.0.0.1:7070", "[::2]", "a@localhost"];
        for host in strangers {
            assert!(!passes(&plain, "/mcp", &[("host", host)]), "{host}");
        }
        let listed = guard(&["box.example", "other.example:8443"], &[]);
        assert!(passes(&listed, "/mcp", &[("host", "Box.Example:99")]));
        assert!(passes(&listed, "/mcp", &[("host", "other.example:8443")]));
        assert!(!passes(&listed, "/mcp", &[("host", "other.example")]));
    }

    #[test]
    fn no_host_two_hosts_and_another_one_in_the_request_line_are_refused() {
        let plain = guard(&[], &[]);
        assert!(!passes(&plain, "/mcp", &[]));
        assert!(!passes(&plain, "/mcp", &[("host", "localhost"), ("host", "localhost")]));
        assert!(!passes(&plain, "http://evil.com/mcp", &[("host", "localhost")]));
        assert!(passes(&plain, "http://127.0.0.1:7070/mcp", &[("host", "localhost")]));
    }

    #[test]
    fn an_origin_must_be_listed_with_scheme_host_and_port() {
        let listed = guard(&[], &["https://app.example", "http://localhost:5173"]);
        let passes = |origin| passes(&listed, "/mcp", &[("host", "localhost"), ("origin", origin)]);
        assert!(
            passes("https://app.example")
                && passes("https://APP.example:443")
                && passes("http://localhost:5173")
        );
        for origin in [
            "http://app.example",
            "https://app.example:8443",
            "http://localhost",
            "null",
            "",
            "https://x@app.example",
        ] {
            assert!(!passes(origin), "{origin}");
        }
    }

    #[test]
    fn what_is_no_host_or_origin_can_not_be_listed() {
        for text in ["", "a b", "user@host", "https://x/path/.."] {
            assert!(text.parse::<AllowedHost>().is_err(), "{text}");
        }
        for text in ["example.com", "null", "https://a/b", "ftp://a", "https://u@a"] {
            assert!(text.parse::<AllowedOrigin>().is_err(), "{text}");
        }
    }
}
