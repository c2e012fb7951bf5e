//! A server's stream of events, with a bound on what one event can hold.

use bytes::Bytes;
use futures_util::StreamExt;
use futures_util::stream::BoxStream;
use reqwest::Response;
use sse_stream::{Sse, SseStream};
use tokio_util::sync::CancellationToken;

use super::failure::{HttpFailure, MAX_MESSAGE_BYTES};
use crate::event_size::EventSize;

/// The events of a server.
pub(super) type EventStream = BoxStream<'static, Result<Sse, sse_stream::Error>>;

/// Reads the answer as events, until it ends or `stop` is cancelled. An event of more than [`MAX_MESSAGE_BYTES`] is an
/// error, found before it is held as a whole.
pub(super) fn events_of(response: Response, stop: CancellationToken) -> EventStream {
    let mut size = EventSize::default();
    let bytes = response.bytes_stream().map(move |chunk| -> Result<Bytes, HttpFailure> {
        let chunk = chunk.map_err(|error| HttpFailure::of_body(&error))?;
        if size.add(&chunk) > MAX_MESSAGE_BYTES {
            return Err(HttpFailure::TooLarge);
        }
        Ok(chunk)
    });
    SseStream::from_bytes_stream(bytes).take_until(stop.cancelled_owned()).boxed()
}
