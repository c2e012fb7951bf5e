//! Rewrites a guest's answer for the browser. The guest is not trusted: headers about other hosts,
//! and about paths outside its own preview, are removed.

use axum::http::{HeaderMap, HeaderValue, StatusCode, header, response};

use super::address::Address;
use super::cookies;
use crate::hop_by_hop::drop_hop_by_hop;

/// Headers that act beyond this answer. They would lead a browser around the server (`Alt-Svc`),
/// bind a name or its whole domain for a long time (`Strict-Transport-Security`, pins,
/// `Expect-CT`), clear what other previews keep, since browsers clear cookies for the whole
/// registrable domain (`Clear-Site-Data`), change how the browser treats the origin later
/// (`Origin-Agent-Cluster`, `Accept-CH`, `Critical-CH`, login state), join origins into one
/// (related sets, topics, shared storage), have the browser report to others (`NEL`, reports), or
/// tell a proxy in front of the server to send a file of its own or to treat the answer in another
/// way (`X-Accel-*`, `X-Sendfile`, surrogate control).
const NEVER: [&str; 28] = [
    "accept-ch",
    "alt-svc",
    "clear-site-data",
    "critical-ch",
    "edge-control",
    "expect-ct",
    "nel",
    "observe-browsing-topics",
    "origin-agent-cluster",
    "public-key-pins",
    "public-key-pins-report-only",
    "proxy-authentication-info",
    "proxy-status",
    "report-to",
    "reporting-endpoints",
    "set-cookie2",
    "set-login",
    "shared-storage-write",
    "strict-transport-security",
    "surrogate-control",
    "x-accel-buffering",
    "x-accel-charset",
    "x-accel-expires",
    "x-accel-limit-rate",
    "x-accel-redirect",
    "x-lighttpd-send-file",
    "x-reproxy-url",
    "x-sendfile",
];
/// Headers about a whole host. Below a path the host is not the guest's, so they are removed.
const NOT_BELOW_A_PATH: [&str; 2] = ["service-worker-allowed", "use-as-dictionary"];

/// The policy of a preview below a path. It allows a page everything but the server's origin, and
/// navigation of the page that frames it.
const APART: &str = "sandbox allow-downloads allow-forms allow-modals allow-orientation-lock allow-pointer-lock \
                     allow-popups allow-presentation allow-scripts";

/// Makes browsers give the page of this answer an origin of its own. Below a path it would have the
/// server's origin, and there a guest's page could use the server's own page with all rights of its
/// reader. The guest's own policies apply as well.
pub(super) fn set_apart(head: &mut response::Parts) {
    head.headers.append(header::CONTENT_SECURITY_POLICY, HeaderValue::from_static(APART));
}

/// Rewrites the head of a guest's answer into one of the server.
pub(super) fn rewrite(head: &mut response::Parts, address: &Address) {
    let headers = &mut head.headers;
    if headers.contains_key(header::TRANSFER_ENCODING) {
        // Then a length is no length.
        headers.remove(header::CONTENT_LENGTH);
    }
    drop_hop_by_hop(headers);
    NEVER.into_iter().for_each(|name| drop(headers.remove(name)));
    hold_cookies(headers, address);
    if address.is_path() {
        NOT_BELOW_A_PATH.into_iter().for_each(|name| drop(headers.remove(name)));
        lead_back(headers, address);
    }
    if head.status == StatusCode::SWITCHING_PROTOCOLS {
        headers.insert(header::CONNECTION, HeaderValue::from_static("Upgrade"));
        headers.insert(header::UPGRADE, HeaderValue::from_static("websocket"));
    }
    head.version = axum::http::Version::HTTP_11;
}

fn hold_cookies(headers: &mut HeaderMap, address: &Address) {
    let set = headers.get_all(header::SET_COOKIE).iter();
    let held: Vec<HeaderValue> = set.filter_map(|value| cookies::of_guest(value, address)).collect();
    headers.remove(header::SET_COOKIE);
    for value in held {
        headers.append(header::SET_COOKIE, value);
    }
}

/// Rewrites a redirect to a path of the guest into one to that path of the preview.
fn lead_back(headers: &mut HeaderMap, address: &Address) {
    let Some(to) = headers.get(header::LOCATION).and_then(|to| to.to_str().ok()) else { return };
    if to.starts_with('/') && !to.starts_with("//") && !to.starts_with("/\\") {
        let to = HeaderValue::from_str(&format!("{}{to}", address.prefix()));
        if let Ok(to) = to {
            headers.insert(header::LOCATION, to);
        }
    }
}
