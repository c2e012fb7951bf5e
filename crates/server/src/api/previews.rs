//! The routes that open and close a preview of a port. [`crate::preview`] serves the preview
//! itself.

use std::collections::HashMap;
use std::time::{Duration, SystemTime};

use axum::Json;
use axum::extract::{Extension, Path, State};
use axum::http::uri::Authority;
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use eyot::wire::{PreviewAnswer, PreviewBody};
use eyot::{Capability, Error, ErrorKind, SandboxName, SandboxProvider};

use super::access::Caller;
use super::extract::{InPool, JsonBody, Named, TheSandbox};
use super::ports::ThePort;
use super::state::Api;
use super::turns::Turn;
use crate::preview::{
    BaseAddress, Domains, GrantRequest, PreviewTarget, TTL_MS, TTL_MS_RANGE, answer, scheme,
};
use crate::problem::{Problems, Refusal};

/// Opens a preview: a port of a sandbox as a web page.
///
/// Each call returns new tokens; earlier ones stay valid until they expire. All previews, public
/// ones too, end when the server restarts.
#[utoipa::path(post, path = "/v1/sandboxes/{sandbox}/ports/{port}/preview", tag = "ports", params(TheSandbox, ThePort, InPool),
    request_body(content = PreviewBody, example = json!({ "ttl_ms": 3_600_000 })),
    responses((status = 201, body = PreviewAnswer), Problems))]
pub(super) async fn open(
    State(api): State<Api>,
    (caller, Extension(turn)): (Caller, Extension<Turn>),
    named: Named,
    Path(path): Path<HashMap<String, String>>,
    domains: Option<Extension<Domains>>,
    headers: HeaderMap,
    JsonBody(body): JsonBody<PreviewBody>,
) -> Result<Response, Refusal> {
    let ttl_ms = body.ttl_ms.unwrap_or(TTL_MS);
    if !TTL_MS_RANGE.contains(&ttl_ms) {
        let (least, most) = (TTL_MS_RANGE.start(), TTL_MS_RANGE.end());
        return Err(Error::invalid("ttl_ms", format!("must be from {least} to {most}, not {ttl_ms}")).into());
    }
    let (ttl, now) = (Duration::from_millis(ttl_ms), SystemTime::now());
    let (pool, target) = target(&api, &named, &path).await?;
    let provider = api.pool(&pool)?;
    provider.capabilities().require(Capability::Dial, provider.name(), "preview", &[])?;
    let key = caller.key_id();
    let request = GrantRequest { target: &target, pool: &pool, key, ttl, public: body.public };
    let issued = api.grants().issue(request, now)?;
    // The key may have been revoked since it was looked up, before there was this grant to revoke.
    if let Some(key) = key.filter(|_| turn.is_over()) {
        api.grants().revoke_key(key);
    }
    let domains = domains.map(|Extension(Domains(domains))| domains).unwrap_or_default();
    let host = host(&headers)?;
    let base = BaseAddress { scheme: scheme(&headers), host: &host };
    let path_url = base.path_url(&target);
    let url = base.host_url(&target, &domains).unwrap_or_else(|| path_url.clone());
    let answer = answer(&target, [url, path_url], issued, now + ttl);
    let no_store = [(header::CACHE_CONTROL, HeaderValue::from_static("no-store"))];
    Ok((StatusCode::CREATED, no_store, Json(answer)).into_response())
}

/// Closes the preview of a port.
///
/// All its tokens become invalid, and connections under way are cut.
#[utoipa::path(delete, path = "/v1/sandboxes/{sandbox}/ports/{port}/preview", tag = "ports", params(TheSandbox, ThePort, InPool),
    responses((status = 204), Problems))]
pub(super) async fn close(
    State(api): State<Api>,
    named: Named,
    Path(path): Path<HashMap<String, String>>,
) -> Result<StatusCode, Refusal> {
    let (_, target) = target(&api, &named, &path).await?;
    api.grants().revoke(&target);
    Ok(StatusCode::NO_CONTENT)
}

/// Returns the pool, the sandbox and the port that the path names. This does not wake the sandbox.
async fn target(
    api: &Api,
    named: &Named,
    path: &HashMap<String, String>,
) -> Result<(SandboxName, PreviewTarget), Refusal> {
    let port: Option<u16> = path.get("port").and_then(|text| text.parse().ok()).filter(|port| *port != 0);
    let port = port.ok_or_else(|| Error::invalid("port", "must be a number from 1 to 65535"))?;
    let pool = named.pool(api).await?;
    let info = named.info(api, &pool).await?;
    Ok((pool, PreviewTarget { sandbox: info.id, port }))
}

/// Returns the name and port by which the client called the server.
fn host(headers: &HeaderMap) -> Result<Authority, Error> {
    let host = headers.get(header::HOST).and_then(|host| host.to_str().ok()?.parse().ok());
    host.ok_or_else(|| Error::new(ErrorKind::Invalid, "send one `Host` header"))
}
