//! Taking a command's events to its end.

use bytes::Bytes;

use crate::error::{Error, ErrorKind, Result};
use crate::exec::{ExecEvent, ExecResult, ExecStream};
use crate::process::LogStream;

impl ExecStream {
    /// Gives each piece of output to `take` as it comes, and returns the result.
    pub async fn collect(self, mut take: impl FnMut(LogStream, &Bytes) + Send) -> Result<ExecResult> {
        let take = |stream, piece: &Bytes| {
            take(stream, piece);
            true
        };
        self.collect_while(take).await?.ok_or_else(ended_without_result)
    }

    /// Gives each piece of output to `take` until that returns `false`: then the command's process tree is killed, and there
    /// is no result.
    pub async fn collect_while(
        mut self,
        mut take: impl FnMut(LogStream, &Bytes) -> bool + Send,
    ) -> Result<Option<ExecResult>> {
        while let Some(event) = self.next().await {
            let (stream, piece) = match event? {
                ExecEvent::Stdout(piece) => (LogStream::Stdout, piece),
                ExecEvent::Stderr(piece) => (LogStream::Stderr, piece),
                ExecEvent::End(result) => return Ok(Some(result)),
            };
            if !take(stream, &piece) {
                return Ok(None);
            }
        }
        Err(ended_without_result())
    }
}

/// The error of a driver whose events stop before the command's end.
pub(super) fn ended_without_result() -> Error {
    Error::new(ErrorKind::Internal, "a command's events stopped before its end")
}
