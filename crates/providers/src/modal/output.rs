//! The output of a command. It is read from a place on, so a stream that breaks off is taken up again where it was.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use eyot::{Error, Result};
use futures_util::StreamExt;
use futures_util::stream::BoxStream;
use tokio::time::Instant;

use super::client::is_unauthenticated;
use super::grpc::GrpcStream;
use super::link::{ModalLink, SandboxWorker};
use super::retry::Retry;
use super::status::GrpcFailure;
use super::wire::{TaskExecStdioReadRequest, TaskExecStdioReadResponse};

/// The time for which a stream was open that has done its work: a break after it is the first one.
const LONG: Duration = Duration::from_secs(10);

/// The time at which the stream of an output was opened that is open now.
type OpenedAt = Arc<Mutex<Option<Instant>>>;

/// One of the two outputs of a command.
pub(super) struct OutputReader {
    link: Arc<ModalLink>,
    exec_id: String,
    descriptor: i32,
    offset: u64,
    stream: Option<(SandboxWorker, GrpcStream)>,
    retry: Retry,
    renewed: bool,
    opened: OpenedAt,
}

/// An output that is read whatever becomes of those who wait for it: a wait that is given up loses no byte, and cuts no pause
/// short that the service is given after a failure.
pub(super) struct ModalOutput {
    pieces: BoxStream<'static, Result<Bytes>>,
    opened: OpenedAt,
}

impl ModalOutput {
    /// Waits for the next bytes; `None`: the output has ended. It may be dropped while it waits.
    pub async fn next(&mut self) -> Option<Result<Bytes>> {
        self.pieces.next().await
    }

    /// Returns the time at which its stream was opened. `None`: there is none just now, so there may be bytes that nobody has
    /// heard of.
    pub fn opened(&self) -> Option<Instant> {
        *self.opened.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl OutputReader {
    /// Makes a reader from the beginning of an output.
    pub fn new(link: &Arc<ModalLink>, exec_id: &str, descriptor: i32) -> Self {
        let (link, exec_id, opened) = (Arc::clone(link), exec_id.to_owned(), Arc::default());
        let (stream, retry, renewed) = (None, Retry::of_output(), false);
        Self { link, exec_id, descriptor, offset: 0, stream, retry, renewed, opened }
    }

    /// Reads on whoever waits.
    pub fn into_stream(self) -> ModalOutput {
        let opened = Arc::clone(&self.opened);
        let pieces = futures_util::stream::unfold(Some(self), |reader| async {
            let mut reader = reader?;
            match reader.next().await {
                Ok(Some(bytes)) => Some((Ok(bytes), Some(reader))),
                Ok(None) => None,
                Err(error) => Some((Err(error), None)),
            }
        });
        ModalOutput { pieces: pieces.fuse().boxed(), opened }
    }

    /// Waits for the next bytes; `None`: the output has ended. It may be dropped while it waits: no bytes are lost.
    pub async fn next(&mut self) -> Result<Option<Bytes>> {
        loop {
            let Some((worker, stream)) = &mut self.stream else {
                self.open().await?;
                continue;
            };
            let told = tokio::select! {
                told = stream.next::<TaskExecStdioReadResponse>() => told,
                () = self.link.destroyed.cancelled() => return Err(Error::destroyed(&self.link.name)),
            };
            match told {
                Ok(Some(piece)) if piece.data.is_empty() => {}
                Ok(Some(piece)) => {
                    self.offset += piece.data.len() as u64;
                    (self.retry, self.renewed) = (Retry::of_output(), false);
                    return Ok(Some(piece.data));
                }
                Ok(None) => return Ok(None),
                Err(failure) => {
                    let is_token = is_unauthenticated(&failure) && !self.renewed;
                    if is_token {
                        self.link.forget(worker);
                    }
                    if self.close().is_some_and(|opened| opened.elapsed() >= LONG) {
                        (self.retry, self.renewed) = (Retry::of_output(), false);
                    }
                    if is_token {
                        self.renewed = true;
                    } else {
                        self.pause(failure).await?;
                    }
                }
            }
        }
    }

    /// Closes the stream. Returns when it was opened.
    fn close(&mut self) -> Option<Instant> {
        self.stream = None;
        self.note(None)
    }

    fn note(&self, opened: Option<Instant>) -> Option<Instant> {
        std::mem::replace(&mut self.opened.lock().unwrap_or_else(PoisonError::into_inner), opened)
    }

    /// Opens a stream from the place on that was read last.
    async fn open(&mut self) -> Result<()> {
        // The command runs, whatever becomes of a question about it.
        let worker = self.link.worker().await.map_err(|error| error.with_unknown_effect_if(true))?;
        let request = TaskExecStdioReadRequest {
            task_id: self.link.task_id.clone(),
            exec_id: self.exec_id.clone(),
            offset: self.offset,
            file_descriptor: self.descriptor,
        };
        match worker.open("TaskExecStdioRead", &request).await {
            Ok(stream) => {
                self.stream = Some((worker, stream));
                self.note(Some(Instant::now()));
                Ok(())
            }
            Err(failure) => {
                self.link.forget(&worker);
                self.pause(failure).await
            }
        }
    }

    /// Waits until a stream may be opened again.
    async fn pause(&mut self, failure: GrpcFailure) -> Result<()> {
        if self.link.waits(&mut self.retry, &failure).await? {
            return Ok(());
        }
        Err(self.link.failed(failure).await.with_unknown_effect_if(true))
    }
}
