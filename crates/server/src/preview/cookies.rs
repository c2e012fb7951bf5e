//! The cookie that a browser gets in with: which it is, which of a request's cookies the guest sees, and which of the
//! guest's own cookies the browser gets.

use axum::http::{HeaderMap, HeaderValue, header};

use super::address::Address;
use super::grants::Exchanged;
use crate::api::is_sessions;

/// Its name.
const NAME: &str = "eyot_preview";
/// How many of a request's cookies of that name are looked at: other pages may have put some in a browser.
const LOOKED_AT: usize = 8;

/// What is shown in cookies.
pub(super) fn shown(headers: &HeaderMap) -> impl Iterator<Item = &str> {
    let texts = headers.get_all(header::COOKIE).iter().filter_map(|value| value.to_str().ok());
    let pairs = texts.flat_map(|text| text.split(';')).filter_map(|pair| pair.split_once('='));
    pairs.filter(|(name, _)| name.trim() == NAME).map(|(_, value)| value.trim()).take(LOOKED_AT)
}

/// Takes ours out of a request's.
pub(super) fn strip(headers: &mut HeaderMap) {
    let is_ours = |pair: &&[u8]| {
        let name = pair.split(|byte| *byte == b'=').next().unwrap_or_default();
        name.trim_ascii() == NAME.as_bytes() || std::str::from_utf8(name).is_ok_and(is_sessions)
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

/// Ours, for this preview alone: the host has no other, and a path only says so.
pub(super) fn set(address: &Address, exchanged: &Exchanged, scheme: &str) -> String {
    let secure = if scheme == "https" { "; Secure" } else { "" };
    let (path, seconds) = (address.prefix(), exchanged.lasts.as_secs().max(1));
    format!("{NAME}={}; Path={path}/; Max-Age={seconds}; HttpOnly; SameSite=Lax{secure}", exchanged.cookie)
}

/// A cookie that the guest sets, held to its own preview; `None`: it has our name, or can't be read.
pub(super) fn of_guest(value: &HeaderValue, address: &Address) -> Option<HeaderValue> {
    let text = std::str::from_utf8(value.as_bytes()).ok()?;
    let mut parts = text.split(';').map(str::trim);
    let pair = parts.next()?;
    let name = pair.split_once('=').map_or("", |(name, _)| name).trim();
    let is_ours = |name: &str| name.eq_ignore_ascii_case(NAME) || is_sessions(name);
    let bare = pair.trim_start_matches('=').trim_start();
    let bare_name = bare.split_once('=').map_or(bare, |(name, _)| name);
    if is_ours(name) || is_sessions(bare_name) || pair.trim_start_matches('=').trim_start().starts_with(NAME)
    {
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
    use crate::preview::address::Called;

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
        let Called::Preview(address) = Called::of(&uri, &headers, &[]) else { panic!() };
        address
    }

    #[test]
    fn ours_is_read_and_taken_out_and_the_guests_stay() {
        let mut map = headers(&[
            "a=1; eyot_preview=x;eyot_session=s; __Host-eyot_session=s;b=2",
            "eyot_preview=y",
            "c; eyot_previews=3",
        ]);
        assert_eq!(shown(&map).collect::<Vec<_>>(), ["x", "y"]);
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
        for ours in ["eyot_preview=x", " EYOT_preview = x; Path=/", "=eyot_preview=x", "eyot_preview"] {
            assert_eq!(of_guest(ours), None, "{ours}");
        }
    }
}
