//! What ends when the server is to stop, though it has no end of its own: nobody waits for it.

use std::convert::Infallible;

use axum::response::sse::Event;
use eyot::{Error, ErrorKind};
use futures_util::{Stream, StreamExt, future, stream};
use tokio_util::sync::CancellationToken;

use super::events_stream::event;
use crate::problem::Refusal;

/// Whether the server is to stop.
#[derive(Clone)]
pub(super) struct Stopping {
    /// Commands and answers may end; whatever has no end of its own ends now.
    pub stop: CancellationToken,
    /// They may not any more.
    pub cut: CancellationToken,
}

impl Stopping {
    /// These events until the server stops, which is told by a last event `problem`.
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

    /// What comes of this, unless the server stops before it has ended.
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
