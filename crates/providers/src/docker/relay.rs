//! A stream to a sandbox's guest. The Engine runs the guest's relay in the container, and its
//! standard streams are the stream.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use bollard::Docker;
use bollard::container::LogOutput;
use bollard::errors::Error as EngineError;
use bollard::exec::{CreateExecOptions, StartExecOptions, StartExecResults};
use bytes::Bytes;
use eyot::{Error, ErrorKind, Result};
use eyot_guest::protocol::container::{GUEST_DIR, GUEST_FILE, RELAY, RELAY_TO_GUEST, RELAY_TO_MAKER};
use futures_util::stream::BoxStream;
use futures_util::{Stream, StreamExt};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, ReadBuf};
use tokio_util::io::StreamReader;

use super::engine::Engine;

/// The longest wait for the relay to be connected.
const PATIENCE: Duration = Duration::from_secs(30);
/// The size of one read from the Engine's stream, in bytes.
const READ_BYTES: usize = 64 * 1024;
/// The longest excerpt of a runtime's message in an error, in bytes.
const MOST_REASON_BYTES: u64 = 512;

/// The state of the guest that a relay has reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Role {
    /// The guest waits for its configuration.
    Maker,
    /// The guest has its configuration.
    Client,
}

/// A relay's standard streams.
pub(crate) struct RelayStream {
    output: StreamReader<BoxStream<'static, io::Result<Bytes>>, Bytes>,
    input: Pin<Box<dyn AsyncWrite + Send>>,
}

/// Opens a stream to the guest in this container.
pub(crate) async fn open(engine: &Engine, container: &str) -> Result<(RelayStream, Role)> {
    let opened = tokio::time::timeout(PATIENCE, connect(engine, container)).await;
    opened.unwrap_or_else(|_| {
        let message = format!("the way to the sandbox's guest was not open within {} s", PATIENCE.as_secs());
        Err(Error::new(ErrorKind::Unavailable, message))
    })
}

async fn connect(engine: &Engine, container: &str) -> Result<(RelayStream, Role)> {
    let docker = engine.client().await?;
    let failed = |error| engine.failed("reach the sandbox's guest", error);
    let (output, input) = run(docker, container).await.map_err(failed)?;
    let mut stream = RelayStream { output: StreamReader::new(standard_output(output)), input };
    let lost =
        |error| Error::new(ErrorKind::Unavailable, "the sandbox's guest is not there").with_source(error);
    match stream.read_u8().await.map_err(lost)? {
        RELAY_TO_MAKER => Ok((stream, Role::Maker)),
        RELAY_TO_GUEST => Ok((stream, Role::Client)),
        other => Err(not_run(other, stream).await),
    }
}

/// Makes the error for a relay that did not run. The runtime has written its reason where the
/// relay's bytes belong.
async fn not_run(first: u8, stream: RelayStream) -> Error {
    let mut words = vec![first];
    // The reason is cut off where the stream breaks; what came of it is told.
    drop(stream.take(MOST_REASON_BYTES - 1).read_to_end(&mut words).await);
    let words = String::from_utf8_lossy(&words);
    let message = format!("the Engine did not run the sandbox's relay: {}", words.trim().escape_debug());
    Error::new(ErrorKind::Unavailable, message)
}

type Streams = (BoxStream<'static, Result<LogOutput, EngineError>>, Pin<Box<dyn AsyncWrite + Send>>);

async fn run(docker: &Docker, container: &str) -> Result<Streams, EngineError> {
    let options = CreateExecOptions {
        attach_stdin: Some(true),
        attach_stdout: Some(true),
        attach_stderr: Some(true),
        tty: Some(false),
        cmd: Some(vec![format!("{GUEST_DIR}/{GUEST_FILE}"), RELAY.to_owned()]),
        user: Some("0:0".to_owned()),
        working_dir: Some("/".to_owned()),
        ..CreateExecOptions::default()
    };
    let exec = docker.create_exec(container, options).await?;
    let options = StartExecOptions { output_capacity: Some(READ_BYTES), ..StartExecOptions::default() };
    match docker.start_exec(&exec.id, Some(options)).await? {
        StartExecResults::Attached { output, input } => Ok((output, input)),
        StartExecResults::Detached => {
            Err(EngineError::IOError { err: io::Error::other("the Engine did not attach to the relay") })
        }
    }
}

/// Returns what the relay writes to its standard output. Its standard error goes to the log.
fn standard_output(
    output: impl Stream<Item = Result<LogOutput, EngineError>> + Send + 'static,
) -> BoxStream<'static, io::Result<Bytes>> {
    let bytes = output.filter_map(|piece| async move {
        match piece {
            Ok(LogOutput::StdOut { message }) => Some(Ok(message)),
            Ok(LogOutput::StdErr { message }) => {
                tracing::debug!(said = %String::from_utf8_lossy(&message), "a sandbox's relay failed");
                None
            }
            // Without the Engine's framing it is the Engine itself that speaks, or a stream that was cut off.
            Ok(other) => Some(Err(io::Error::other(format!("the Engine said: {other}")))),
            Err(error) => Some(Err(io::Error::other(error))),
        }
    });
    bytes.boxed()
}

impl AsyncRead for RelayStream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.output).poll_read(context, buffer)
    }
}

impl AsyncWrite for RelayStream {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.input.as_mut().poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.input.as_mut().poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.input.as_mut().poll_shutdown(context)
    }
}

#[cfg(test)]
mod tests {
    use futures_util::stream;

    use super::*;

    #[tokio::test]
    async fn a_relay_that_was_not_run_is_told_in_the_words_of_the_runtime() {
        let words = LogOutput::StdOut { message: Bytes::from("annot exec in a stopped container\r\n") };
        let output = StreamReader::new(standard_output(stream::iter([Ok(words)])));
        let stream = RelayStream { output, input: Box::pin(tokio::io::sink()) };
        let error = not_run(b'c', stream).await;
        assert_eq!(error.kind(), ErrorKind::Unavailable);
        assert!(error.to_string().ends_with("relay: cannot exec in a stopped container"), "{error}");
    }

    #[tokio::test]
    async fn only_the_relays_standard_output_is_the_stream() {
        let pieces = [
            LogOutput::StdOut { message: Bytes::from("ab") },
            LogOutput::StdErr { message: Bytes::from("noise") },
            LogOutput::StdOut { message: Bytes::from("cd") },
            LogOutput::Console { message: Bytes::from("OCI runtime exec failed") },
        ];
        let mut reader = StreamReader::new(standard_output(stream::iter(pieces.map(Ok))));
        let mut bytes = [0; 4];
        reader.read_exact(&mut bytes).await.unwrap();
        assert_eq!(&bytes, b"abcd");
        assert!(reader.read_u8().await.unwrap_err().to_string().contains("OCI runtime exec failed"));
    }
}
