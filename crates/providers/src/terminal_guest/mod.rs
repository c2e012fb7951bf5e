//! Eyot's guest beside a vendor's own program, reached by a terminal of the vendor's: scripts that put, start, find and end it, the
//! terminal as a WebSocket, and the stream through it.

mod life;
mod socket;
mod tunnel;

use std::time::Duration;

use eyot::{Error, ErrorKind, Result};
use eyot_guest::protocol::container::{RELAY_TO_GUEST, RELAY_TO_MAKER};
use tokio::io::{AsyncReadExt, DuplexStream};

pub(crate) use life::GuestLife;
pub(crate) use socket::{TerminalSocket, upgraded, websocket_request};
pub(crate) use tunnel::through;

/// The longest wait for the first byte of a stream.
const PATIENCE: Duration = Duration::from_secs(20);
/// Makes room for a guest.
pub(crate) const PLACE: &str = include_str!("place.sh");
/// Starts a guest that was uploaded.
pub(crate) const BEGIN: &str = include_str!("begin.sh");
/// Looks for a guest, and may end it.
pub(crate) const LOOK: &str = include_str!("look.sh");

/// The part of a guest that was found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum GuestTrace {
    /// It runs.
    Here,
    /// It has ended, in its container.
    Ended,
    /// The container is another: it knows nothing of the guest.
    Gone,
}

/// Reads what `look.sh` has printed.
pub(crate) fn trace(said: &str) -> Result<GuestTrace> {
    match said.trim() {
        "here" => Ok(GuestTrace::Here),
        "ended" => Ok(GuestTrace::Ended),
        "gone" => Ok(GuestTrace::Gone),
        _ => Err(odd(said)),
    }
}

/// Reads what `place.sh` or `begin.sh` has printed.
pub(crate) fn done(said: &str) -> Result<()> {
    let setup = |message: String| Err(Error::new(ErrorKind::Setup, message));
    match said.trim() {
        "ok" => Ok(()),
        "workdir" => setup("its working directory can't be made by the sandbox's user".to_owned()),
        "directory" => setup("its guest has no place in /tmp".to_owned()),
        "upload" => setup("its guest did not come whole".to_owned()),
        "guest" => setup("its guest did not start".to_owned()),
        other => match other.strip_prefix("machine ") {
            Some(machine) => {
                let message = format!(
                    "the guest is a program for x86_64, and the sandbox is {}",
                    machine.escape_debug()
                );
                Err(Error::new(ErrorKind::Unsupported, message))
            }
            None => Err(odd(said)),
        },
    }
}

/// Reads the first byte of a stream: whom the relay of the guest speaks for.
pub(crate) async fn read_role(stream: &mut DuplexStream) -> Result<u8> {
    let silent = || Error::new(ErrorKind::Unavailable, "the sandbox's guest is not there");
    match tokio::time::timeout(PATIENCE, stream.read_u8()).await {
        Ok(Ok(role)) if [RELAY_TO_MAKER, RELAY_TO_GUEST].contains(&role) => Ok(role),
        Ok(Ok(_)) => Err(silent().with_source("another program is on the terminal")),
        Ok(Err(error)) => Err(silent().with_source(error)),
        Err(late) => Err(silent().with_source(late)),
    }
}

/// Makes the error of a call to a guest that has ended in a sandbox that has not.
pub(crate) fn guest_ended(sandbox: &str) -> Error {
    let message = format!("the guest in sandbox `{sandbox}` has ended, with all that ran");
    Error::new(ErrorKind::Unavailable, message)
        .with_hint("its files are kept; whoever opens the sandbox again starts another guest")
}

fn odd(said: &str) -> Error {
    let said: String = said.chars().take(100).collect();
    Error::new(ErrorKind::Unavailable, "a script in the sandbox has printed something odd").with_source(said)
}
