//! The relay: a process that a container's engine runs in the container, and whose standard streams it hands on. It is
//! the one way to the guest, and knows nothing of what it carries.

use std::fs::File;
use std::io::{self, Read, Write};
use std::net::Shutdown;
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::process::ExitCode;

use super::identity;
use super::start_up::{GUEST_SOCKET, MAKER_SOCKET};
use crate::protocol::container::{RELAY_TO_GUEST, RELAY_TO_MAKER, RUN_DIR};

/// How much is carried at once.
const BUFFER_BYTES: usize = 64 * 1024;

/// Carries bytes between the standard streams and the guest until either ends.
pub fn relay() -> io::Result<ExitCode> {
    identity::become_relay()?;
    let (stream, role) = connect()?;
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

/// A guest without a configuration listens for one; any other for clients.
fn connect() -> io::Result<(UnixStream, u8)> {
    match UnixStream::connect(format!("{RUN_DIR}/{MAKER_SOCKET}")) {
        Ok(stream) => Ok((stream, RELAY_TO_MAKER)),
        Err(_) => Ok((UnixStream::connect(format!("{RUN_DIR}/{GUEST_SOCKET}"))?, RELAY_TO_GUEST)),
    }
}

fn carry(from: &mut impl Read, to: &mut impl Write) -> io::Result<()> {
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
