//! The first client of a container's guest, and the configuration that it brings.

use std::io::{self, Read, Write};
use std::net::Shutdown;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::net::{UnixListener, UnixStream};
use std::time::{Duration, Instant};

use super::sys;
use crate::program::access::AccessRule;
use crate::program::failure::failure;
use crate::program::wire;
use crate::protocol::container::{CONFIG_PATIENCE_MS, ContainerConfig, EXIT_ASKED, EXIT_UNCONFIGURED};
use crate::protocol::{Kind, MAX_MESSAGE_BYTES, decode};

/// The time that the first client may take for the configuration, once it is connected.
const READ_PATIENCE: Duration = Duration::from_secs(20);
/// The time that a refusal may take on its way out.
const REFUSAL_PATIENCE: Duration = Duration::from_secs(5);

/// Waits for the first client that the rule lets in. Without one it returns the code to exit
/// with: no client came, or the container is to end.
pub fn first_client(
    listener: &UnixListener,
    stop: &OwnedFd,
    access: AccessRule,
) -> io::Result<Result<UnixStream, u8>> {
    let given_up = Instant::now() + Duration::from_millis(CONFIG_PATIENCE_MS);
    loop {
        let left = given_up.saturating_duration_since(Instant::now()).as_millis() as i32;
        let [connects, stops] = sys::wait_readable([listener.as_raw_fd(), stop.as_raw_fd()], left)?;
        if stops {
            return Ok(Err(EXIT_ASKED));
        }
        if !connects {
            return Ok(Err(EXIT_UNCONFIGURED));
        }
        let (stream, _) = listener.accept()?;
        if access.lets_in(&stream) {
            return Ok(Ok(stream));
        }
    }
}

/// Reads the configuration. What follows stays in the stream.
pub fn read_config(stream: &mut UnixStream) -> io::Result<ContainerConfig> {
    stream.set_read_timeout(Some(READ_PATIENCE))?;
    let mut length = [0; 4];
    stream.read_exact(&mut length)?;
    let length = u32::from_le_bytes(length) as usize;
    if length > MAX_MESSAGE_BYTES {
        return Err(io::Error::new(io::ErrorKind::InvalidData, "a configuration that is too large"));
    }
    let mut bytes = vec![0; length];
    stream.read_exact(&mut bytes)?;
    stream.set_read_timeout(None)?;
    decode(&bytes).map_err(|reason| io::Error::new(io::ErrorKind::InvalidData, reason))
}

/// Tells the first client that there will be no sandbox, and why. Returns when the relay that
/// carries it has gone: the end of this process, the container's first, is the end of every other
/// one in it, and a reason that is still with the relay would be lost.
pub fn refuse(mut stream: UnixStream, kind: &'static str, reason: &str) -> io::Result<()> {
    let mut frames = Vec::new();
    wire::push_message(&mut frames, Kind::Failure, 0, &failure(kind, reason));
    stream.write_all(&frames)?;
    stream.shutdown(Shutdown::Write)?;
    let given_up = Instant::now() + REFUSAL_PATIENCE;
    let mut ignored = [0; 1024];
    loop {
        let left = given_up.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Ok(());
        }
        stream.set_read_timeout(Some(left))?;
        match stream.read(&mut ignored) {
            Ok(0) => return Ok(()),
            Ok(_) => {}
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            // The relay went with words of the client's unread, or does not go.
            Err(_) => return Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_lasts_until_whoever_carries_it_has_read_it_and_gone() {
        let (guest, mut relay) = UnixStream::pair().unwrap();
        relay.write_all(b"what the client says first").unwrap();
        let refusing = std::thread::spawn(move || refuse(guest, "invalid", "there is no such user"));
        let mut told = Vec::new();
        relay.read_to_end(&mut told).unwrap();
        assert!(String::from_utf8_lossy(&told).contains("there is no such user"));
        assert!(!refusing.is_finished(), "it was over while the relay still had the reason");
        drop(relay);
        refusing.join().unwrap().unwrap();
    }
}
