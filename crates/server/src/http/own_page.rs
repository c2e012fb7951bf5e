//! Recognises requests of the server's own page at `/`, the one web page that may use the server
//! without being listed.
//!
//! Browsers name the origin of a page, in `Origin` and `Sec-Fetch-Site`, but not the page itself.
//! So no other page of this origin may come from somebody else; [`crate::preview`] has browsers
//! sandbox guests' pages below a path. Where browsers say too little (`Sec-Fetch-Site` is for
//! secure addresses only, `Origin` for requests that change something), the page sends a header
//! that no form and no other site's script can send.

use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderValue, header};
use eyot::wire::PAGE_PROOF;
use eyot::{Error, ErrorKind};

use crate::problem::Refusal;

/// The protocol that WebSockets of the page name, since a page cannot give them headers.
pub(crate) const PROTOCOL: &str = "eyot-page";

/// Marks a request that the server's own page sent. [`guard`](super::guard) puts it there, if the
/// server has a page.
#[derive(Debug, Clone, Copy)]
pub(crate) struct OwnPage;

/// Extractor for routes that only the server's own page may call. Other requests are refused before
/// their body is read.
pub(crate) struct OnlyFromThePage;

impl<S: Sync> FromRequestParts<S> for OnlyFromThePage {
    type Rejection = Refusal;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Refusal> {
        parts.extensions.get::<OwnPage>().map(|_| Self).ok_or_else(not_the_page)
    }
}

/// Returns the refusal of a request that the page did not send.
pub(crate) fn not_the_page() -> Refusal {
    let reason =
        "only the page of this server signs in; programs send their key as `Authorization: Bearer KEY`";
    Error::new(ErrorKind::Permission, reason).into()
}

/// Tells whether the page sent a request, by its headers.
pub(super) fn asks(headers: &HeaderMap) -> bool {
    let mut sites = headers.get_all("sec-fetch-site").iter();
    let mut origins = headers.get_all(header::ORIGIN).iter();
    let is_own_site = sites.all(|site| site == "same-origin");
    let is_own_origin = origins.all(|origin| is_own(origin, headers));
    let shows = if headers.contains_key(header::UPGRADE) {
        // Browsers always say whose page opens a WebSocket.
        headers.contains_key(header::ORIGIN)
    } else {
        headers.contains_key(PAGE_PROOF)
    };
    is_own_site && is_own_origin && shows
}

/// Returns the proof in a request of the page: from its header, or, for a WebSocket, from beside
/// its protocol.
pub(crate) fn proof(headers: &HeaderMap) -> Option<&str> {
    let mut shown = headers.get_all(PAGE_PROOF).iter();
    match (shown.next(), shown.next()) {
        (Some(proof), None) => proof.to_str().ok(),
        (Some(_), Some(_)) => None,
        (None, _) => {
            let offered = headers.get(header::SEC_WEBSOCKET_PROTOCOL)?.to_str().ok()?;
            let mut words = offered.split(',').map(str::trim);
            words.find_map(|word| word.strip_prefix(PROTOCOL)?.strip_prefix('.'))
        }
    }
}

/// Tells whether an `Origin` is the host that was called.
fn is_own(origin: &HeaderValue, headers: &HeaderMap) -> bool {
    let mut hosts = headers.get_all(header::HOST).iter();
    let (Some(host), None) = (hosts.next(), hosts.next()) else { return false };
    let (Ok(origin), Ok(host)) = (origin.to_str(), host.to_str()) else { return false };
    let named = origin.strip_prefix("http://").or_else(|| origin.strip_prefix("https://"));
    !host.is_empty() && named.is_some_and(|named| named.eq_ignore_ascii_case(host))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(pairs: &[(&'static str, &str)]) -> HeaderMap {
        let mut headers = HeaderMap::new();
        headers.insert(header::HOST, HeaderValue::from_static("box.example:7070"));
        for (name, value) in pairs {
            headers.append(*name, value.parse().unwrap());
        }
        headers
    }

    const PROOF: (&str, &str) = ("eyot-page", "x");
    const OWN: (&str, &str) = ("origin", "http://box.example:7070");

    #[test]
    fn the_page_is_known_by_a_header_and_by_what_the_browser_says_where_it_says_something() {
        for fine in [
            &[PROOF][..],
            &[PROOF, OWN],
            &[PROOF, ("origin", "https://BOX.example:7070"), ("sec-fetch-site", "same-origin")],
            &[OWN, ("upgrade", "websocket")],
        ] {
            assert!(asks(&headers(fine)), "{fine:?}");
        }
        for refused in [
            &[][..],
            &[OWN],
            &[("sec-fetch-site", "same-origin")],
            &[("upgrade", "websocket")],
            &[PROOF, ("upgrade", "websocket")],
            &[PROOF, ("origin", "null")],
            &[PROOF, ("origin", "http://box.example")],
            &[PROOF, ("origin", "http://80-x.box.example:7070")],
            &[PROOF, OWN, ("origin", "https://evil.example")],
            &[PROOF, ("sec-fetch-site", "same-site")],
            &[PROOF, ("sec-fetch-site", "cross-site")],
            &[PROOF, ("sec-fetch-site", "none")],
            &[PROOF, ("sec-fetch-site", "same-origin"), ("sec-fetch-site", "cross-site")],
        ] {
            assert!(!asks(&headers(refused)), "{refused:?}");
        }
    }

    #[test]
    fn a_websocket_shows_its_proof_beside_its_protocol() {
        let offered = |text: &str| proof(&headers(&[("sec-websocket-protocol", text)])).map(str::to_owned);
        assert_eq!(offered("eyot-page, eyot-page.abc"), Some("abc".to_owned()));
        assert_eq!(offered("eyot-page"), None);
        assert_eq!(proof(&headers(&[PROOF])), Some("x"));
        assert_eq!(proof(&headers(&[PROOF, PROOF])), None);
    }
}
