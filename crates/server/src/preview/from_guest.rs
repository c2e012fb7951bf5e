//! A guest's answer as the browser gets it. The guest is not trusted: what it says about other hosts and paths than its own
//! preview's is left out.

use axum::http::{HeaderMap, HeaderValue, StatusCode, header, response};

use super::address::Address;
use super::cookies;
use super::to_guest::drop_hop_by_hop;

/// What would bind a browser beyond this answer, and to ways that don't lead through the server.
const NEVER: [&str; 2] = ["alt-svc", "strict-transport-security"];
/// What says something of a whole host, which below a path is not the guest's.
const NOT_BELOW_A_PATH: [&str; 5] =
    ["service-worker-allowed", "clear-site-data", "nel", "report-to", "reporting-endpoints"];

/// What a browser lets a page do that is shown apart: all but to be of the server's origin, and to lead elsewhere who frames it.
const APART: &str = "sandbox allow-downloads allow-forms allow-modals allow-orientation-lock allow-pointer-lock \
                     allow-popups allow-presentation allow-scripts";

/// Has browsers give what they show of this answer an origin of its own. Below a path it would have the server's, and there a
/// guest's page could use the server's own page with all that its reader may do. The guest's own rules hold besides.
pub(super) fn set_apart(head: &mut response::Parts) {
    head.headers.append(header::CONTENT_SECURITY_POLICY, HeaderValue::from_static(APART));
}

/// Makes an answer's head one of the server's own.
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

/// A redirect to a path of the guest's leads to that path of the preview.
fn lead_back(headers: &mut HeaderMap, address: &Address) {
    let Some(to) = headers.get(header::LOCATION).and_then(|to| to.to_str().ok()) else { return };
    if to.starts_with('/') && !to.starts_with("//") && !to.starts_with("/\\") {
        let to = HeaderValue::from_str(&format!("{}{to}", address.prefix()));
        if let Ok(to) = to {
            headers.insert(header::LOCATION, to);
        }
    }
}
