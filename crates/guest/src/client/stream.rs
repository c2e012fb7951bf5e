//! A call's main channel as a stream of bytes: files and trees on their way out.

use std::pin::Pin;
use std::task::{Context, Poll, ready};

use eyot::{ByteStream, Bytes, Result};
use futures_util::Stream;

use super::call::Call;

/// The data that arrives, then the call's error if it has one.
struct CallBytes {
    call: Option<Call>,
}

/// The bytes of a call that has been opened. Dropping the stream cancels the call.
pub(super) fn bytes_of(call: Call) -> ByteStream {
    Box::pin(CallBytes { call: Some(call) })
}

impl Stream for CallBytes {
    type Item = Result<Bytes>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let Some(call) = &self.call else {
            return Poll::Ready(None);
        };
        if let Some(piece) = ready!(call.poll_piece(context)) {
            return Poll::Ready(Some(Ok(piece.bytes.into())));
        }
        let end = ready!(call.poll_reply(context));
        self.call = None;
        Poll::Ready(end.err().map(Err))
    }
}
