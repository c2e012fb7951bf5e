//! Feeding a command's standard input while its output is read, so that neither waits for the other.

use futures_util::StreamExt;
use futures_util::future::BoxFuture;
use tokio::task::JoinHandle;

use crate::driver::{ByteStream, ExecutionInput};
use crate::error::{Error, ErrorKind, Result};
use crate::exec::Stdin;

/// The future that feeds a command. It fails only if the caller's stream fails; a command that
/// stops reading ends it quietly.
pub(super) type StdinFeed = BoxFuture<'static, Result<()>>;

/// The future that feeds `stdin` to a command. A caller's stream gets a task of its own: keystrokes
/// must arrive even while no caller takes the output that they cause.
pub(super) fn feed(stdin: Stdin, input: Option<Box<dyn ExecutionInput>>) -> Result<Option<StdinFeed>> {
    let missing =
        || Error::new(ErrorKind::Internal, "the driver gave a command no input though it was asked to");
    match stdin {
        Stdin::Closed => Ok(None),
        Stdin::Bytes(bytes) => {
            let mut input = input.ok_or_else(missing)?;
            Ok(Some(Box::pin(async move {
                if !bytes.is_empty() && input.write(bytes).await.is_err() {
                    tracing::trace!("the command ended or closed its input before it had read all of it");
                }
                Ok(())
            })))
        }
        Stdin::Stream(stream) => {
            let task = AbortOnDrop(tokio::spawn(pump(stream, input.ok_or_else(missing)?)));
            Ok(Some(Box::pin(task.join())))
        }
    }
}

async fn pump(mut stream: ByteStream, mut input: Box<dyn ExecutionInput>) -> Result<()> {
    while let Some(bytes) = stream.next().await {
        let bytes = bytes?;
        if !bytes.is_empty() && input.write(bytes).await.is_err() {
            return Ok(());
        }
    }
    Ok(())
}

/// A task that ends with the command that it serves.
struct AbortOnDrop(JoinHandle<Result<()>>);

impl AbortOnDrop {
    async fn join(mut self) -> Result<()> {
        match (&mut self.0).await {
            Ok(result) => result,
            Err(error) => {
                Err(Error::new(ErrorKind::Internal, "the command's input stream broke").with_source(error))
            }
        }
    }
}

impl Drop for AbortOnDrop {
    fn drop(&mut self) {
        self.0.abort();
    }
}
