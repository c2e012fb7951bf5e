//! A body that holds something until it has been sent, or nobody wants it any more.

use std::pin::Pin;
use std::task::{Context, Poll};

use axum::body::{Body, Bytes, HttpBody};
use axum::response::Response;
use http_body::{Frame, SizeHint};

/// Something that a body holds.
pub(crate) trait Hold: Unpin + Send + 'static {
    /// Why a body that is not whole breaks off.
    const WHY: &'static str = "";

    /// Whether the body must end now, whole or not; by default never.
    fn is_over(&self) -> bool {
        false
    }

    /// Comes when the body must end, whole or not; by default never.
    fn over(&self) -> impl Future<Output = ()> + Send + 'static {
        std::future::pending()
    }
}

struct Held<T> {
    body: Body,
    held: T,
    /// A piece was given, and it has not said since that there is no more.
    goes_on: bool,
    /// Made when the body has to wait for the first time: most never do.
    over: Option<Pin<Box<dyn Future<Output = ()> + Send>>>,
}

/// The answer, which holds `held` until its last byte is on its way.
pub(crate) fn held<T: Hold>(answer: Response, held: T) -> Response {
    answer.map(|body| Body::new(Held { body, held, goes_on: false, over: None }))
}

impl<T: Hold> Held<T> {
    fn is_over(&mut self, context: &mut Context<'_>) -> bool {
        let over = self.over.get_or_insert_with(|| Box::pin(self.held.over()));
        over.as_mut().poll(context).is_ready()
    }
}

impl<T: Hold> HttpBody for Held<T> {
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

    /// Not with its last piece: whoever sends the body lets go of it then, and has all of that piece still to send. They ask
    /// for another one when they have.
    fn is_end_stream(&self) -> bool {
        !self.goes_on && self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
