//! The standard input of a command, or the keyboard of its terminal. Each piece has a place, so one whose answer is lost is
//! sent again and read once.
//!
//! A task of its own writes it. So a write whose caller leaves keeps its place: it is written whole, and later ones follow it.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use eyot::{Error, ErrorKind, ExecutionInput, Result};
use tokio::sync::{mpsc, oneshot};
use tokio_util::sync::CancellationToken;

use super::grpc::PATIENCE;
use super::link::ModalLink;
use super::wire::{Empty, TaskExecStdinWriteRequest};

/// The bytes of input in one request.
const INPUT_BYTES: usize = 1 << 20;
/// The longest wait for a command to read: as long as its sandbox lives.
const READ_PATIENCE: Duration = Duration::from_secs(30 * 24 * 60 * 60);
/// The key that tells a program on a terminal that nothing more is typed.
const END_OF_TYPING: &[u8] = b"\x04";
/// The pause after an end of file that could not be told, and the longest: each is twice as long as the one before.
const FIRST_END_PAUSE: Duration = Duration::from_secs(1);
const MAX_END_PAUSE: Duration = Duration::from_secs(30);

/// An input. Dropping that of a command is the end of file.
pub(super) struct PlacedInput(mpsc::Sender<WriteRequest>);

/// A write, and who waits for it.
struct WriteRequest {
    what: InputPiece,
    written: oneshot::Sender<Result<()>>,
}

enum InputPiece {
    Bytes(Bytes),
    End,
}

/// The task that writes an input.
struct InputTask {
    link: Arc<ModalLink>,
    exec_id: String,
    offset: u64,
    is_terminal: bool,
    /// A line was begun and not ended.
    is_within_line: bool,
    /// It is closed: it was ended, or a piece of it may be lost.
    is_closed: bool,
}

impl PlacedInput {
    /// Makes the input of a command, which has no use for it once it has `ended`.
    pub fn of_command(
        link: &Arc<ModalLink>,
        exec_id: &str,
        is_terminal: bool,
        ended: CancellationToken,
    ) -> Self {
        let (sender, asked) = mpsc::channel(1);
        let mut writer = InputTask { is_terminal, ..InputTask::new(link, exec_id) };
        tokio::spawn(async move {
            let written = async {
                writer.serve(asked).await;
                writer.tell_end().await;
            };
            tokio::select! {
                () = written => {}
                () = ended.cancelled() => {}
            }
        });
        Self(sender)
    }

    /// Makes the input of a script, which ends only where it is closed.
    pub fn of_script(link: &Arc<ModalLink>, exec_id: &str) -> Self {
        let (sender, asked) = mpsc::channel(1);
        let mut writer = InputTask::new(link, exec_id);
        tokio::spawn(async move { writer.serve(asked).await });
        Self(sender)
    }

    /// Writes all of it. Waits while it is not read.
    pub async fn send(&mut self, bytes: Bytes) -> Result<()> {
        self.ask(InputPiece::Bytes(bytes)).await
    }

    /// Ends it.
    pub async fn close(self) -> Result<()> {
        self.ask(InputPiece::End).await
    }

    async fn ask(&self, what: InputPiece) -> Result<()> {
        let (written, answer) = oneshot::channel();
        self.0.send(WriteRequest { what, written }).await.map_err(|_| closed())?;
        answer.await.map_err(|_| closed())?
    }
}

#[async_trait]
impl ExecutionInput for PlacedInput {
    async fn write(&mut self, bytes: Bytes) -> Result<()> {
        self.send(bytes).await
    }
}

fn closed() -> Error {
    Error::new(ErrorKind::Conflict, "the command's input is closed")
}

impl InputTask {
    fn new(link: &Arc<ModalLink>, exec_id: &str) -> Self {
        let (link, exec_id) = (Arc::clone(link), exec_id.to_owned());
        Self { link, exec_id, offset: 0, is_terminal: false, is_within_line: false, is_closed: false }
    }

    /// Writes what is asked for, in its order, until nobody can ask any more.
    async fn serve(&mut self, mut asked: mpsc::Receiver<WriteRequest>) {
        while let Some(WriteRequest { what, written }) = asked.recv().await {
            let result = if self.is_closed { Err(closed()) } else { self.write(what).await };
            // A piece that may be lost has no place, and so has none that follows.
            self.is_closed |= result.is_err();
            // Whoever has left hears nothing of it.
            drop(written.send(result));
        }
    }

    async fn write(&mut self, what: InputPiece) -> Result<()> {
        let InputPiece::Bytes(mut bytes) = what else {
            self.is_closed = true;
            return self.put(Bytes::new(), true, PATIENCE).await;
        };
        if let Some(last) = bytes.last() {
            self.is_within_line = !matches!(last, b'\n' | b'\r');
        }
        while !bytes.is_empty() {
            let piece = bytes.split_to(bytes.len().min(INPUT_BYTES));
            self.put(piece, false, READ_PATIENCE).await?;
        }
        Ok(())
    }

    async fn put(&mut self, data: Bytes, eof: bool, patience: Duration) -> Result<()> {
        let (task_id, exec_id, length) = (self.link.task_id.clone(), self.exec_id.clone(), data.len() as u64);
        let request = TaskExecStdinWriteRequest { task_id, exec_id, offset: self.offset, data, eof };
        self.link.routed::<Empty>("TaskExecStdinWrite", &request, patience).await?;
        self.offset += length;
        Ok(())
    }

    /// Tells the command the end of file, until it is told: without it the command would wait for ever.
    async fn tell_end(&mut self) {
        let (data, eof) = match (self.is_terminal, self.is_within_line) {
            (false, _) => (Bytes::new(), true),
            // The first one only ends the line.
            (true, true) => (END_OF_TYPING.repeat(2).into(), false),
            (true, false) => (Bytes::from_static(END_OF_TYPING), false),
        };
        let mut pause = FIRST_END_PAUSE;
        while let Err(error) = self.put(data.clone(), eof, PATIENCE).await {
            match error.kind() {
                // A process that has ended has no input.
                ErrorKind::Destroyed | ErrorKind::Conflict => return,
                ErrorKind::Unavailable => tracing::debug!(%error, "an input is not closed yet"),
                _ => return tracing::warn!(%error, "an input can't be closed; its command may wait for it"),
            }
            tokio::time::sleep(pause).await;
            pause = (2 * pause).min(MAX_END_PAUSE);
        }
    }
}
