//! The cookie that lets a browser into a preview: its name and scope, its removal from the requests
//! that the guest sees, and the guest's own cookies, confined to its preview.

use axum::http::{HeaderMap, HeaderValue, header};

use super::address::Address;
use super::entry::scheme;
use super::grants::NewCookie;
use crate::api::is_sessions;
use crate::http::own_cookie::OwnCookie;

/// The cookie of a preview.
const COOKIE: OwnCookie = OwnCookie("eyot_preview");

/// Returns the values of the preview cookie in a request.
pub(super) fn shown<'a>(headers: &'a HeaderMap, address: &Address) -> impl Iterator<Item = &'a str> {
    COOKIE.values(headers, is_hosts(address, scheme(headers)))
}

/// Tells whether the cookie belongs to a whole host, over TLS. The cookie of a path does not.
fn is_hosts(address: &Address, scheme: &str) -> bool {
    scheme == "https" && !address.is_path()
}

/// Tells whether a cookie is one of the server's own.
fn is_ours(name: &str) -> bool {
    COOKIE.is(name) || is_sessions(name)
}

/// Removes the server's cookies from a request.
pub(super) fn strip(headers: &mut HeaderMap) {
    let is_ours = |pair: &&[u8]| {
        let name = pair.split(|byte| *byte == b'=').next().unwrap_or_default();
        std::str::from_utf8(name).is_ok_and(is_ours)
    };
    let of_guest = |value: &HeaderValue| {
        let pairs = value.as_bytes().split(|byte| *byte == b';');
        let kept: Vec<&[u8]> = pairs.filter(|pair| !is_ours(pair)).map(<[u8]>::trim_ascii).collect();
        let kept = kept.into_iter().filter(|pair| !pair.is_empty()).collect::<Vec<_>>().join(&b"; "[..]);
        HeaderValue::from_bytes(&kept).ok().filter(|value| !value.is_empty())
    };
    let kept: Vec<HeaderValue> = headers.get_all(header::COOKIE).iter().filter_map(of_guest).collect();
    headers.remove(header::COOKIE);
    for value in kept {
        headers.append(header::COOKIE, value);
    }
}

/// Makes the `Set-Cookie` value for this preview. On a host of its own the cookie has that host to
/// itself; below a path, only its `Path` confines it.
pub(super) fn set(address: &Address, exchanged: &NewCookie, scheme: &str) -> String {
    let secure = if scheme == "https" { "; Secure" } else { "" };
    let (path, seconds) = (address.prefix(), exchanged.lasts.as_secs().max(1));
    let (name, cookie) = (COOKIE.name(is_hosts(address, scheme)), &exchanged.cookie);
    format!("{name}={cookie}; Path={path}/; Max-Age={seconds}; HttpOnly; SameSite=Lax{secure}")
}

/// Confines a cookie that the guest sets to its own preview; `None`: it has the name of a server's
/// cookie, or cannot be read.
pub(super) fn of_guest(value: &HeaderValue, address: &Address) -> Option<HeaderValue> {
    let text = std::str::from_utf8(value.as_bytes()).ok()?;
    let mut parts = text.split(';').map(str::trim);
    let pair = parts.next()?;
    let name = pair.split_once('=').map_or("", |(name, _)| name).trim();
    // Some browsers take what follows a `=` without a name for one.
    let bare = pair.trim_start_matches('=').trim_start();
    let bare_name = bare.split_once('=').map_or(bare, |(name, _)| name);
    if is_ours(name) || is_ours(bare_name) {
        return None;
    }
    let prefix = address.prefix();
    let held = parts.filter_map(|part| {
        let (key, value) = part.split_once('=').unwrap_or((part, ""));
        match key.trim().to_ascii_lowercase().as_str() {
            "domain" => None,
            "path" if value.trim().starts_with('/') => Some(format!("Path={prefix}{}", value.trim())),
            // Without a good one, the browser takes the request's, which is below the prefix.
            "path" => None,
            _ => Some(part.to_owned()),
        }
    });
    let all: Vec<String> = std::iter::once(pair.to_owned()).chain(held).collect();
    HeaderValue::from_bytes(all.join("; ").as_bytes()).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::preview::address::RequestTarget;

    fn headers(values: &[&str]) -> HeaderMap {
        let mut headers = HeaderMap::new();
        for value in values {
            headers.append(header::COOKIE, value.parse().unwrap());
        }
        headers
    }

    fn by_path() -> Address {
        let uri = "/preview/sb_0192f0c1e7d87c3e9a4b5c6d7e8f9a0b/80/x".parse().unwrap();
        let mut headers = HeaderMap::new();
        headers.insert(header::HOST, "localhost".parse().unwrap());
        let RequestTarget::Preview(address) = RequestTarget::of(&uri, &headers, &[]) else { panic!() };
        address
    }

    #[test]
    fn ours_is_read_and_taken_out_and_the_guests_stay() {
        let mut map = headers(&[
            "a=1; eyot_preview=x;eyot_session=s; __Host-eyot_session=s;b=2",
            "eyot_preview=y; __host-Eyot_Preview=z",
            "c; eyot_previews=3",
        ]);
        assert_eq!(shown(&map, &by_path()).collect::<Vec<_>>(), ["x", "y"]);
        strip(&mut map);
        assert_eq!(
            map.get_all(header::COOKIE).iter().collect::<Vec<_>>(),
            ["a=1; b=2", "c; eyot_previews=3"]
        );
    }

    #[test]
    fn a_guest_sets_cookies_for_its_own_preview_and_never_ours() {
        let of_guest = |text: &str| {
            let held = of_guest(&HeaderValue::from_bytes(text.as_bytes()).unwrap(), &by_path());
            held.map(|value| value.to_str().unwrap().to_owned())
        };
        let prefix = by_path().prefix();
        assert_eq!(of_guest("s=1; HttpOnly"), Some("s=1; HttpOnly".into()));
        assert_eq!(of_guest("s=1; Path=/a; Domain=localhost"), Some(format!("s=1; Path={prefix}/a")));
        assert_eq!(of_guest("s=1; path=a;domain=x; Secure"), Some("s=1; Secure".into()));
        for ours in ["eyot_session=x", "__Host-eyot_session=x; Path=/", "=eyot_session=x", "eyot_session"] {
            assert_eq!(of_guest(ours), None, "{ours}");
        }
        for ours in [
            "eyot_preview=x",
            " EYOT_preview = x; Path=/",
            "=eyot_preview=x",
            "eyot_preview",
            "__Host-eyot_preview=x",
        ] {
            assert_eq!(of_guest(ours), None, "{ours}");
        }
    }

    #[test]
    fn over_tls_the_cookie_of_a_preview_with_a_host_of_its_own_is_set_by_no_other_host() {
        let exchanged = || NewCookie { cookie: "v".to_owned(), lasts: std::time::Duration::from_secs(5) };
        let mut map = HeaderMap::new();
        map.insert(header::HOST, "80-sb-0192f0c1e7d87c3e9a4b5c6d7e8f9a0b.localhost".parse().unwrap());
        let RequestTarget::Preview(by_host) = RequestTarget::of(&"/x".parse().unwrap(), &map, &[]) else {
            panic!()
        };
        let text = set(&by_host, &exchanged(), "https");
        assert_eq!(text, "__Host-eyot_preview=v; Path=/; Max-Age=5; HttpOnly; SameSite=Lax; Secure");
        assert!(set(&by_host, &exchanged(), "http").starts_with("eyot_preview=v; Path=/;"));
        assert!(set(&by_path(), &exchanged(), "https").starts_with("eyot_preview=v; Path=/preview/"));
        map.insert(header::COOKIE, "eyot_preview=theirs; __Host-eyot_preview=v".parse().unwrap());
        map.insert("x-forwarded-proto", "https".parse().unwrap());
        assert_eq!(shown(&map, &by_host).collect::<Vec<_>>(), ["v"]);
    }
}
