//! The way into a sandbox: which one a request is for, whether it may enter, and as which user.

use std::sync::Arc;

use axum::extract::{Request, State};
use axum::http::{HeaderMap, Method, StatusCode, Uri, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use subtle::ConstantTimeEq;

use super::records::SandboxRecord;
use super::refusal::E2bRefusal;
use super::signature;
use super::{E2bApi, ENVD_PORT};

/// The user of a sandbox whom E2B uses by default.
const DEFAULT_USER: &str = "user";
/// The words by which the SDKs tell a sandbox that has ended from one that does not answer.
const NOT_FOUND: &str = "The sandbox was not found";

/// A request that has entered a sandbox.
#[derive(Clone)]
pub(super) struct GatewayEntry {
    pub record: Arc<SandboxRecord>,
    /// The user who acts; `None`: the sandbox's own.
    pub user: Option<String>,
}

/// Returns the words that refuse another user's files: those of this API are the sandbox's own user's.
pub(super) fn no_files_of(user: &str) -> String {
    format!("files of the user '{user}' are not supported; use the user 'user'")
}

/// Names the sandbox and the port that a request is for.
///
/// A host names them where it is one of the API's own domain.
pub(super) fn target(headers: &HeaderMap, uri: &Uri, domain: &str) -> Option<(String, u16)> {
    let text = |name: &str| headers.get(name).and_then(|value| value.to_str().ok());
    if let Some(id) = text("e2b-sandbox-id") {
        let port = text("e2b-sandbox-port").map_or(Some(ENVD_PORT), |port| port.parse().ok())?;
        return Some((id.to_owned(), port));
    }
    let host = uri.host().or_else(|| text(header::HOST.as_str()))?;
    let (name, its_domain) = without_port(host).split_once('.')?;
    let (port, id) = name.split_once('-')?;
    if !its_domain.eq_ignore_ascii_case(without_port(domain)) {
        return None;
    }
    Some((id.to_owned(), port.parse().ok()?))
}

fn without_port(host: &str) -> &str {
    host.split_once(':').map_or(host, |(host, _)| host)
}

/// Finds a sandbox that runs.
pub(super) fn running(api: &E2bApi, id: &str) -> Result<Arc<SandboxRecord>, E2bRefusal> {
    let record = api.records.get(id).filter(|record| !record.is_paused());
    record.ok_or_else(|| E2bRefusal::new(StatusCode::BAD_GATEWAY, NOT_FOUND))
}

/// Lets a request into its sandbox.
pub(super) async fn enter(State(api): State<E2bApi>, mut request: Request, next: Next) -> Response {
    match admit(&api, &request) {
        Ok(entry) => {
            request.extensions_mut().insert(entry);
            next.run(request).await
        }
        Err(refusal) => refusal.into_response(),
    }
}

fn admit(api: &E2bApi, request: &Request) -> Result<GatewayEntry, E2bRefusal> {
    let no_target = || E2bRefusal::new(StatusCode::BAD_REQUEST, "the request names no sandbox");
    let (id, _) = target(request.headers(), request.uri(), &api.options.domain).ok_or_else(no_target)?;
    let record = running(api, &id)?;
    check_token(&record, request)?;
    let user = named_user(request.headers()).filter(|user| user != DEFAULT_USER);
    Ok(GatewayEntry { record, user })
}

fn check_token(record: &SandboxRecord, request: &Request) -> Result<(), E2bRefusal> {
    let path = request.uri().path();
    if path == "/health" && request.method() == Method::GET {
        return Ok(());
    }
    match request.headers().get("x-access-token") {
        Some(token) if bool::from(token.as_bytes().ct_eq(record.access_token.as_bytes())) => Ok(()),
        None if path == "/files" => signature::check(record, request.method(), request.uri()),
        _ => {
            let message = "unauthorized access, please provide a valid access token";
            Err(E2bRefusal::new(StatusCode::UNAUTHORIZED, message))
        }
    }
}

/// Returns the user of an `Authorization` header; the SDKs send no password.
fn named_user(headers: &HeaderMap) -> Option<String> {
    let value = headers.get(header::AUTHORIZATION)?.to_str().ok()?;
    let decoded = STANDARD.decode(value.strip_prefix("Basic ")?).ok()?;
    let text = String::from_utf8(decoded).ok()?;
    let user = text.split_once(':').map_or(text.as_str(), |(user, _)| user);
    Some(user.to_owned()).filter(|user| !user.is_empty())
}

#[cfg(test)]
mod tests {
    use axum::http::HeaderValue;

    use super::*;

    fn headers(pairs: &[(&'static str, &'static str)]) -> HeaderMap {
        pairs.iter().map(|(name, value)| (name.parse().unwrap(), HeaderValue::from_static(value))).collect()
    }

    #[test]
    fn a_sandbox_is_named_by_headers_or_by_the_host() {
        let uri = Uri::from_static("/health");
        let by_headers = headers(&[("e2b-sandbox-id", "i1"), ("e2b-sandbox-port", "49983")]);
        let target = |headers: &HeaderMap| target(headers, &uri, "e2b.test");
        assert_eq!(target(&by_headers), Some(("i1".to_owned(), 49_983)));
        let by_host = headers(&[("host", "3000-i1.E2B.test:8080")]);
        assert_eq!(target(&by_host), Some(("i1".to_owned(), 3000)));
        for other in ["127.0.0.1:8080", "[::1]:8080", "3000-i1.evil.test", "3000-i1.x.e2b.test"] {
            assert_eq!(target(&headers(&[("host", other)])), None, "{other}");
        }
    }

    #[test]
    fn the_user_is_the_one_of_basic_authentication() {
        assert_eq!(named_user(&headers(&[("authorization", "Basic cm9vdDo=")])), Some("root".to_owned()));
        assert_eq!(named_user(&headers(&[("authorization", "Bearer x")])), None);
        assert_eq!(named_user(&headers(&[])), None);
    }
}
