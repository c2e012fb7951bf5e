//! A body that holds a value until the body has been sent or dropped.

use std::pin::Pin;
use std::task::{Context, Poll};

use axum::body::{Body, Bytes, HttpBody};
use axum::http::header;
use axum::response::Response;
use http_body::{Frame, SizeHint};

/// A value that a body holds. It may end the body.
pub(crate) trait HeldValue: Unpin + Send + 'static {
    /// The error with which a body is cut.
    const WHY: &'static str = "";

    /// Returns the last piece of a stream of events that must end before its time. By default there is none, and it is cut.
    fn last_event(&self) -> Option<Bytes> {
        None
    }

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
    is_event_stream: bool,
    /// Set once the last event was returned.
    has_ended: bool,
    /// The wait for the body's end, made when the body has to wait for the first time: most never
    /// do.
    over: Option<Pin<Box<dyn Future<Output = ()> + Send>>>,
}

/// Makes the answer's body hold `held` until its last byte was sent or it is dropped.
pub(crate) fn hold_until_sent<T: HeldValue>(answer: Response, held: T) -> Response {
    let kind = answer.headers().get(header::CONTENT_TYPE);
    let is_event_stream = kind.is_some_and(|kind| kind.as_bytes().starts_with(b"text/event-stream"));
    answer.map(|body| {
        Body::new(HoldingBody { body, held, goes_on: false, is_event_stream, has_ended: false, over: None })
    })
}

impl<T: HeldValue> HoldingBody<T> {
    fn is_over(&mut self, context: &mut Context<'_>) -> bool {
        let over = self.over.get_or_insert_with(|| Box::pin(self.held.over()));
        over.as_mut().poll(context).is_ready()
    }

    /// Ends the body before its time.
    fn end(&mut self) -> Option<Result<Frame<Bytes>, axum::Error>> {
        match self.held.last_event().filter(|_| self.is_event_stream) {
            Some(event) => {
                (self.has_ended, self.goes_on) = (true, true);
                Some(Ok(Frame::data(event)))
            }
            None => Some(Err(axum::Error::new(T::WHY))),
        }
    }
}

impl<T: HeldValue> HttpBody for HoldingBody<T> {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        if self.has_ended {
            self.goes_on = false;
            return Poll::Ready(None);
        }
        // One that never has to wait is asked as well.
        if self.held.is_over() || self.over.is_some() && self.is_over(context) {
            return Poll::Ready(self.end());
        }
        let polled = match Pin::new(&mut self.body).poll_frame(context) {
            Poll::Pending if self.is_over(context) => return Poll::Ready(self.end()),
            polled => polled,
        };
        self.goes_on = !matches!(polled, Poll::Ready(None));
        polled
    }

    /// Returns `false` together with the last piece: hyper would then drop the body with that piece
    /// still to send. It polls once more when it has sent it.
    fn is_end_stream(&self) -> bool {
        !self.goes_on && (self.has_ended || self.body.is_end_stream())
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
