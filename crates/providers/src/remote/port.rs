//! A connection to a port of a sandbox, over a WebSocket.

use bytes::Bytes;
use eyot::{Result, TcpStream};
use futures_util::{SinkExt, StreamExt};
use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream};
use tokio_tungstenite::tungstenite::Message;

use super::http::{ServerClient, Socket, TargetSandbox};

/// The size of the buffer in each direction, in bytes.
const PIECE_BYTES: usize = 64 * 1024;

/// Connects to a port.
pub(super) async fn dial(
    server: &ServerClient,
    target: &TargetSandbox,
    port: u16,
) -> Result<Box<dyn TcpStream>> {
    let url = server.url(&["v1", "sandboxes", &target.id, "ports", &port.to_string(), "connect"], &[])?;
    let socket = server.socket(target, url).await?;
    let (ours, theirs) = tokio::io::duplex(PIECE_BYTES);
    tokio::spawn(carry(socket, theirs));
    Ok(Box::new(ours))
}

/// Copies both ways until one end is gone. An empty message ends a direction.
async fn carry(socket: Socket, stream: DuplexStream) {
    let (mut sink, mut source) = socket.split();
    let (mut reader, mut writer) = tokio::io::split(stream);
    let inwards = async {
        loop {
            match source.next().await {
                Some(Ok(Message::Binary(bytes))) if bytes.is_empty() => {
                    if writer.shutdown().await.is_err() {
                        return;
                    }
                }
                Some(Ok(Message::Binary(bytes))) => {
                    if writer.write_all(&bytes).await.is_err() {
                        return;
                    }
                }
                Some(Ok(Message::Close(_)) | Err(_)) | None => return,
                Some(Ok(_)) => {}
            }
        }
    };
    let outwards = async {
        let mut buffer = vec![0; PIECE_BYTES];
        loop {
            let count = reader.read(&mut buffer).await.unwrap_or(0);
            let piece = Bytes::copy_from_slice(&buffer[..count]);
            if sink.send(Message::Binary(piece)).await.is_err() {
                return;
            }
            if count == 0 {
                // The other direction may go on.
                std::future::pending::<()>().await;
            }
        }
    };
    tokio::select! {
        () = inwards => {}
        () = outwards => {}
    }
}
