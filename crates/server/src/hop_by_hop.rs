//! Headers between two neighbours, which a server that passes messages on keeps to itself.

use axum::http::{HeaderMap, HeaderName, header};

/// Headers between two neighbours, which are not passed on.
const HOP_BY_HOP: [&str; 9] = [
    "connection",
    "keep-alive",
    "proxy-authenticate",
    "proxy-authorization",
    "proxy-connection",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
];

/// Removes the hop-by-hop headers, and those that `Connection` names. Headers that frame a message
/// or name its sender stay, whatever `Connection` says: without them the next server would read the
/// message differently.
pub(crate) fn drop_hop_by_hop(headers: &mut HeaderMap) {
    let stays = [header::CONTENT_LENGTH, header::HOST, header::COOKIE, header::SET_COOKIE];
    let named: Vec<HeaderName> = headers
        .get_all(header::CONNECTION)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','))
        .filter_map(|name| name.trim().parse().ok())
        .filter(|name| !stays.contains(name))
        .collect();
    named.into_iter().for_each(|name| drop(headers.remove(name)));
    HOP_BY_HOP.into_iter().for_each(|name| drop(headers.remove(name)));
}

#[cfg(test)]
mod tests {
    use axum::http::HeaderValue;

    use super::*;

    #[test]
    fn what_is_between_neighbours_is_dropped_and_so_is_what_connection_names_but_not_the_length() {
        let mut headers = HeaderMap::new();
        for (name, value) in [
            ("connection", "close, X-Secret , content-length"),
            ("x-secret", "1"),
            ("x-kept", "1"),
            ("content-length", "3"),
            ("te", "trailers"),
            ("keep-alive", "1"),
        ] {
            headers.append(HeaderName::from_static(name), HeaderValue::from_static(value));
        }
        drop_hop_by_hop(&mut headers);
        let mut names: Vec<&str> = headers.keys().map(HeaderName::as_str).collect();
        names.sort_unstable();
        assert_eq!(names, ["content-length", "x-kept"]);
    }
}
