//! The ports of sandboxes as web addresses: a request for another port than envd's goes to a server
//! inside.

use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::{HeaderMap, HeaderName, StatusCode, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;

use super::gateway::{running, target};
use super::refusal::E2bRefusal;
use super::{E2bApi, ENVD_PORT};
use crate::hop_by_hop::drop_hop_by_hop;

/// Headers that are for this server alone. So are those whose names begin with `e2b-`.
const OURS: [&str; 2] = ["x-api-key", "x-access-token"];

/// Sends a request for another port than envd's into its sandbox, and lets others pass.
pub(super) async fn divert(State(api): State<E2bApi>, request: Request, next: Next) -> Response {
    match target(request.headers(), request.uri(), &api.options.domain) {
        Some((id, port)) if port != ENVD_PORT => {
            forwarded(&api, &id, port, request).await.unwrap_or_else(IntoResponse::into_response)
        }
        _ => next.run(request).await,
    }
}

async fn forwarded(api: &E2bApi, id: &str, port: u16, mut request: Request) -> Result<Response, E2bRefusal> {
    let record = running(api, id)?;
    strip(request.headers_mut(), [&api.options.api_key, &record.access_token]);
    let closed = |error: &dyn std::fmt::Display| {
        tracing::debug!(%error, id, port, "a port did not answer");
        E2bRefusal::new(StatusCode::BAD_GATEWAY, "The sandbox is running but port is not open")
    };
    let stream = record.sandbox().dial(port).await.map_err(|error| closed(&error))?;
    let (mut sender, connection) =
        http1::handshake(TokioIo::new(stream)).await.map_err(|error| closed(&error))?;
    tokio::spawn(async move {
        if let Err(error) = connection.await {
            tracing::debug!(%error, "a connection to a port was cut off");
        }
    });
    let mut answer = sender.send_request(request).await.map_err(|error| closed(&error))?;
    let headers = answer.headers_mut();
    if headers.contains_key(header::TRANSFER_ENCODING) {
        // Then a length is no length.
        headers.remove(header::CONTENT_LENGTH);
    }
    drop_hop_by_hop(headers);
    Ok(answer.map(Body::new))
}

/// Removes what is not for the program in the sandbox: what opens this API, in whatever header, and what is between
/// neighbours. Another `Authorization` is the program's own, as with E2B.
fn strip(headers: &mut HeaderMap, secrets: [&str; 2]) {
    drop_hop_by_hop(headers);
    let tells = |text: &[u8]| {
        let text = String::from_utf8_lossy(text);
        secrets.iter().any(|secret| !secret.is_empty() && text.contains(secret))
    };
    let is_ours = |name: &str| OURS.contains(&name) || name.starts_with("e2b-");
    let ours = headers.iter().filter(|(name, value)| is_ours(name.as_str()) || tells(value.as_bytes()));
    let ours: Vec<HeaderName> = ours.map(|(name, _)| name.clone()).collect();
    ours.into_iter().for_each(|name| drop(headers.remove(name)));
}
