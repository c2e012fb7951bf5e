//! A tunnel: bytes both ways, until both sides are done or the rules no longer allow it.

use tokio::io::{AsyncRead, AsyncWrite, copy_bidirectional_with_sizes};
use tokio::net::TcpStream;

use super::allowed_connection::AllowedConnection;
use super::gate::Gate;
use super::limits::TUNNEL_BUFFER;

/// Carries bytes between the client and the server. Both sides are closed in the end.
pub(super) async fn relay(
    gate: &Gate,
    allowed: &AllowedConnection,
    mut client: impl AsyncRead + AsyncWrite + Unpin,
    mut server: TcpStream,
) {
    tokio::select! {
        // An error is the end of one side; both are dropped.
        carried = copy_bidirectional_with_sizes(&mut client, &mut server, TUNNEL_BUFFER, TUNNEL_BUFFER) => drop(carried),
        () = gate.until_forbidden(allowed) => {}
    }
}
