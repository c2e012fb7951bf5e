//! A hold: the calls of all other clients wait while the sandbox's files are changed from outside. The provider does that on a
//! thread that may block, so a hold has a blocking connection of its own.

use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

use eyot::{Error, ErrorKind, Result};

use super::fault::Fault;
use super::handshake::{check, connection_lost, hello};
use crate::protocol::{
    CHANNEL_MAIN, Decoder, Event, Frame, HOLDS_CALLS, Header, Kind, Request, decode, encode,
};

/// The number of the only call.
const HOLD: u32 = 1;
const BUFFER_BYTES: usize = 4096;

/// A request to hold the calls of all other connections back.
pub struct AskedHold {
    socket: UnixStream,
    guest_nonce: [u8; 16],
}

/// The calls of all other connections wait for this. Dropping it lets them go on.
pub struct CallHold(BlockingGuest);

/// The connection of a hold.
struct BlockingGuest {
    socket: UnixStream,
    decoder: Decoder,
    until: Instant,
}

impl AskedHold {
    /// Asks the guest at the other end of a socket.
    ///
    /// # Errors
    /// `unavailable` if the guest is gone.
    pub fn ask(mut socket: UnixStream, client_nonce: [u8; 16], guest_nonce: [u8; 16]) -> Result<Self> {
        let hold = encode(&Request::Hold);
        let header = Header { kind: Kind::Request, channel: 0, more: false, call: HOLD };
        let all = [&hello(client_nonce)[..], &header.to_bytes(hold.len()), &hold].concat();
        socket.set_nonblocking(false).map_err(connection_lost)?;
        socket.write_all(&all).map_err(connection_lost)?;
        Ok(Self { socket, guest_nonce })
    }

    /// Waits for the answer, so long at the most. `None`: a process runs, or a call is served that may use the sandbox's files.
    ///
    /// # Errors
    /// Those of [`Connection::open`](super::Connection::open); `unsupported` by an older guest.
    pub fn wait(self, patience: Duration) -> Result<Option<CallHold>> {
        let Self { socket, guest_nonce } = self;
        let mut guest = BlockingGuest { socket, decoder: Decoder::new(), until: Instant::now() + patience };
        if check(&guest.next_frame()?, guest_nonce)?.minor < HOLDS_CALLS {
            return Err(Error::new(ErrorKind::Unsupported, "an older Eyot made the sandbox"));
        }
        let answer = guest.next_frame()?;
        match answer.header.kind {
            Kind::Event if decode::<Event>(&answer.payload) == Ok(Event::Opened(None)) => {
                Ok(Some(CallHold(guest)))
            }
            Kind::Failure => Ok(None),
            kind => Err(Fault::broken(&format!("{kind:?} where a hold was due")).error()),
        }
    }
}

impl CallHold {
    /// Lets the calls go on. The guest does so when it hears of it, and nobody waits for that.
    ///
    /// # Errors
    /// `unavailable` if the guest is gone.
    pub fn release(mut self) -> Result<()> {
        let end = Header { kind: Kind::End, channel: CHANNEL_MAIN, more: false, call: HOLD };
        self.0.socket.write_all(&end.to_bytes(0)).map_err(connection_lost)
    }
}

impl BlockingGuest {
    fn next_frame(&mut self) -> Result<Frame> {
        let mut buffer = [0; BUFFER_BYTES];
        loop {
            let broken = |error: crate::protocol::FrameError| Fault::broken(&error.to_string()).error();
            if let Some(frame) = self.decoder.next_frame().map_err(broken)? {
                return Ok(frame);
            }
            let left = self.until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Err(Error::new(ErrorKind::Unavailable, "the sandbox's guest did not answer in time"));
            }
            self.socket.set_read_timeout(Some(left)).map_err(connection_lost)?;
            match self.socket.read(&mut buffer).map_err(connection_lost)? {
                0 => return Err(connection_lost(std::io::ErrorKind::UnexpectedEof.into())),
                count => self.decoder.push(&buffer[..count]),
            }
        }
    }
}
