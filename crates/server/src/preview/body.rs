//! The body of an answer, which ends when the preview is closed.

use std::pin::Pin;
use std::task::{Context, Poll};

use super::limits::PlaceInUse;
use bytes::Bytes;
use hyper::body::{Body, Frame, Incoming, SizeHint};
use tokio_util::sync::{CancellationToken, WaitForCancellationFutureOwned};

/// A body that keeps its place until it has ended, and breaks off when the grants of its port are
/// revoked.
pub(super) struct CuttableBody {
    body: Incoming,
    revoked: Waiting,
    /// Ends the body as if the guest had ended it, when the server stops.
    stop: Option<Waiting>,
    _place: PlaceInUse,
}

type Waiting = Pin<Box<WaitForCancellationFutureOwned>>;

impl CuttableBody {
    pub fn new(
        body: Incoming,
        place: PlaceInUse,
        revoked: CancellationToken,
        stop: Option<CancellationToken>,
    ) -> Self {
        let waiting = |token: CancellationToken| Box::pin(token.cancelled_owned());
        Self { body, revoked: waiting(revoked), stop: stop.map(waiting), _place: place }
    }
}

impl Body for CuttableBody {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        if self.revoked.as_mut().poll(context).is_ready() {
            // An error, so that the part is not taken for the whole.
            return Poll::Ready(Some(Err(axum::Error::new("the preview was ended"))));
        }
        if self.stop.as_mut().is_some_and(|stop| stop.as_mut().poll(context).is_ready()) {
            return Poll::Ready(None);
        }
        let frame = Pin::new(&mut self.body).poll_frame(context);
        frame.map(|frame| frame.map(|frame| frame.map_err(axum::Error::new)))
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
