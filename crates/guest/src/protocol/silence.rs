//! The end of a TCP connection whose other side no longer answers: a lost node, or a forgotten route.

use std::io;
use std::os::fd::AsFd;
use std::time::Duration;

use rustix::net::sockopt;

/// The silence after which the kernel asks whether the other side is there.
const IDLE: Duration = Duration::from_secs(5);
/// The time between two questions.
const INTERVAL: Duration = Duration::from_secs(3);
/// The number of questions without an answer that end the connection.
const QUESTIONS: u32 = 2;
/// The longest time that sent bytes may wait for their receipt, in milliseconds.
const UNANSWERED_MS: u32 = 11_000;

/// Has the kernel end a connection whose other side, for 11 seconds, does not answer or takes none of the bytes that
/// wait for it. Callers see that as an error. One that is idle lives on.
///
/// # Errors
/// Those of the kernel, of a descriptor that is no TCP socket.
pub fn end_when_silent(stream: &impl AsFd) -> io::Result<()> {
    sockopt::set_tcp_keepidle(stream, IDLE)?;
    sockopt::set_tcp_keepintvl(stream, INTERVAL)?;
    sockopt::set_tcp_keepcnt(stream, QUESTIONS)?;
    sockopt::set_tcp_user_timeout(stream, UNANSWERED_MS)?;
    Ok(sockopt::set_socket_keepalive(stream, true)?)
}
