//! MCP over standard input and output, or any other pair of streams: one session, which ends when the client closes its
//! side.

mod lines;

use std::time::Duration;

use eyot::{Error, ErrorKind, Result};
use rmcp::service::{ServerInitializeError, serve_server_with_ct};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

use super::McpServer;
use super::session::{McpSession, SessionEnd};
use lines::LineTransport;

/// The time that calls may still take after the client closed its side: enough for the answers of a
/// script that is piped in, and well below the two seconds after which clients send signals.
const GRACE: Duration = Duration::from_secs(1);

/// Serves one session over these streams until the client closes its side or `stop` is cancelled,
/// and returns when the session has been cleaned up. Only protocol messages are written. Fails with
/// `unavailable` if the client speaks no MCP, or if the output is closed before the session began.
pub async fn serve_stdio(
    server: &McpServer,
    read: impl AsyncRead + Send + Unpin + 'static,
    write: impl AsyncWrite + Send + Unpin + 'static,
    stop: CancellationToken,
) -> Result<()> {
    let (ended, closed) = (CancellationToken::new(), CancellationToken::new());
    let session = McpSession::over_stdio(server, SessionEnd(ended.clone()));
    let lines = LineTransport::new(read, write, closed.clone());
    let ending = end_after_close(&closed, &ended);
    let served = serve(session, lines, stop);
    let ((), served) = tokio::join!(ending, async {
        let served = served.await;
        closed.cancel();
        ended.cancel();
        served
    });
    server.ended().await;
    served
}

async fn serve(
    session: McpSession,
    lines: LineTransport<impl AsyncRead + Send + Unpin + 'static>,
    stop: CancellationToken,
) -> Result<()> {
    match serve_server_with_ct(session, lines, stop).await {
        Ok(running) => {
            let ended = running.waiting().await;
            ended.map(drop).map_err(|error| failed("serve the session", error))
        }
        // It came and went without a word, or we are to stop: nothing is wrong.
        Err(ServerInitializeError::ConnectionClosed(_) | ServerInitializeError::Cancelled) => Ok(()),
        Err(error) => Err(failed("open the session", error)),
    }
}

async fn end_after_close(closed: &CancellationToken, ended: &CancellationToken) {
    closed.cancelled().await;
    tokio::select! {
        () = ended.cancelled() => {}
        () = sleep(GRACE) => ended.cancel(),
    }
}

fn failed(what: &str, error: impl std::error::Error + Send + Sync + 'static) -> Error {
    Error::new(ErrorKind::Unavailable, format!("{what}: {error}")).with_source(error)
}
