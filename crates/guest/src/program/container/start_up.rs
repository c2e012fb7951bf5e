//! The first steps of a container's guest. Each that protects it must succeed.

use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::net::{UnixListener, UnixStream};

use super::{config, directories, identity, protections, sys, users};
use crate::environment::put_own_programs_first;
use crate::program::access::AccessRule;
use crate::program::group_memory::GroupMemory;
use crate::program::guest::GuestSetup;
use crate::program::memory_events::MemoryEvents;
use crate::program::start_up::protect;
use crate::protocol::Protections;
use crate::protocol::container::{CONTAINER_GUEST_ID, ContainerConfig, EXIT_ASKED, EXIT_INCOMPLETE, RUN_DIR};

/// The socket for the first client, which is gone once there was one.
pub const MAKER_SOCKET: &str = "maker.sock";
/// The rule for both sockets.
const ACCESS: AccessRule = AccessRule::User(CONTAINER_GUEST_ID);
/// The socket for later clients.
pub const GUEST_SOCKET: &str = "guest.sock";

/// The result of the start.
pub enum StartOutcome {
    /// As a guest. `is_woken`: not the first one of its sandbox.
    Serve { inherited: Box<GuestSetup>, is_woken: bool },
    /// Not at all.
    End(u8),
}

/// Protects this process, waits for its first client and does what that says.
pub fn start_up() -> io::Result<StartOutcome> {
    let (children, open_files) = protect()?;
    let stop = sys::termination()?;
    identity::become_guest()?;
    // First: where there is the other and not this one, a relay takes it that there was one.
    let maker = listen(MAKER_SOCKET)?;
    // Clients that come early wait in its queue.
    let listener = listen(GUEST_SOCKET)?;
    let mut stream = match config::first_client(&maker, &stop, ACCESS)? {
        Ok(stream) => stream,
        Err(code) => return Ok(StartOutcome::End(code)),
    };
    std::fs::remove_file(format!("{RUN_DIR}/{MAKER_SOCKET}"))?;
    drop(maker);
    let told = config::read_config(&mut stream)?;
    let is_woken = told.is_woken;
    let (config, protections) = match prepare_and_inspect(told) {
        Ok(begun) => begun,
        Err((kind, reason)) => {
            config::refuse(stream, kind, &reason)?;
            return Ok(StartOutcome::End(if is_woken { EXIT_ASKED } else { EXIT_INCOMPLETE }));
        }
    };
    let inherited =
        Box::new(guest_setup((stream, listener, ACCESS), config, (children, open_files), stop, protections));
    Ok(StartOutcome::Serve { inherited, is_woken })
}

/// Joins the parts of a guest: its first stream and the listener with its rule, its configuration,
/// and what it has found.
pub fn guest_setup(
    (stream, listener, access): (UnixStream, UnixListener, AccessRule),
    config: crate::protocol::GuestConfig,
    (children, open_files): (OwnedFd, [u64; 2]),
    stop: OwnedFd,
    protections: Protections,
) -> GuestSetup {
    GuestSetup {
        stream: stream.into(),
        listener: Some(listener),
        config,
        children,
        open_files,
        memory_events: MemoryEvents::find(),
        group_memory: GroupMemory::find(),
        access,
        stop: Some(stop),
        protections: Some(protections),
    }
}

/// Prepares the container and reads its protections. Neither can be left out. A failure is its kind
/// and the reason.
fn prepare_and_inspect(
    told: ContainerConfig,
) -> Result<(crate::protocol::GuestConfig, Protections), (&'static str, String)> {
    let config = prepare_container(told)?;
    let looked = protections::look();
    let protections =
        looked.map_err(|error| ("setup", format!("look at what protects the sandbox: {error}")))?;
    Ok((config, protections))
}

/// Prepares the container as the configuration says, and completes the configuration with facts
/// that only the container knows. A failure is its kind and the reason.
fn prepare_container(told: ContainerConfig) -> Result<crate::protocol::GuestConfig, (&'static str, String)> {
    let ContainerConfig { mut guest, user, capabilities, home, directories, is_woken } = told;
    let known = users::read(capabilities);
    let mut user = users::find(&known, &user).map_err(|reason| ("invalid", reason))?;
    let has_home = home.is_some();
    if let Some(home) = home {
        user.home = home;
    }
    let internal = |error: io::Error| ("internal", error.to_string());
    directories::prepare(&directories, &user).map_err(internal)?;
    if !is_woken {
        directories::make_home(&user, has_home).map_err(internal)?;
    }
    sys::bound_capabilities(capabilities).map_err(internal)?;
    guest.users = known.known().to_vec();
    guest.later_users = Some(users::ids());
    put_own_programs_first(&mut guest.env, &user.home);
    guest.user = user;
    guest.switch_user = true;
    Ok(guest)
}

fn listen(name: &str) -> io::Result<UnixListener> {
    let listener = UnixListener::bind(format!("{RUN_DIR}/{name}"))?;
    listener.set_nonblocking(true)?;
    Ok(listener)
}
