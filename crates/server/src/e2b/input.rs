//! The standard input of a process that envd's calls have started.

use bytes::Bytes;
use eyot::Stdin;
use futures_util::StreamExt;
use tokio::sync::{Mutex, mpsc};

use super::connect::{Code, RpcError};

/// The input. Without one, or once it was closed, nothing can be written.
pub(super) struct ProcessStdin(Mutex<Option<mpsc::Sender<eyot::Result<Bytes>>>>);

impl ProcessStdin {
    /// Makes an input that gives nothing.
    pub fn none() -> (Self, Stdin) {
        (Self(Mutex::new(None)), Stdin::Closed)
    }

    /// Makes an input, and what a command reads from it.
    pub fn open() -> (Self, Stdin) {
        let (sender, receiver) = mpsc::channel(1);
        let stream = futures_util::stream::unfold(receiver, |mut receiver| async {
            receiver.recv().await.map(|piece| (piece, receiver))
        });
        (Self(Mutex::new(Some(sender))), Stdin::Stream(stream.fuse().boxed()))
    }

    /// Writes. Waits while the command does not read.
    pub async fn write(&self, bytes: Bytes) -> Result<(), RpcError> {
        let closed = || RpcError::new(Code::Internal, "error writing to stdin: stdin not enabled or closed");
        let sender = self.0.lock().await;
        let sender = sender.as_ref().ok_or_else(closed)?;
        sender.send(Ok(bytes)).await.map_err(|_| closed())
    }

    /// Closes it: the command reads the end of file.
    pub async fn close(&self) {
        self.0.lock().await.take();
    }
}
