//! Ports inside a sandbox: the addresses of published ones, and connections to any of them through
//! a WebSocket.

use std::collections::HashMap;

use axum::extract::Path;
use axum::extract::ws::Message;
use axum::response::Response;
use axum::{Extension, Json};
use bytes::Bytes;
use eyot::wire::PublishedPorts;
use eyot::{Error, TcpStream};
use futures_util::{SinkExt, StreamExt};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use utoipa::IntoParams;

use super::extract::{Chosen, TheSandbox, Where};
use super::sockets::{Closing, Sink, Source, Upgrade, closing};
use super::stopping::Stopping;
use super::turns::Turn;
use crate::problem::{Problems, Refusal};

/// The size of the buffer that carries data, in bytes.
const PIECE_BYTES: usize = 64 * 1024;
/// The largest message from a client, in bytes.
const MAX_MESSAGE_BYTES: usize = 4 << 20;

/// Returns the addresses at which published ports can be reached on the server's host.
#[utoipa::path(get, path = "/v1/sandboxes/{sandbox}/ports", tag = "ports", params(TheSandbox, Where),
    responses((status = 200, body = PublishedPorts), Problems))]
pub(super) async fn published(Chosen(sandbox): Chosen) -> Result<Json<PublishedPorts>, Refusal> {
    Ok(Json(PublishedPorts { ports: sandbox.published_ports().await? }))
}

/// The path parameter `{port}`.
#[derive(IntoParams)]
#[into_params(names("port"), parameter_in = Path)]
pub(super) struct ThePort(
    /// 1 to 65535.
    #[param(example = 8000)]
    #[allow(dead_code, reason = "it is read by its name, and stands here for the document")]
    u16,
);

/// Connects to a TCP port on the sandbox's loopback.
///
/// Binary messages carry the bytes; an empty message closes the sender's direction.
#[utoipa::path(get, path = "/v1/sandboxes/{sandbox}/ports/{port}/connect", tag = "ports", params(TheSandbox, ThePort, Where),
    responses((status = 101, description = "A WebSocket"), Problems))]
pub(super) async fn connect(
    Extension(turn): Extension<Turn>,
    Extension(Stopping { stop, .. }): Extension<Stopping>,
    Chosen(sandbox): Chosen,
    upgrade: Upgrade,
    Path(path): Path<HashMap<String, String>>,
) -> Result<Response, Refusal> {
    let port = path.get("port").and_then(|text| text.parse().ok());
    let port: u16 = port.ok_or_else(|| Error::invalid("port", "must be a number from 1 to 65535"))?;
    let stream = sandbox.dial(port).await?;
    Ok(upgrade.of_messages(MAX_MESSAGE_BYTES).on_upgrade(async move |socket| {
        let (mut sink, mut source) = socket.split();
        let closing = closing(&turn, (&stop, Closing::STOPS), carry(stream, &mut sink, &mut source)).await;
        closing.close(&mut sink, &mut source).await;
    }))
}

/// Carries bytes both ways until both directions have ended or one side is gone.
async fn carry(stream: Box<dyn TcpStream>, sink: &mut Sink, source: &mut Source) -> Closing {
    let (mut reader, mut writer) = tokio::io::split(stream);
    let inwards = async {
        while let Some(Ok(message)) = source.next().await {
            match message {
                Message::Binary(bytes) if bytes.is_empty() => drop(writer.shutdown().await),
                Message::Binary(bytes) => writer.write_all(&bytes).await.ok()?,
                Message::Close(_) => return None,
                _ => {}
            }
        }
        None::<()>
    };
    let outwards = async {
        let mut buffer = vec![0; PIECE_BYTES];
        loop {
            let count = reader.read(&mut buffer).await.unwrap_or(0);
            let piece = Bytes::copy_from_slice(&buffer[..count]);
            if sink.send(Message::Binary(piece)).await.is_err() || count == 0 {
                break;
            }
        }
        // The other direction may go on.
        std::future::pending::<()>().await;
    };
    tokio::select! {
        _ = inwards => {}
        () = outwards => {}
    }
    Closing::DONE
}
