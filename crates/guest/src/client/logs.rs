//! A started process's log as a stream of chunks.

use std::pin::Pin;
use std::task::{Context, Poll, ready};

use eyot::{Bytes, LogChunk, LogStream, Result};
use futures_util::{Stream, stream::BoxStream};

use super::call::Call;
use super::pieces::{DataPiece, take_number};
use crate::protocol::CHANNEL_STDOUT;

/// The chunks, then the call's error if it has one.
struct LogChunks {
    call: Option<Call>,
}

/// The chunks of a log call. Dropping the stream cancels the call.
pub(super) fn chunks_of(call: Call) -> BoxStream<'static, Result<LogChunk>> {
    Box::pin(LogChunks { call: Some(call) })
}

impl Stream for LogChunks {
    type Item = Result<LogChunk>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let Some(call) = &self.call else {
            return Poll::Ready(None);
        };
        if let Some(piece) = ready!(call.poll_piece(context)) {
            return Poll::Ready(Some(Ok(chunk(piece))));
        }
        let end = ready!(call.poll_reply(context));
        self.call = None;
        Poll::Ready(end.err().map(Err))
    }
}

/// The chunk in a frame of data: its offsets lead. The reader has checked that they are there.
fn chunk(piece: DataPiece) -> LogChunk {
    let mut data = Bytes::from(piece.bytes);
    let (offset, stream_offset) = (take_number(&mut data), take_number(&mut data));
    let stream = if piece.channel == CHANNEL_STDOUT { LogStream::Stdout } else { LogStream::Stderr };
    LogChunk { stream, offset, stream_offset, data }
}
