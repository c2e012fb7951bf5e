//! Server-sent events. Each is a JSON value; the event `problem` is a failure, and the last event.

use eyot::wire::Problem;
use eyot::{Error, ErrorKind, Result};
use futures_util::stream::BoxStream;
use futures_util::{Stream, StreamExt};
use serde::de::DeserializeOwned;
use sse_stream::SseStream;

/// Streams the values of the events. `failed` turns a problem into an error.
pub(super) fn values<T: DeserializeOwned + Send + 'static>(
    failed: impl Fn(Problem) -> Error + Send + 'static,
    bytes: impl Stream<Item = Result<bytes::Bytes>> + Send + 'static,
) -> BoxStream<'static, Result<T>> {
    let bytes = bytes.map(|bytes| bytes.map_err(std::io::Error::other));
    let events = SseStream::from_bytes_stream(bytes.boxed());
    let values = events.filter_map(move |event| {
        let value = match event {
            Ok(event) => event.data.map(|data| value(&failed, event.event.as_deref(), &data)),
            Err(error) => Some(Err(
                Error::new(ErrorKind::Unavailable, "the server's answer broke off").with_source(error)
            )),
        };
        std::future::ready(value)
    });
    values.boxed()
}

fn value<T: DeserializeOwned>(
    failed: &impl Fn(Problem) -> Error,
    event: Option<&str>,
    data: &str,
) -> Result<T> {
    let unreadable = |error: serde_json::Error| {
        Error::new(ErrorKind::Unavailable, "the server's answer can't be read").with_source(error)
    };
    match event {
        Some("problem") => {
            let problem: Problem = serde_json::from_str(data).map_err(unreadable)?;
            Err(failed(problem))
        }
        _ => serde_json::from_str(data).map_err(unreadable),
    }
}
