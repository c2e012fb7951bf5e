//! The ports of sandboxes as web addresses: a request for another port than envd's goes to a server
//! inside.

use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::StatusCode;
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;

use super::gateway::{running, target};
use super::refusal::E2bRefusal;
use super::{E2bApi, ENVD_PORT};

/// Sends a request for another port than envd's into its sandbox, and lets others pass.
pub(super) async fn divert(State(api): State<E2bApi>, request: Request, next: Next) -> Response {
    match target(request.headers(), request.uri()) {
        Some((id, port)) if port != ENVD_PORT => {
            forwarded(&api, &id, port, request).await.unwrap_or_else(IntoResponse::into_response)
        }
        _ => next.run(request).await,
    }
}

async fn forwarded(api: &E2bApi, id: &str, port: u16, request: Request) -> Result<Response, E2bRefusal> {
    let record = running(api, id)?;
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
    let answer = sender.send_request(request).await.map_err(|error| closed(&error))?;
    Ok(answer.map(Body::new))
}
