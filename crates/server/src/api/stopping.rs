//! Streams without an end of their own, which end when the server is to stop: nobody waits for them.

use futures_util::{Stream, StreamExt};
use tokio_util::sync::CancellationToken;

/// Whether the server is to stop.
#[derive(Clone)]
pub(super) struct Stopping(pub CancellationToken);

impl Stopping {
    /// What comes until then.
    pub fn ends<S: Stream + Send + 'static>(self, stream: S) -> impl Stream<Item = S::Item> + Send + 'static {
        stream.take_until(self.0.cancelled_owned())
    }
}
