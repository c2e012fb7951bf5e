//! Cookies of the server's own, by name: guests neither see nor set them.
//!
//! Over TLS, and where one is of a whole host, its name begins with `__Host-`: browsers take such a one from that very host
//! alone, so that no other host of the domain puts its own before it.

use axum::http::{HeaderMap, header};

/// What a name begins with where no other host may set it.
const HOST: &str = "__Host-";
/// How many of a request's cookies of a name are looked at: other pages may have put some in a browser.
const LOOKED_AT: usize = 8;

/// A cookie of the server's.
#[derive(Clone, Copy)]
pub(crate) struct OwnCookie(pub &'static str);

impl OwnCookie {
    /// Its name; `is_hosts`: it is one of a whole host, over TLS.
    pub fn name(self, is_hosts: bool) -> String {
        format!("{}{}", if is_hosts { HOST } else { "" }, self.0)
    }

    /// Whether a cookie is this one, whichever way it was set, in any spelling that a browser could take for it.
    pub fn is(self, name: &str) -> bool {
        let name = name.trim();
        let start = name.get(..HOST.len()).filter(|start| start.eq_ignore_ascii_case(HOST));
        name[start.map_or(0, str::len)..].eq_ignore_ascii_case(self.0)
    }

    /// What a request shows in it.
    pub fn shown(self, headers: &HeaderMap, is_hosts: bool) -> impl Iterator<Item = &str> {
        let ours = self.name(is_hosts);
        let texts = headers.get_all(header::COOKIE).iter().filter_map(|value| value.to_str().ok());
        let pairs = texts.flat_map(|text| text.split(';')).filter_map(|pair| pair.split_once('='));
        pairs.filter(move |(name, _)| name.trim() == ours).map(|(_, value)| value.trim()).take(LOOKED_AT)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cookie_of_ours_is_known_in_every_spelling_that_a_browser_could_take_for_it() {
        let session = OwnCookie("eyot_session");
        for ours in ["eyot_session", " Eyot_Session ", "__Host-eyot_session", "__host-EYOT_session"] {
            assert!(session.is(ours), "{ours}");
        }
        for other in ["", "eyot_sessions", "eyot_preview", "__Host-", "__Secure-eyot_session", "ä__Host-eyot"]
        {
            assert!(!session.is(other), "{other}");
        }
    }

    #[test]
    fn over_tls_one_that_is_not_the_hosts_alone_is_not_looked_at() {
        let mut headers = HeaderMap::new();
        headers.insert(header::COOKIE, "own=a; __Host-own=b; other=c".parse().unwrap());
        let shown = |is_hosts| OwnCookie("own").shown(&headers, is_hosts).collect::<Vec<_>>();
        assert_eq!((shown(false), shown(true)), (vec!["a"], vec!["b"]));
    }
}
