//! Repeats a request whose sandbox fell asleep between its look-up and its use. It is repeated only
//! if it had no effect, or if it only reads; the repetition wakes the sandbox.

use std::time::{Duration, Instant};

use axum::body::Body;
use axum::extract::Request;
use axum::http::header;
use axum::http::request::Parts;
use axum::middleware::Next;
use axum::response::Response;
use bytes::Bytes;
use eyot::wire::LIFE;

use crate::problem::FellAsleep;

/// The most attempts of one request.
const TRIES: usize = 16;
/// The time after which a request is not repeated any more.
const PATIENCE: Duration = Duration::from_secs(60);

/// Passes a request on whose whole body has been read.
pub(super) async fn run(parts: Parts, body: Bytes, next: Next) -> Response {
    let give_up = Instant::now() + PATIENCE;
    // Whoever holds on to one life of a sandbox is told that it has ended; a WebSocket can be given away once.
    let is_for_once = parts.headers.contains_key(LIFE) || parts.headers.contains_key(header::UPGRADE);
    if !is_for_once {
        for _ in 1..TRIES {
            let again = Request::from_parts(parts.clone(), Body::from(body.clone()));
            let response = next.clone().run(again).await;
            if !can_be_repeated(&parts, &response) || Instant::now() > give_up {
                return response;
            }
        }
    }
    next.run(Request::from_parts(parts, Body::from(body))).await
}

fn can_be_repeated(parts: &Parts, response: &Response) -> bool {
    let Some(asleep) = response.extensions().get::<FellAsleep>() else { return false };
    // A process ended with the life that it was asked about: whoever waits for it is told, and wakes nothing.
    let is_of_process = parts.uri.path().contains("/processes/");
    asleep.before_it_began || (parts.method.is_safe() && !is_of_process)
}
