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

use crate::protocol::container::{EXIT_ASKED, EXIT_IDLE, EXIT_INCOMPLETE, EXIT_TTL};

pub use install::install;
pub use relay::relay;

/// Runs the guest as a container's PID 1, until its sandbox ends.
pub fn init() -> io::Result<ExitCode> {
    run(start_up::start_up()?)
}

/// Runs the guest as the first program of a Pod, until its sandbox ends.
pub fn pod() -> io::Result<ExitCode> {
    run(pod::start_up()?)
}

/// Runs the guest beside a container's own programs, until its sandbox ends.
pub fn beside() -> io::Result<ExitCode> {
    run(beside::start_up(&directory()?)?)
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

fn run(begun: StartOutcome) -> io::Result<ExitCode> {
    let (inherited, is_woken) = match begun {
        StartOutcome::Serve { inherited, is_woken } => (inherited, is_woken),
        StartOutcome::End(code) => return Ok(code.into()),
    };
    let code = match Guest::new(*inherited)?.run()? {
        GuestEnd::Asked(_) | GuestEnd::Stopped => EXIT_ASKED,
        GuestEnd::Over(Deadline::Ttl) => EXIT_TTL,
        GuestEnd::Over(Deadline::Idle) => EXIT_IDLE,
        GuestEnd::NeverAdopted if is_woken => EXIT_ASKED,
        GuestEnd::NeverAdopted => EXIT_INCOMPLETE,
    };
    Ok(code.into())
}
