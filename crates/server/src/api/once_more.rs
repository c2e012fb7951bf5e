//! A sandbox may fall asleep between the look for it and its use. A request that met that before it had any effect is done once
//! more, and wakes the sandbox: to its client that is a use like any other.

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

/// How often a request is done at the most: the sandbox is put to sleep each time.
const TRIES: usize = 16;
/// After this long nothing is begun again.
const PATIENCE: Duration = Duration::from_secs(60);

/// Passes a request on whose body is here.
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
