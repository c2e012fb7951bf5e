//! Eyot's guest beside a vendor's own program, reached by a terminal of the vendor's: scripts that put, start, find and end it, the
//! terminal as a WebSocket, and the stream through it.

mod life;
mod socket;
mod tunnel;

use eyot::{Error, ErrorKind, Result};

pub(crate) use life::GuestLife;
pub(crate) use socket::{TerminalSocket, upgraded, websocket_request};
pub(crate) use tunnel::through;

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

fn odd(said: &str) -> Error {
    let said: String = said.chars().take(100).collect();
    Error::new(ErrorKind::Unavailable, "a script in the sandbox has printed something odd").with_source(said)
}
