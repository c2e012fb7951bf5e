//! The bridge's terminal: a WebSocket on which a program inside has the other end.

use std::time::Duration;

use eyot::{Error, ErrorKind, Result};
use reqwest::{Method, StatusCode};

use super::answer::{ANSWERS, refused, unreachable};
use super::bridge::BridgeClient;
use crate::terminal_guest::{TerminalSocket, upgraded, websocket_request};

/// The longest wait for the terminal.
const PATIENCE: Duration = Duration::from_secs(60);

/// Opens the terminal of a session, with a program on it. `program` is a path that needs no escape.
pub(super) async fn open(
    client: &BridgeClient,
    id: &str,
    session: &str,
    program: &str,
) -> Result<TerminalSocket> {
    let late = |_| {
        Error::new(
            ErrorKind::Unavailable,
            format!("the bridge opened no terminal within {} s", PATIENCE.as_secs()),
        )
    };
    tokio::time::timeout(PATIENCE, connect(client, id, session, program)).await.map_err(late)?
}

async fn connect(client: &BridgeClient, id: &str, session: &str, program: &str) -> Result<TerminalSocket> {
    let path = format!("/v1/sandbox/{id}/pty?cols=80&rows=24&session={session}&shell={program}");
    let (request, key) = websocket_request(client.request(Method::GET, &path)?);
    let response = request.send().await.map_err(unreachable)?;
    if response.status() != StatusCode::SWITCHING_PROTOCOLS {
        return Err(refused(response).await.0);
    }
    upgraded(response, &key, ANSWERS).await
}
