//! A body that notes whether it was read to its end.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};

use axum::body::{Body, Bytes, HttpBody};
use http_body::{Frame, SizeHint};

struct Watched {
    body: Body,
    has_ended: Arc<AtomicBool>,
}

/// Wraps a body, and returns a flag that is set when the body has ended.
pub(crate) fn watched(body: Body) -> (Body, Arc<AtomicBool>) {
    let has_ended = Arc::default();
    (watched_by(body, &has_ended), has_ended)
}

/// Wraps a body. Clears `has_ended` now, and sets it when the body has ended.
pub(super) fn watched_by(body: Body, has_ended: &Arc<AtomicBool>) -> Body {
    has_ended.store(body.is_end_stream(), Ordering::Release);
    Body::new(Watched { body, has_ended: Arc::clone(has_ended) })
}

impl HttpBody for Watched {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        let polled = Pin::new(&mut self.body).poll_frame(context);
        if matches!(polled, Poll::Ready(None)) || self.body.is_end_stream() {
            self.has_ended.store(true, Ordering::Release);
        }
        polled
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
