//! Ends endless work when the server stops: streams of events and long waits.

use std::convert::Infallible;

use axum::response::sse::Event;
use eyot::{Error, ErrorKind};
use futures_util::{Stream, StreamExt, future, stream};
use tokio_util::sync::CancellationToken;

use super::events_stream::event;
use crate::problem::Refusal;

/// The two steps in which the server stops.
#[derive(Clone)]
pub(super) struct Stopping {
    /// First step: commands and answers may finish; streams without an end, and waits, end now.
    pub stop: CancellationToken,
    /// Second step: everything ends now.
    pub cut: CancellationToken,
}

impl Stopping {
    /// Passes events on until the server stops. Then the last event is a `problem` that says so.
    pub fn ends<S>(self, events: S) -> impl Stream<Item = Result<Event, Infallible>> + Send
    where
        S: Stream<Item = Result<Event, Infallible>> + Send,
    {
        let stop = self.stop.clone();
        let last = stream::once(async move {
            stop.is_cancelled()
                .then(|| Ok(event("problem", &Refusal::from(the_server_stops()).problem(), None)))
        });
        events.take_until(self.stop.cancelled_owned()).chain(last.filter_map(future::ready))
    }

    /// Returns the result of `work`, or an error if the server stops first.
    pub async fn or<T>(self, work: impl Future<Output = eyot::Result<T>>) -> eyot::Result<T> {
        tokio::select! {
            done = work => done,
            () = self.stop.cancelled() => Err(the_server_stops()),
        }
    }
}

fn the_server_stops() -> Error {
    Error::new(ErrorKind::Unavailable, "the server stops").with_hint("ask again once it runs")
}
