//! Streams of a run's events, as server-sent events.

use std::convert::Infallible;
use std::time::Duration;

use axum::http::{HeaderMap, header};
use axum::response::sse::{Event, KeepAlive, Sse};
use axum::response::{IntoResponse, Response};
use eyot::Result;
use futures_util::StreamExt;
use serde_json::json;

use super::RouterState;
use crate::event::AgentEvent;

/// The pause after which a comment is sent, so that proxies do not close a silent stream.
const HEARTBEAT: Duration = Duration::from_secs(15);

/// Streams the events of a run from a number on, each under its own number, until the last one or until the server stops.
pub(super) async fn run_stream(state: &RouterState, run: &str, from: u64) -> Result<Response> {
    let events = state.agents.follow(run, from).await?;
    let mut last = from.saturating_sub(1);
    let told = events.map(move |event| {
        Ok::<_, Infallible>(match event {
            Ok(event) => {
                last = event.event_index;
                sse(&event)
            }
            Err(error) => {
                tracing::error!(%error, "a stream of a run's events broke");
                let text = json!({"message": "the events of the run can't be read"}).to_string();
                Event::default().event("error").id(last.to_string()).data(text)
            }
        })
    });
    let told = told.take_until(state.options.stop.clone().cancelled_owned());
    Ok(Sse::new(told).keep_alive(KeepAlive::new().interval(HEARTBEAT).text("heartbeat")).into_response())
}

fn sse(event: &AgentEvent) -> Event {
    let text = serde_json::to_string(event).unwrap_or_default();
    Event::default().event(event.kind.name()).id(event.event_index.to_string()).data(text)
}

/// Returns the number of the first event that the client of a stream lacks. A header that is no number counts as none.
pub(super) fn first_wanted(headers: &HeaderMap) -> u64 {
    let last =
        headers.get("last-event-id").and_then(|id| id.to_str().ok()).map(str::trim).unwrap_or_default();
    let digits: String = last.chars().take_while(char::is_ascii_digit).collect();
    digits.parse::<u64>().map_or(0, |last| last.saturating_add(1))
}

/// Tells whether a client takes server-sent events.
pub(super) fn takes_events(headers: &HeaderMap) -> bool {
    let accept = headers.get(header::ACCEPT).and_then(|accept| accept.to_str().ok());
    accept.is_some_and(|accept| accept.contains("text/event-stream"))
}
