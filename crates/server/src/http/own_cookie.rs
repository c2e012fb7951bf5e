//! The server's own cookies, by name. Guests neither see nor set them.
//!
//! Over TLS, the name of a cookie that belongs to a whole host begins with `__Host-`. Browsers
//! accept such a cookie from that very host only, so no other host of the domain can set one that
//! comes before it.

use axum::http::{HeaderMap, header};

/// The prefix of names that only the host itself may set.
const HOST: &str = "__Host-";
/// The most cookies of one name that are checked in a request: other pages may have put some in a
/// browser.
const LOOKED_AT: usize = 8;

/// A cookie of the server, by its name without the prefix.
#[derive(Clone, Copy)]
pub(crate) struct OwnCookie(pub &'static str);

impl OwnCookie {
    /// Returns the name, with the prefix if the cookie belongs to a whole host, over TLS.
    pub fn name(self, is_hosts: bool) -> String {
        format!("{}{}", if is_hosts { HOST } else { "" }, self.0)
    }

    /// Tells whether a name is this cookie's, with or without the prefix, in any spelling that a
    /// browser could take for it.
    pub fn is(self, name: &str) -> bool {
        let name = name.trim();
        let start = name.get(..HOST.len()).filter(|start| start.eq_ignore_ascii_case(HOST));
        name[start.map_or(0, str::len)..].eq_ignore_ascii_case(self.0)
    }

    /// Returns the values of this cookie in a request.
    pub fn values(self, headers: &HeaderMap, is_hosts: bool) -> impl Iterator<Item = &str> {
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
        let values = |is_hosts| OwnCookie("own").values(&headers, is_hosts).collect::<Vec<_>>();
        assert_eq!((values(false), values(true)), (vec!["a"], vec!["b"]));
    }
}
