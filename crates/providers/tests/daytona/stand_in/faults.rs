//! Faults of the service that a test plans.

#[allow(clippy::duplicate_mod, reason = "a test may use several stand-ins")]
#[path = "../../vendor/planned.rs"]
mod planned;

use axum::body::{Body, Bytes};
use axum::extract::{Request, State};
use axum::http::{Method, StatusCode, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use futures_util::{StreamExt, stream};

use planned::PlannedFaults;

/// A fault of one call.
#[derive(Clone, Debug)]
pub enum Fault {
    /// It is refused with this status, and perhaps with `Retry-After`, in seconds.
    Http(u16, Option<u32>),
    /// It is carried out, and answered with this status.
    DoneThen(u16),
    /// It is carried out, and its answer is lost.
    AnswerLost,
    /// It is carried out, and its answer is cut off in the middle.
    Cut,
    /// It is sent to another address.
    Redirected(String),
    /// The answer never ends.
    Endless,
    /// It is carried out once it is released.
    Held,
}

/// The faults to come, and the calls that came.
pub type Faults = PlannedFaults<Fault>;

/// Names a call: the last word of its path, or what is done with a sandbox or a terminal as a whole.
fn name(request: &Request) -> String {
    let parts: Vec<&str> = request.uri().path().split('/').filter(|part| !part.is_empty()).collect();
    let of_whole = match (request.method(), parts.as_slice()) {
        (&Method::POST, ["api", "sandbox"]) => "create",
        (&Method::GET, ["api", "sandbox"]) => "list",
        (&Method::GET, ["api", "sandbox", _]) => "get",
        (&Method::DELETE, ["api", "sandbox", _]) => "delete",
        (&Method::DELETE, ["toolbox", _, "process", "pty", _]) => "end_pty",
        (_, parts) => parts.last().copied().unwrap_or_default(),
    };
    of_whole.to_owned()
}

/// Does what is planned for a call.
pub async fn around(State(faults): State<Faults>, request: Request, next: Next) -> Response {
    let broken = || stream::iter([Err::<Bytes, _>(std::io::Error::other("cut off"))]);
    match faults.take(&name(&request)) {
        None => next.run(request).await,
        Some(Fault::Http(status, asked)) => {
            let status = StatusCode::from_u16(status).expect("a status");
            let mut response = (status, r#"{"message":"a planned fault"}"#).into_response();
            if let Some(asked) = asked {
                response.headers_mut().insert(header::RETRY_AFTER, asked.into());
            }
            response
        }
        Some(Fault::DoneThen(status)) => {
            next.run(request).await;
            let status = StatusCode::from_u16(status).expect("a status");
            (status, r#"{"message":"a planned fault"}"#).into_response()
        }
        Some(Fault::AnswerLost) => {
            next.run(request).await;
            Response::new(Body::from_stream(broken()))
        }
        Some(Fault::Cut) => {
            let response = next.run(request).await;
            let whole = axum::body::to_bytes(response.into_body(), usize::MAX).await.expect("a body");
            let half = stream::iter([Ok(whole.slice(..whole.len() / 2))]);
            Response::new(Body::from_stream(half.chain(broken())))
        }
        Some(Fault::Redirected(to)) => {
            (StatusCode::TEMPORARY_REDIRECT, [(header::LOCATION, to)]).into_response()
        }
        Some(Fault::Endless) => {
            let piece = Bytes::from(vec![b' '; 1 << 16]);
            Response::new(Body::from_stream(stream::repeat(piece).map(Ok::<_, std::io::Error>)))
        }
        Some(Fault::Held) => {
            faults.hold().await;
            next.run(request).await
        }
    }
}
