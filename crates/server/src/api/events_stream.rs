//! Server-sent events with one JSON value each. A failure is an event `problem`, which is the last.

use std::convert::Infallible;
use std::time::Duration;

use axum::response::sse::{Event, KeepAlive, Sse};
use futures_util::{Stream, StreamExt};
use serde::Serialize;

use super::stopping::Stopping;
use crate::problem::Refusal;

/// The pause after which a comment is sent, so that proxies do not close a silent stream.
const KEEP_ALIVE: Duration = Duration::from_secs(15);

/// Streams values as events of this name. An event has the number, if any, from which a client can
/// resume. A stream without an end ends when the server stops (`stopping`).
pub(super) fn events<T: Serialize + Send + 'static>(
    name: &'static str,
    values: impl Stream<Item = eyot::Result<T>> + Send + 'static,
    number: impl Fn(&T) -> Option<u64> + Send + 'static,
    stopping: Option<Stopping>,
) -> Sse<impl Stream<Item = Result<Event, Infallible>> + Send> {
    let told = values.map(move |value| {
        Ok(match value {
            Ok(value) => event(name, &value, number(&value)),
            Err(error) => event("problem", &Refusal::from(error).problem(), None),
        })
    });
    let told = match stopping {
        Some(stopping) => stopping.ends(told).boxed(),
        None => told.boxed(),
    };
    Sse::new(told).keep_alive(keep_alive())
}

/// Sends a comment now and then, so that proxies do not close a silent stream.
pub(super) fn keep_alive() -> KeepAlive {
    KeepAlive::new().interval(KEEP_ALIVE)
}

/// Makes an event from one value.
pub(super) fn event(name: &str, value: &impl Serialize, number: Option<u64>) -> Event {
    let text = serde_json::to_string(value).unwrap_or_default();
    let event = Event::default().event(name).data(text);
    number.into_iter().fold(event, |event, number| event.id(number.to_string()))
}
