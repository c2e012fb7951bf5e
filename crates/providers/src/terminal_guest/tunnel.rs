//! A stream of bytes to a sandbox's guest, through a terminal: in pieces, with signs of life in both directions.

use bytes::Bytes;
use eyot_guest::protocol::terminal::{
    HEARTBEAT, MAX_PIECE_BYTES, SILENCE, TerminalPiece, TerminalReader, alive, end, push_bytes,
};
use futures_util::{Sink, SinkExt, Stream, StreamExt};
use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream, ReadHalf, WriteHalf};
use tokio::time::Instant;
use tokio_tungstenite::tungstenite::{Error, Message};

use super::socket::TerminalSocket;

/// The size of the buffer in each direction, in bytes.
const BUFFER_BYTES: usize = 64 << 10;

/// Makes a stream of a terminal. `ended` is called when the terminal is of no more use.
pub(crate) fn through(
    socket: TerminalSocket,
    ended: impl Future<Output = ()> + Send + 'static,
) -> DuplexStream {
    let (ours, theirs) = tokio::io::duplex(BUFFER_BYTES);
    tokio::spawn(async move {
        carry(socket, theirs).await;
        ended.await;
    });
    ours
}

/// Carries both ways until one end is gone.
async fn carry(socket: TerminalSocket, stream: DuplexStream) {
    let (mut sink, mut source) = socket.split();
    let (mut reader, mut writer) = tokio::io::split(stream);
    tokio::select! {
        () = inward(&mut source, &mut writer) => {}
        () = outward(&mut reader, &mut sink) => {}
    }
    // Whoever reads is told of the end before the bridge is.
    drop((reader, writer));
    if let Err(error) = sink.close().await {
        tracing::debug!(%error, "a terminal was gone when it was to be closed");
    }
}

async fn inward(
    source: &mut (impl Stream<Item = Result<Message, Error>> + Unpin),
    writer: &mut WriteHalf<DuplexStream>,
) {
    let (mut pieces, mut heard) = (TerminalReader::default(), Instant::now());
    loop {
        let bytes = match tokio::time::timeout_at(heard + SILENCE, source.next()).await {
            Ok(Some(Ok(Message::Binary(bytes)))) => bytes,
            // What the bridge says of its terminal: no sign of life of what is on it.
            Ok(Some(Ok(Message::Text(_) | Message::Ping(_) | Message::Pong(_) | Message::Frame(_)))) => {
                continue;
            }
            Ok(Some(Ok(Message::Close(_)) | Err(_)) | None) | Err(_) => return,
        };
        let Ok(read) = pieces.push(&bytes) else { return };
        for piece in read {
            match piece {
                TerminalPiece::Bytes(bytes) if writer.write_all(&bytes).await.is_err() => return,
                TerminalPiece::Bytes(_) | TerminalPiece::Alive => {}
                TerminalPiece::End => return,
            }
        }
        // The time in which this side did not read is none of the other's silence.
        heard = Instant::now();
    }
}

async fn outward(
    reader: &mut ReadHalf<DuplexStream>,
    sink: &mut (impl Sink<Message, Error = Error> + Unpin),
) {
    let mut buffer = vec![0; MAX_PIECE_BYTES];
    loop {
        let (sent, is_last) = match tokio::time::timeout(HEARTBEAT, reader.read(&mut buffer)).await {
            Err(_) => (alive().to_vec(), false),
            Ok(Ok(count)) if count > 0 => {
                let mut sent = Vec::with_capacity(count + 2);
                push_bytes(&mut sent, &buffer[..count]);
                (sent, false)
            }
            Ok(_) => (end().to_vec(), true),
        };
        if sink.send(Message::Binary(Bytes::from(sent))).await.is_err() || is_last {
            return;
        }
    }
}
