//! The guest in a container of another engine, and the relay that brings a stream to it. See
//! [`crate::protocol::container`].

mod beside;
mod config;
mod directories;
mod gate;
mod identity;
mod install;
mod pod;
mod protections;
mod relay;
mod start_up;
mod sys;
mod terminal;
mod users;

use std::io;
use std::process::ExitCode;

use super::deadlines::Deadline;
use super::guest::{Guest, GuestEnd};
use start_up::StartOutcome;

use crate::protocol::container::{EXIT_ASKED, EXIT_IDLE, EXIT_INCOMPLETE, EXIT_STOPPED, EXIT_TTL};

pub use install::install;
pub use relay::relay;

/// Runs the guest as a container's PID 1, until its sandbox ends.
pub fn init() -> io::Result<ExitCode> {
    run(start_up::start_up()?, EXIT_ASKED)
}

/// Runs the guest as the first program of a Pod, until its sandbox ends.
pub fn pod() -> io::Result<ExitCode> {
    let code = run(pod::start_up()?, EXIT_STOPPED)?;
    // The gate may have to carry the last answer still.
    gate::settle();
    Ok(code)
}

/// Runs the guest beside a container's own programs, until its sandbox ends.
pub fn beside() -> io::Result<ExitCode> {
    run(beside::start_up(&directory()?)?, EXIT_ASKED)
}

/// Runs the relay on a terminal.
pub fn terminal() -> io::Result<ExitCode> {
    terminal::terminal(&directory()?)
}

/// Returns the directory of the guest's sockets.
fn directory() -> io::Result<String> {
    let missing = || io::Error::new(io::ErrorKind::InvalidInput, "which directory is the guest's?");
    std::env::args().nth(2).ok_or_else(missing)
}

/// Serves until the end, and returns its code: this one if the operator has stopped the container.
fn run(begun: StartOutcome, stopped: u8) -> io::Result<ExitCode> {
    let (inherited, is_woken) = match begun {
        StartOutcome::Serve { inherited, is_woken } => (inherited, is_woken),
        StartOutcome::End(code) => return Ok(code.into()),
    };
    let code = match Guest::new(*inherited)?.run()? {
        GuestEnd::Asked(_) => EXIT_ASKED,
        GuestEnd::Stopped => stopped,
        GuestEnd::Over(Deadline::Ttl) => EXIT_TTL,
        GuestEnd::Over(Deadline::Idle) => EXIT_IDLE,
        GuestEnd::NeverAdopted if is_woken => EXIT_ASKED,
        GuestEnd::NeverAdopted => EXIT_INCOMPLETE,
    };
    Ok(code.into())
}
