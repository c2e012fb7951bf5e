//! The relay: a process that a container's engine runs in the container, and whose standard streams
//! it hands on. It is the one way to the guest, and knows nothing of what it carries.

use std::fs::File;
use std::io::{self, Read, Write};
use std::net::Shutdown;
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use super::identity;
use super::start_up::{GUEST_SOCKET, MAKER_SOCKET};
use crate::protocol::container::{RELAY_TO_GUEST, RELAY_TO_MAKER, RUN_DIR};

/// The most bytes that are carried at once.
const BUFFER_BYTES: usize = 64 * 1024;
/// The time that a guest may take until it listens, and the pause between two attempts.
const PATIENCE: Duration = Duration::from_secs(20);
const LOOK: Duration = Duration::from_millis(2);

/// Carries bytes between the standard streams and the guest until either ends.
pub fn relay() -> io::Result<ExitCode> {
    identity::become_relay()?;
    let (stream, role) = connect(RUN_DIR, PATIENCE)?;
    // Without std's buffers: a frame must not wait for a line end.
    let mut output = File::from(io::stdout().as_fd().try_clone_to_owned()?);
    let mut input = File::from(io::stdin().as_fd().try_clone_to_owned()?);
    output.write_all(&[role])?;
    let mut from_guest = stream.try_clone()?;
    let mut to_guest = stream;
    std::thread::spawn(move || {
        // The guest sees the end either way.
        drop(carry(&mut input, &mut to_guest));
        drop(to_guest.shutdown(Shutdown::Write));
    });
    carry(&mut from_guest, &mut output)?;
    Ok(ExitCode::SUCCESS)
}

/// An engine may start a relay before the guest has come so far as to listen. It is looked for
/// again and again, and not watched for: until then the directory is not ours, and the kernel
/// counts who watches over all containers.
pub fn connect(directory: &str, patience: Duration) -> io::Result<(UnixStream, u8)> {
    use io::ErrorKind::{ConnectionRefused, NotFound, PermissionDenied};
    let given_up = Instant::now() + patience;
    loop {
        match connect_now(directory) {
            Err(error)
                if matches!(error.kind(), NotFound | PermissionDenied | ConnectionRefused)
                    && Instant::now() < given_up =>
            {
                std::thread::sleep(LOOK);
            }
            found => return found,
        }
    }
}

/// A guest without a configuration listens for one; any other for clients alone.
fn connect_now(directory: &str) -> io::Result<(UnixStream, u8)> {
    let to = |socket: &str| UnixStream::connect(format!("{directory}/{socket}"));
    to(MAKER_SOCKET).map(|stream| (stream, RELAY_TO_MAKER)).or_else(|_| {
        let guest = to(GUEST_SOCKET)?;
        // It begins with the maker's: only now does its absence say that the guest has its
        // configuration.
        let maker = to(MAKER_SOCKET).map(|stream| (stream, RELAY_TO_MAKER));
        Ok(maker.unwrap_or((guest, RELAY_TO_GUEST)))
    })
}

/// Carries bytes until there are no more.
pub fn carry(from: &mut impl Read, to: &mut impl Write) -> io::Result<()> {
    let mut buffer = vec![0; BUFFER_BYTES];
    loop {
        match from.read(&mut buffer) {
            Ok(0) => return Ok(()),
            Ok(count) => to.write_all(&buffer[..count])?,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::net::UnixListener;

    use super::*;

    #[test]
    fn a_relay_that_is_faster_than_its_guest_waits_until_it_listens() {
        let folder = tempfile::tempdir().unwrap();
        let directory = folder.path().to_str().unwrap().to_owned();
        assert!(connect_now(&directory).is_err());
        let relay = std::thread::spawn({
            let directory = directory.clone();
            move || connect(&directory, PATIENCE).unwrap().1
        });
        let _maker = UnixListener::bind(folder.path().join(MAKER_SOCKET)).unwrap();
        assert_eq!(relay.join().unwrap(), RELAY_TO_MAKER);
    }

    #[test]
    fn a_guest_with_its_configuration_is_a_clients() {
        let folder = tempfile::tempdir().unwrap();
        let directory = folder.path().to_str().unwrap();
        let _guest = UnixListener::bind(folder.path().join(GUEST_SOCKET)).unwrap();
        assert_eq!(connect(directory, PATIENCE).unwrap().1, RELAY_TO_GUEST);
        let _maker = UnixListener::bind(folder.path().join(MAKER_SOCKET)).unwrap();
        assert_eq!(connect(directory, PATIENCE).unwrap().1, RELAY_TO_MAKER);
    }
}
