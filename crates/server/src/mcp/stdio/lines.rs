//! Messages as lines of JSON. Lines have a maximum length, and a line that is not a message is
//! answered with an error. While the client does not read our answers, we do not read its messages.

use std::io;
use std::time::Duration;

use bytes::Bytes;
use futures_util::StreamExt;
use rmcp::RoleServer;
use rmcp::model::{ClientJsonRpcMessage, ClientRequest, ErrorData, GetMeta, JsonRpcMessage};
use rmcp::service::{RxJsonRpcMessage, TxJsonRpcMessage};
use rmcp::transport::Transport;
use serde_json::{Value, json};
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tokio::time::timeout;
use tokio_util::codec::{FramedRead, LinesCodec, LinesCodecError};
use tokio_util::sync::CancellationToken;

use crate::mcp::MAX_MESSAGE_BYTES;

/// The time in which the waiting messages must be written at the end.
const CLOSE: Duration = Duration::from_secs(1);
/// The most messages that may wait to be written.
const WAITING: usize = 64;

/// A transport that reads and writes lines.
pub(super) struct LineTransport<R> {
    read: FramedRead<R, LinesCodec>,
    write: Option<mpsc::Sender<Bytes>>,
    writer: Option<JoinHandle<()>>,
    /// The error to send about the last line before the next one is read.
    complaint: Option<Bytes>,
    /// Set if the last line was refused. The codec then reports the end of the stream once,
    /// wrongly.
    was_refused: bool,
    /// Set once a session was opened. Notifications are ignored before.
    is_open: bool,
    /// Cancelled when the client has closed its side.
    closed: CancellationToken,
}

impl<R: AsyncRead + Send + Unpin> LineTransport<R> {
    /// Makes a transport over these streams. `closed` is cancelled when the input ends.
    pub(super) fn new(
        read: R,
        write: impl AsyncWrite + Send + Unpin + 'static,
        closed: CancellationToken,
    ) -> Self {
        let (sender, receiver) = mpsc::channel(WAITING);
        let read = FramedRead::new(read, LinesCodec::new_with_max_length(MAX_MESSAGE_BYTES));
        let writer = Some(tokio::spawn(write_all(write, receiver)));
        Self {
            read,
            write: Some(sender),
            writer,
            complaint: None,
            was_refused: false,
            is_open: false,
            closed,
        }
    }

    /// Waits until there is room to answer, and sends the error about the last line, if any.
    /// `None`: the client reads no more.
    async fn room_to_answer(&mut self) -> Option<()> {
        let room = self.write.as_ref()?.reserve().await.ok()?;
        if let Some(complaint) = self.complaint.take() {
            room.send(complaint);
        }
        Some(())
    }

    /// Reads the next line, or the reason why it is refused; `None`: the input has ended.
    async fn next_line(&mut self) -> Option<Result<String, RefusedLine>> {
        loop {
            let next = self.read.next().await;
            if next.is_none() && std::mem::take(&mut self.was_refused) {
                continue;
            }
            let reason = match next? {
                Ok(line) => return Some(Ok(line)),
                Err(LinesCodecError::MaxLineLengthExceeded) => {
                    format!("Parse error: a message may have {MAX_MESSAGE_BYTES} bytes")
                }
                Err(LinesCodecError::Io(error)) if error.kind() == io::ErrorKind::InvalidData => {
                    "Parse error: a message must be UTF-8".to_owned()
                }
                Err(LinesCodecError::Io(error)) => {
                    tracing::info!(%error, "the client's side can't be read any more");
                    return None;
                }
            };
            self.was_refused = true;
            return Some(Err(RefusedLine { id: Value::Null, error: ErrorData::parse_error(reason, None) }));
        }
    }

    fn understand(&mut self, line: &str) -> Option<ClientJsonRpcMessage> {
        match parse(line) {
            Ok(message) if self.is_open || opens(&message) => {
                self.is_open = true;
                Some(message)
            }
            Ok(message @ JsonRpcMessage::Request(_)) => Some(message),
            Ok(_) => {
                tracing::debug!("a notification or an answer before the session was opened is passed over");
                None
            }
            Err(refused) => self.complain(refused),
        }
    }

    fn complain(&mut self, refused: RefusedLine) -> Option<ClientJsonRpcMessage> {
        tracing::warn!(error = %refused.error, "the client sent what is no message");
        self.complaint = Some(refused.line());
        None
    }
}

impl<R: AsyncRead + Send + Unpin> Transport<RoleServer> for LineTransport<R> {
    type Error = io::Error;

    fn send(
        &mut self,
        message: TxJsonRpcMessage<RoleServer>,
    ) -> impl Future<Output = io::Result<()>> + Send + 'static {
        let (write, line) = (self.write.clone(), line(&message));
        async move {
            let closed = || io::Error::from(io::ErrorKind::BrokenPipe);
            write.ok_or_else(closed)?.send(line?).await.map_err(|_| closed())
        }
    }

    async fn receive(&mut self) -> Option<RxJsonRpcMessage<RoleServer>> {
        loop {
            self.room_to_answer().await?;
            let Some(read) = self.next_line().await else {
                self.closed.cancel();
                return None;
            };
            let message = match read {
                Ok(line) if line.trim().is_empty() => None,
                Ok(line) => self.understand(&line),
                Err(refused) => self.complain(refused),
            };
            if message.is_some() {
                return message;
            }
        }
    }

    async fn close(&mut self) -> io::Result<()> {
        // The writer ends when it has written what waits, unless nobody reads that.
        self.write = None;
        let Some(mut writer) = self.writer.take() else { return Ok(()) };
        match timeout(CLOSE, &mut writer).await {
            Ok(ended) => ended.map_err(io::Error::other),
            Err(_) => {
                writer.abort();
                Err(io::ErrorKind::TimedOut.into())
            }
        }
    }
}

/// Writes the lines until no more can come, or the client stops reading.
async fn write_all(mut write: impl AsyncWrite + Unpin, mut lines: mpsc::Receiver<Bytes>) {
    while let Some(line) = lines.recv().await {
        let written = async {
            write.write_all(&line).await?;
            write.flush().await
        };
        if let Err(error) = written.await {
            tracing::info!(%error, "nobody reads our answers any more");
            break;
        }
    }
}

/// Tells whether a message opens a session: it is the handshake, or a request that names its
/// protocol version.
fn opens(message: &ClientJsonRpcMessage) -> bool {
    let JsonRpcMessage::Request(request) = message else { return false };
    match &request.request {
        ClientRequest::InitializeRequest(_) => true,
        ClientRequest::DiscoverRequest(_) | ClientRequest::PingRequest(_) => false,
        other => other.get_meta().protocol_version().is_some(),
    }
}

/// A line that is not a message.
struct RefusedLine {
    /// The request's id, if it could be read: its sender waits for an answer.
    id: Value,
    error: ErrorData,
}

impl RefusedLine {
    fn line(self) -> Bytes {
        let message = json!({ "jsonrpc": "2.0", "id": self.id, "error": self.error });
        format!("{message}\n").into()
    }
}

fn parse(line: &str) -> Result<ClientJsonRpcMessage, RefusedLine> {
    let line = line.trim_start_matches('\u{feff}');
    serde_json::from_str(line).map_err(|error| refuse(line, &error))
}

fn refuse(line: &str, error: &serde_json::Error) -> RefusedLine {
    match serde_json::from_str::<Value>(line) {
        Ok(value) => {
            let id = value.get("id").filter(|id| id.is_string() || id.is_i64());
            let reason = format!("Invalid Request: no JSON-RPC 2.0 message of MCP: {error}");
            RefusedLine {
                id: id.cloned().unwrap_or(Value::Null),
                error: ErrorData::invalid_request(reason, None),
            }
        }
        Err(error) => {
            let reason = format!("Parse error: {error}");
            RefusedLine { id: Value::Null, error: ErrorData::parse_error(reason, None) }
        }
    }
}

fn line(message: &TxJsonRpcMessage<RoleServer>) -> io::Result<Bytes> {
    let mut line = serde_json::to_vec(message)?;
    line.push(b'\n');
    Ok(line.into())
}
