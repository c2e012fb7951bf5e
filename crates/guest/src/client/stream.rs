//! A call's main channel as a stream of bytes: files and trees on their way out.

use std::pin::Pin;
use std::task::{Context, Poll, ready};

use eyot::{ByteStream, Bytes, Error, Result};
use futures_util::future::BoxFuture;
use futures_util::{FutureExt, Stream};

use super::call::Call;
use super::connection::{Connection, PATIENCE};

/// The data that arrives, then the call's error if it has one.
struct CallBytes {
    call: Option<Call>,
    connection: Connection,
    /// Ends once the guest shows no sign of life. It begins with each wait.
    silence: Option<BoxFuture<'static, Error>>,
}

/// The bytes of a call that has been opened. Dropping the stream cancels the call.
pub(super) fn bytes_of(call: Call, connection: Connection) -> ByteStream {
    Box::pin(CallBytes { call: Some(call), connection, silence: None })
}

/// The next piece, the call's error, or its end.
fn poll_call(call: &Call, context: &mut Context<'_>) -> Poll<Option<Result<Bytes>>> {
    if let Some(piece) = ready!(call.poll_piece(context)) {
        return Poll::Ready(Some(Ok(piece.bytes.into())));
    }
    Poll::Ready(ready!(call.poll_reply(context)).err().map(Err))
}

impl Stream for CallBytes {
    type Item = Result<Bytes>;

    fn poll_next(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let this = self.get_mut();
        let Some(call) = &this.call else {
            return Poll::Ready(None);
        };
        let next = poll_call(call, context);
        if next.is_pending() {
            let begin = || {
                let connection = this.connection.clone();
                async move { connection.silence(PATIENCE).await }.boxed()
            };
            let mut silence = this.silence.take().unwrap_or_else(begin);
            let Poll::Ready(error) = silence.as_mut().poll(context) else {
                this.silence = Some(silence);
                return Poll::Pending;
            };
            this.call = None;
            return Poll::Ready(Some(Err(error)));
        }
        this.silence = None;
        if !matches!(next, Poll::Ready(Some(Ok(_)))) {
            this.call = None;
        }
        next
    }
}
