//! A stream of bytes on its way in, to a call that answers with a size: files that are written,
//! trees that are unpacked.

use eyot::{ByteStream, Bytes, Error, Result};
use futures_util::StreamExt;

use super::call::Call;
use super::convert::unexpected;
use crate::protocol::Reply;

/// The result of feeding a call.
enum FeedOutcome {
    /// Everything was sent.
    All,
    /// The call ended before.
    CallEnded,
    /// The content failed.
    ContentFailed(Error),
}

/// Sends all of `content` and returns the call's size. If the content fails, the call is cancelled,
/// and the content's error is returned once the guest has put everything back.
pub(super) async fn feed(call: Call, mut content: ByteStream) -> Result<u64> {
    match send_all(&call, &mut content).await {
        FeedOutcome::All => call.sender().send_end(),
        FeedOutcome::CallEnded => {}
        FeedOutcome::ContentFailed(error) => {
            drop(content);
            call.cancel();
            call.wait_ended().await;
            return Err(error);
        }
    }
    match call.reply().await? {
        Reply::Size(size) => Ok(size),
        other => Err(unexpected(&other)),
    }
}

async fn send_all(call: &Call, content: &mut ByteStream) -> FeedOutcome {
    loop {
        let next: Option<Result<Bytes>> = tokio::select! {
            biased;
            () = call.wait_ended() => return FeedOutcome::CallEnded,
            next = content.next() => next,
        };
        match next {
            None => return FeedOutcome::All,
            Some(Err(error)) => return FeedOutcome::ContentFailed(error),
            Some(Ok(bytes)) if call.sender().send(&bytes).await => {}
            Some(Ok(_)) => return FeedOutcome::CallEnded,
        }
    }
}
