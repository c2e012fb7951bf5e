//! A server's stream of events, with a bound on the size of one event.

use futures_util::stream::BoxStream;
use futures_util::{StreamExt, TryStreamExt};
use reqwest::Response;
use sse_stream::Sse;
use tokio_util::sync::CancellationToken;

use super::failure::HttpFailure;
use crate::event_reader::read_events;

/// The events of a server.
pub(super) type EventStream = BoxStream<'static, Result<Sse, sse_stream::Error>>;

/// Reads the answer as events, until it ends or `stop` is cancelled. An event that is too long is an error, found before it is
/// held as a whole.
pub(super) fn events_of(response: Response, stop: CancellationToken) -> EventStream {
    let bytes = response.bytes_stream().map_err(|error| HttpFailure::of_body(&error));
    let events = read_events(bytes, || HttpFailure::TooLarge);
    // rmcp wants an error of this type.
    events
        .map_err(|failure| sse_stream::Error::Body(Box::new(failure)))
        .take_until(stop.cancelled_owned())
        .boxed()
}
