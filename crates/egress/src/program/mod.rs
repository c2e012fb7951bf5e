//! The program: one process per sandbox on the host, outside of every namespace of the sandbox,
//! that holds the listeners inside. It lives exactly as long as the sandbox's guest, whichever
//! process made the sandbox.

mod allowed_connection;
mod control;
mod dns;
mod dns_cache;
mod gate;
mod http;
mod journal;
mod limits;
mod relay;
mod resolver;
mod serve;
mod socks;
mod start;
mod sys;

use std::process::ExitCode;

/// The program's `main`. The standard input is the socket to the process that starts it.
pub fn main() -> ExitCode {
    match start::start().and_then(serve::serve) {
        Ok(()) => ExitCode::SUCCESS,
        Err(_) => ExitCode::FAILURE,
    }
}
