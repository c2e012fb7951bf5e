//! The input and the control of a command that runs.

use std::sync::Arc;

use async_trait::async_trait;
use bytes::Bytes;
use eyot::{ExecutionControl, ExecutionInput, PtySize, Result, SandboxOperationUnsupported, Signal};

use super::NAME;
use super::envd_process::{EnvdProcess, InputKind};
use super::link::Link;
use super::script::kill;

/// The bytes of input in one request.
const INPUT_BYTES: usize = 256 << 10;
/// The key that tells a program on a terminal that nothing more is typed.
const END_OF_TYPING: &[u8] = b"\x04";

/// The standard input of a command, or the keyboard of its terminal. Dropping it is the end of file.
pub(super) struct ProcessInput {
    link: Arc<Link>,
    process: EnvdProcess,
    kind: InputKind,
    /// A line was begun and not ended.
    is_within_line: bool,
}

impl ProcessInput {
    pub fn new(link: &Arc<Link>, process: &EnvdProcess, kind: InputKind) -> Self {
        Self { link: Arc::clone(link), process: process.clone(), kind, is_within_line: false }
    }
}

#[async_trait]
impl ExecutionInput for ProcessInput {
    async fn write(&mut self, bytes: Bytes) -> Result<()> {
        for piece in bytes.chunks(INPUT_BYTES) {
            self.link.send_input(&self.process, self.kind, piece).await?;
        }
        if let Some(last) = bytes.last() {
            self.is_within_line = !matches!(last, b'\n' | b'\r');
        }
        Ok(())
    }
}

impl Drop for ProcessInput {
    fn drop(&mut self) {
        let (link, process) = (Arc::clone(&self.link), self.process.clone());
        let (kind, is_within_line) = (self.kind, self.is_within_line);
        in_background(async move {
            let closed = match kind {
                InputKind::Stdin => link.close_stdin(&process).await,
                // The first one only ends the line.
                InputKind::Terminal if is_within_line => {
                    link.send_input(&process, kind, &END_OF_TYPING.repeat(2)).await
                }
                InputKind::Terminal => link.send_input(&process, kind, END_OF_TYPING).await,
            };
            // A process that has ended has no input.
            if let Err(error) = closed {
                tracing::trace!(%error, "an input could not be closed");
            }
        });
    }
}

/// Does something that nobody waits for, where there is a runtime.
fn in_background(work: impl Future<Output = ()> + Send + 'static) {
    if let Ok(runtime) = tokio::runtime::Handle::try_current() {
        runtime.spawn(work);
    }
}

/// The control of a command.
pub(super) struct ProcessControl {
    pub link: Arc<Link>,
    pub process: EnvdProcess,
}

#[async_trait]
impl ExecutionControl for ProcessControl {
    async fn kill(&self) -> Result<()> {
        kill(&self.link, self.process.pid).await
    }

    async fn signal(&self, _: Signal) -> Result<()> {
        Err(SandboxOperationUnsupported::new("signal", NAME, &[]).into())
    }

    async fn resize(&self, size: PtySize) -> Result<()> {
        self.link.resize(&self.process, size).await
    }
}
