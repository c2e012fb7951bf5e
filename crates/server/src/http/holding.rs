//! A body that holds a value until the body has been sent or dropped.

use std::pin::Pin;
use std::task::{Context, Poll};

use axum::body::{Body, Bytes, HttpBody};
use axum::response::Response;
use http_body::{Frame, SizeHint};

/// A value that a body holds. It may end the body.
pub(crate) trait HeldValue: Unpin + Send + 'static {
    /// The error with which a body is cut.
    const WHY: &'static str = "";

    /// Tells whether the body must end now, complete or not. By default it need not.
    fn is_over(&self) -> bool {
        false
    }

    /// Waits until the body must end, complete or not. By default for ever.
    fn over(&self) -> impl Future<Output = ()> + Send + 'static {
        std::future::pending()
    }
}

struct HoldingBody<T> {
    body: Body,
    held: T,
    /// Set after a piece was returned, until the body has said that there is no more.
    goes_on: bool,
    /// The wait for the body's end, made when the body has to wait for the first time: most never
    /// do.
    over: Option<Pin<Box<dyn Future<Output = ()> + Send>>>,
}

/// Makes the answer's body hold `held` until its last byte was sent or it is dropped.
pub(crate) fn hold_until_sent<T: HeldValue>(answer: Response, held: T) -> Response {
    answer.map(|body| Body::new(HoldingBody { body, held, goes_on: false, over: None }))
}

impl<T: HeldValue> HoldingBody<T> {
    fn is_over(&mut self, context: &mut Context<'_>) -> bool {
        let over = self.over.get_or_insert_with(|| Box::pin(self.held.over()));
        over.as_mut().poll(context).is_ready()
    }
}

impl<T: HeldValue> HttpBody for HoldingBody<T> {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        // One that never has to wait is asked as well.
        if self.held.is_over() || self.over.is_some() && self.is_over(context) {
            return Poll::Ready(Some(Err(axum::Error::new(T::WHY))));
        }
        let polled = match Pin::new(&mut self.body).poll_frame(context) {
            Poll::Pending if self.is_over(context) => Poll::Ready(Some(Err(axum::Error::new(T::WHY)))),
            polled => polled,
        };
        self.goes_on = !matches!(polled, Poll::Ready(None));
        polled
    }

    /// Returns `false` together with the last piece: hyper would then drop the body with that piece
    /// still to send. It polls once more when it has sent it.
    fn is_end_stream(&self) -> bool {
        !self.goes_on && self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
