//! Server-sent events: one JSON value each; a failure is an event `problem`, and the last.

use std::convert::Infallible;
use std::time::Duration;

use axum::response::sse::{Event, KeepAlive, Sse};
use futures_util::{Stream, StreamExt};
use serde::Serialize;

use super::stopping::Stopping;
use crate::problem::Refusal;

/// How often a comment goes out when there is nothing else: proxies cut what is silent.
const KEEP_ALIVE: Duration = Duration::from_secs(15);

/// A stream of values as events of this name, each with the number by which a client goes on from it, if it has one. One that
/// has no end of its own ends when the server stops: `stopping`.
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

/// Keeps proxies from cutting what is silent.
pub(super) fn keep_alive() -> KeepAlive {
    KeepAlive::new().interval(KEEP_ALIVE)
}

/// One value as an event.
pub(super) fn event(name: &str, value: &impl Serialize, number: Option<u64>) -> Event {
    let text = serde_json::to_string(value).unwrap_or_default();
    let event = Event::default().event(name).data(text);
    number.into_iter().fold(event, |event, number| event.id(number.to_string()))
}
