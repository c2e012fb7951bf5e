//! A tunnel: bytes both ways, until both sides are done or the rules no longer allow it.

use tokio::io::{AsyncRead, AsyncWrite, copy_bidirectional_with_sizes};
use tokio::net::TcpStream;

use super::gate::Gate;
use super::limits::TUNNEL_BUFFER;
use super::pass::Pass;

/// Carries bytes between the client and the server. However it ends, both sides are closed.
pub(super) async fn relay(
    gate: &Gate,
    pass: &Pass,
    mut client: impl AsyncRead + AsyncWrite + Unpin,
    mut server: TcpStream,
) {
    tokio::select! {
        // An error is one side's end; both are dropped.
        carried = copy_bidirectional_with_sizes(&mut client, &mut server, TUNNEL_BUFFER, TUNNEL_BUFFER) => drop(carried),
        () = gate.until_forbidden(pass) => {}
    }
}
