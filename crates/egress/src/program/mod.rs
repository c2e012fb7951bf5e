//! The program: one process per sandbox on the host, outside of every namespace of the sandbox, that holds the listeners
//! inside. It lives exactly as long as the sandbox's guest, whoever made the sandbox and whatever became of them.

mod control;
mod dns;
mod gate;
mod http;
mod journal;
mod limits;
mod names;
mod pass;
mod relay;
mod serve;
mod socks;
mod start;
mod sys;
mod told;

use std::process::ExitCode;

/// The program's `main`. Its standard input is the socket to whoever starts it.
pub fn main() -> ExitCode {
    match start::start().and_then(serve::serve) {
        Ok(()) => ExitCode::SUCCESS,
        Err(_) => ExitCode::FAILURE,
    }
}
