//! The first steps of a Pod's guest. It has no privileges: it runs as the user who runs commands, and
//! changes to no other. So a command is of the guest's own user, and could do to it what one user's
//! processes may do to one another; as PID 1 that can't be dumped, the guest can be neither
//! signalled with effect, nor traced, nor read by it.

use std::io;
use std::net::{Ipv4Addr, Ipv6Addr, TcpListener};
use std::os::fd::OwnedFd;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixListener, UnixStream};

use ed25519_dalek::VerifyingKey;

use super::gate::PodGate;
use super::start_up::{StartOutcome, guest_setup};
use super::{config, protections, sys, users};
use crate::environment::put_own_programs_first;
use crate::program::access::AccessRule;
use crate::program::start_up::protect;
use crate::protocol::container::{ContainerConfig, EXIT_INCOMPLETE};
use crate::protocol::pod::{GUEST_PORT, KEY_BYTES, KEY_VARIABLE, UID_VARIABLE};
use crate::protocol::{GuestConfig, Protections};

/// The abstract name of the guest's own socket, which the gate alone may connect to.
const SOCKET: &str = "eyot-guest";
const ACCESS: AccessRule = AccessRule::Itself;

/// Protects this process, opens the gate, waits for the first client and does what that says.
pub fn start_up() -> io::Result<StartOutcome> {
    let begun = protect()?;
    let stop = sys::termination()?;
    let key = public_key(&variable(KEY_VARIABLE)?)?;
    let address = SocketAddr::from_abstract_name(SOCKET)?;
    let listener = UnixListener::bind_addr(&address)?;
    listener.set_nonblocking(true)?;
    PodGate::new(key, variable(UID_VARIABLE)?, address).open(listen()?)?;
    let mut stream = match config::first_client(&listener, &stop, ACCESS)? {
        Ok(stream) => stream,
        Err(code) => return Ok(StartOutcome::End(code)),
    };
    let told = config::read_config(&mut stream)?;
    serve_as_told((stream, listener, ACCESS), told, begun, stop)
}

/// Serves with what the first client has told, or refuses it.
pub fn serve_as_told(
    (stream, listener, access): (UnixStream, UnixListener, AccessRule),
    told: ContainerConfig,
    begun: (OwnedFd, [u64; 2]),
    stop: OwnedFd,
) -> io::Result<StartOutcome> {
    match prepare(told) {
        Ok((config, protections)) => {
            let setup = guest_setup((stream, listener, access), config, begun, stop, protections);
            Ok(StartOutcome::Serve { inherited: Box::new(setup), is_woken: false })
        }
        Err((kind, reason)) => {
            config::refuse(stream, kind, &reason)?;
            Ok(StartOutcome::End(EXIT_INCOMPLETE))
        }
    }
}

/// Completes the configuration with facts that only the Pod, or another container, knows, and reads its protections. A
/// failure is its kind and the reason.
fn prepare(told: ContainerConfig) -> Result<(GuestConfig, Protections), (&'static str, String)> {
    let ContainerConfig { mut guest, home, .. } = told;
    let (uid, gid) = (rustix::process::geteuid().as_raw(), rustix::process::getegid().as_raw());
    let known = users::read(0);
    let mut user = users::find(&known, &format!("{uid}:{gid}")).map_err(|reason| ("invalid", reason))?;
    user.capabilities = 0;
    user.home = home.unwrap_or(user.home);
    guest.users = known.known().to_vec();
    guest.later_users = Some(users::ids());
    put_own_programs_first(&mut guest.env, &user.home);
    guest.user = user;
    guest.switch_user = false;
    let found = protections::look();
    let found = found.map_err(|error| ("setup", format!("look at what protects the sandbox: {error}")))?;
    Ok((guest, found))
}

/// Listens on the Pod's port, on every address of the Pod.
fn listen() -> io::Result<TcpListener> {
    // A kernel without IPv6 has no such address.
    TcpListener::bind((Ipv6Addr::UNSPECIFIED, GUEST_PORT))
        .or_else(|_| TcpListener::bind((Ipv4Addr::UNSPECIFIED, GUEST_PORT)))
}

fn variable(name: &str) -> io::Result<String> {
    let invalid = |_| io::Error::new(io::ErrorKind::InvalidInput, format!("the variable {name} is missing"));
    std::env::var(name).map_err(invalid)
}

fn public_key(text: &str) -> io::Result<VerifyingKey> {
    let invalid = || io::Error::new(io::ErrorKind::InvalidInput, format!("{KEY_VARIABLE} is not a key"));
    let digit = |index: usize| text.get(index * 2..index * 2 + 2);
    let mut bytes = [0; KEY_BYTES];
    for (index, byte) in bytes.iter_mut().enumerate() {
        let pair = digit(index).ok_or_else(invalid)?;
        *byte = u8::from_str_radix(pair, 16).map_err(|_| invalid())?;
    }
    if text.len() != KEY_BYTES * 2 {
        return Err(invalid());
    }
    VerifyingKey::from_bytes(&bytes).map_err(|_| invalid())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_sixty_four_digits_that_are_one() {
        let key = ed25519_dalek::SigningKey::from_bytes(&[3; 32]).verifying_key();
        let text: String = key.as_bytes().iter().map(|byte| format!("{byte:02x}")).collect();
        assert_eq!(public_key(&text).unwrap(), key);
        for wrong in ["", "ab", &text[..62], &format!("{text}00"), &format!("zz{}", &text[2..])] {
            assert!(public_key(wrong).is_err(), "{wrong}");
        }
    }
}
