//! The first words of a connection: both sides say their version and prove who they are.

use std::time::Duration;

use eyot::{Error, ErrorKind, Result};
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt};

use super::convert::failure_error;
use super::fault::Fault;
use super::frames::{FrameReadError, FrameReader};
use crate::protocol::{
    Failure, Frame, Header, Hello, Kind, MAJOR, MINOR, Protections, Welcome, decode, encode,
};

/// The time that a guest that was just made may take for its first words.
pub(super) const SETTING_UP: Duration = Duration::from_secs(10);
/// The time that a running guest may take. A guest that is stopped must not hold up a call that has
/// a deadline.
pub(super) const RUNNING: Duration = Duration::from_secs(2);
const CONNECTION_LOST: &str = "the sandbox stopped before its guest answered";

/// The facts about a guest that its first words tell.
#[derive(Debug)]
pub(super) struct GuestFacts {
    /// The additions to the protocol that it knows.
    pub(super) minor: u16,
    /// The protections that it found around itself, if it had to look.
    pub(super) protections: Option<Protections>,
}

/// Says hello and checks the welcome. Gives what it says of the guest, and what the guest may have
/// sent after it.
pub(super) async fn shake_hands<S: AsyncRead + AsyncWrite + Unpin>(
    stream: &mut S,
    client_nonce: [u8; 16],
    guest_nonce: [u8; 16],
    patience: Duration,
) -> Result<(FrameReader, GuestFacts)> {
    let late = |_| {
        let message = format!("the sandbox's guest did not answer within {} s", patience.as_secs());
        Error::new(ErrorKind::Unavailable, message)
    };
    tokio::time::timeout(patience, greet(stream, client_nonce, guest_nonce)).await.map_err(late)?
}

async fn greet<S: AsyncRead + AsyncWrite + Unpin>(
    stream: &mut S,
    client_nonce: [u8; 16],
    guest_nonce: [u8; 16],
) -> Result<(FrameReader, GuestFacts)> {
    stream.write_all(&hello(client_nonce)).await.map_err(connection_lost)?;
    stream.flush().await.map_err(connection_lost)?;
    let mut frames = FrameReader::new();
    let facts = check(&first_frame(stream, &mut frames).await?, guest_nonce)?;
    Ok((frames, facts))
}

/// Returns the first frame of a client.
pub(super) fn hello(client_nonce: [u8; 16]) -> Vec<u8> {
    let hello = encode(&Hello { major: MAJOR, minor: MINOR, nonce: client_nonce });
    let header = Header { kind: Kind::Hello, channel: 0, more: false, call: 0 }.to_bytes(hello.len());
    [&header[..], &hello].concat()
}

async fn first_frame<S: AsyncRead + Unpin>(stream: &mut S, frames: &mut FrameReader) -> Result<Frame> {
    frames.next(stream).await.map_err(|none| match none {
        FrameReadError::Ended => Error::new(ErrorKind::Unavailable, CONNECTION_LOST),
        FrameReadError::Failed(error) => connection_lost(error),
        FrameReadError::Malformed(error) => Fault::broken(&error.to_string()).error(),
    })
}

/// Makes the error of a stream that failed.
pub(super) fn connection_lost(error: std::io::Error) -> Error {
    Error::new(ErrorKind::Unavailable, CONNECTION_LOST).with_source(error)
}

/// Checks the first frame of a guest.
pub(super) fn check(frame: &Frame, guest_nonce: [u8; 16]) -> Result<GuestFacts> {
    let broken = |what: String| Fault::broken(&what).error();
    let Header { kind, more, call, .. } = frame.header;
    match kind {
        Kind::Welcome if !more && call == 0 => {
            let welcome: Welcome = decode(&frame.payload).map_err(broken)?;
            check_welcome(&welcome, guest_nonce)?;
            Ok(GuestFacts { minor: welcome.minor, protections: welcome.protections })
        }
        Kind::Failure if !more && call == 0 => {
            let failure: Failure = decode(&frame.payload).map_err(broken)?;
            Err(failure_error(failure).context("the sandbox's guest refused the connection"))
        }
        kind => Err(broken(format!("{kind:?} where Welcome was due"))),
    }
}

fn check_welcome(welcome: &Welcome, guest_nonce: [u8; 16]) -> Result<()> {
    if welcome.major != MAJOR {
        let Welcome { major, minor, .. } = welcome;
        let message = format!(
            "the sandbox's guest speaks protocol {major}.{minor} and this Eyot speaks {MAJOR}.{MINOR}"
        );
        let hint = "use the version of Eyot that made the sandbox, or create it anew";
        return Err(Error::new(ErrorKind::Conflict, message).with_hint(hint));
    }
    if equal_in_constant_time(&welcome.nonce, &guest_nonce) {
        Ok(())
    } else {
        Err(Error::new(ErrorKind::Permission, "whoever answered is not this sandbox's guest"))
    }
}

/// Compares in a time that does not depend on the first difference.
fn equal_in_constant_time(one: &[u8; 16], other: &[u8; 16]) -> bool {
    one.iter().zip(other).fold(0, |difference, (a, b)| difference | (a ^ b)) == 0
}
