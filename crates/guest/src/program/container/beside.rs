//! The first steps of a guest beside other programs, in a container that is not its own. Like a Pod's it has no
//! privileges: it runs as the user who runs commands, and changes to no other. Unlike a Pod's it is not PID 1, so a command
//! can end it, and whatever else that user runs; the sandbox is over then. Its sockets are in a directory of that user's, and
//! who connects must know the secret of the configuration.

use std::fs;
use std::io;
use std::os::unix::net::UnixListener;
use std::path::Path;

use super::pod::serve_as_told;
use super::start_up::{GUEST_SOCKET, MAKER_SOCKET, StartOutcome};
use super::{config, sys};
use crate::environment::completed;
use crate::program::access::AccessRule;
use crate::program::start_up::protect;

const ACCESS: AccessRule = AccessRule::Open;
/// Variables that say something about the shell that has started the guest.
const OF_A_SHELL: [&str; 6] = ["OLDPWD", "PWD", "SHLVL", "TERM", "PROMPT_COMMAND", "_"];

/// Protects this process, waits for the first client and does what that says.
pub fn start_up(directory: &str) -> io::Result<StartOutcome> {
    let begun = protect()?;
    let stop = sys::termination()?;
    let directory = Path::new(directory);
    // First the one that is looked for last; see the relay.
    let maker = listen(&directory.join(MAKER_SOCKET))?;
    let listener = listen(&directory.join(GUEST_SOCKET))?;
    let first = config::first_client(&maker, &stop, ACCESS)?;
    fs::remove_file(directory.join(MAKER_SOCKET))?;
    let mut stream = match first {
        Ok(stream) => stream,
        Err(code) => return Ok(StartOutcome::End(code)),
    };
    drop(maker);
    let mut told = config::read_config(&mut stream)?;
    told.guest.env = completed(&own_variables());
    serve_as_told((stream, listener, ACCESS), told, begun, stop)
}

fn listen(socket: &Path) -> io::Result<UnixListener> {
    let listener = UnixListener::bind(socket)?;
    listener.set_nonblocking(true)?;
    Ok(listener)
}

/// Returns the variables of the container, which only its own programs know.
fn own_variables() -> Vec<(String, String)> {
    let texts = std::env::vars_os()
        .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)));
    texts.filter(|(name, _)| !OF_A_SHELL.contains(&name.as_str())).collect()
}
