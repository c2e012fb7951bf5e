//! The relay on a terminal: it carries bytes between the terminal, where they go in pieces, and the guest. It ends when
//! either does, and when nobody outside has said anything for long.

use std::fs::File;
use std::io::{self, Read, Write};
use std::net::Shutdown;
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::process::ExitCode;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use rustix::termios::{OptionalActions, tcgetattr, tcsetattr};

use super::relay::connect;
use crate::program::sys;
use crate::protocol::terminal::{
    HEARTBEAT, MAX_PIECE_BYTES, SILENCE, TerminalPiece, TerminalReader, alive, end, push_bytes,
};

/// The time that a guest may take until it listens.
const PATIENCE: Duration = Duration::from_secs(2);
/// The time that whoever is outside has to read the end.
const END_PATIENCE: Duration = Duration::from_secs(5);

/// Carries bytes between the terminal and the guest in a directory, until either ends.
pub fn terminal(directory: &str) -> io::Result<ExitCode> {
    // What goes through it is not for the commands of the same user.
    sys::forbid_dumping()?;
    let input = File::from(io::stdin().as_fd().try_clone_to_owned()?);
    let output = Arc::new(Mutex::new(File::from(io::stdout().as_fd().try_clone_to_owned()?)));
    let mut mode = tcgetattr(&input)?;
    mode.make_raw();
    tcsetattr(&input, OptionalActions::Flush, &mode)?;
    let carried = connect(directory, PATIENCE).and_then(|(stream, role)| carry(input, &output, stream, role));
    send(&output, &end())?;
    if carried.is_ok() {
        // The bytes are lost with the terminal.
        std::thread::sleep(END_PATIENCE);
    }
    carried.map(|()| ExitCode::SUCCESS)
}

fn carry(input: File, output: &Arc<Mutex<File>>, stream: UnixStream, role: u8) -> io::Result<()> {
    send_bytes(output, &[role])?;
    let heard = Arc::new(Mutex::new(Instant::now()));
    let (to_guest, from_guest) = (stream.try_clone()?, stream);
    let noted = Arc::clone(&heard);
    std::thread::spawn(move || {
        // The guest sees the end either way.
        drop(inward(input, &to_guest, &noted));
        drop(to_guest.shutdown(Shutdown::Both));
    });
    let (sent, guest) = (Arc::clone(output), from_guest.try_clone()?);
    std::thread::spawn(move || {
        while send(&sent, &alive()).is_ok() && last(&heard).elapsed() < SILENCE {
            std::thread::sleep(HEARTBEAT);
        }
        drop(guest.shutdown(Shutdown::Both));
    });
    outward(from_guest, output)
}

fn last(heard: &Mutex<Instant>) -> Instant {
    *heard.lock().unwrap_or_else(PoisonError::into_inner)
}

fn inward(mut input: File, mut guest: &UnixStream, heard: &Mutex<Instant>) -> io::Result<()> {
    let (mut reader, mut buffer) = (TerminalReader::default(), vec![0; MAX_PIECE_BYTES]);
    loop {
        let count = match input.read(&mut buffer) {
            Ok(0) => return Ok(()),
            Ok(count) => count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(error),
        };
        *heard.lock().unwrap_or_else(PoisonError::into_inner) = Instant::now();
        let wrong = |_| io::Error::from(io::ErrorKind::InvalidData);
        for piece in reader.push(&buffer[..count]).map_err(wrong)? {
            match piece {
                TerminalPiece::Bytes(bytes) => guest.write_all(&bytes)?,
                TerminalPiece::Alive => {}
                TerminalPiece::End => return Ok(()),
            }
        }
    }
}

fn outward(mut guest: UnixStream, output: &Mutex<File>) -> io::Result<()> {
    let mut buffer = vec![0; MAX_PIECE_BYTES];
    loop {
        match guest.read(&mut buffer) {
            Ok(0) => return Ok(()),
            Ok(count) => send_bytes(output, &buffer[..count])?,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}

fn send_bytes(output: &Mutex<File>, bytes: &[u8]) -> io::Result<()> {
    let mut pieces = Vec::with_capacity(bytes.len() + 2);
    push_bytes(&mut pieces, bytes);
    send(output, &pieces)
}

fn send(output: &Mutex<File>, bytes: &[u8]) -> io::Result<()> {
    output.lock().unwrap_or_else(PoisonError::into_inner).write_all(bytes)
}
