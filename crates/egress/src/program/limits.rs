//! Limits on what one sandbox may make its program use. Connections beyond them wait in the
//! listeners' queues, inside the sandbox.

use std::io;
use std::time::Duration;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// The connections that are served at once, if the limit of open files lets them.
pub(super) const MAX_CONNECTIONS: u64 = 1024;
/// The name lookups that are under way at once.
pub(super) const MAX_LOOKUPS: usize = 64;
/// The clients on the control socket at once.
pub(super) const MAX_CLIENTS: usize = 64;
/// The time that a client may take to say what it wants.
pub(super) const PATIENCE: Duration = Duration::from_secs(30);
/// The time that a lookup may take.
pub(super) const LOOKUP: Duration = Duration::from_secs(15);
/// The time that a connection to one address may take.
pub(super) const CONNECT: Duration = Duration::from_secs(20);
/// The number of a name's addresses that are tried.
pub(super) const ADDRESSES: usize = 6;
/// The buffer for each direction of a tunnel, in bytes.
pub(super) const TUNNEL_BUFFER: usize = 16 * 1024;
/// The most bytes of a request's line and headers.
pub(super) const HEAD_BYTES: usize = 64 * 1024;

/// Descriptors for everything but connections.
const OTHER_FILES: u64 = 128 + MAX_LOOKUPS as u64 + MAX_CLIENTS as u64;
/// The memory beyond which the process ends, and with it the sandbox's network. It is far more than
/// all connections need.
const MEMORY_BYTES: u64 = 512 << 20;

/// Raises the limit of open files to the number needed, and bounds memory.
pub(super) fn set() -> io::Result<()> {
    let files = getrlimit(Resource::Nofile);
    let wanted = 2 * MAX_CONNECTIONS + OTHER_FILES;
    let current = files.maximum.map_or(wanted, |most| most.min(wanted));
    setrlimit(Resource::Nofile, Rlimit { current: Some(current), maximum: files.maximum })?;
    let memory = Some(MEMORY_BYTES);
    let most = getrlimit(Resource::Data).maximum;
    let memory = Rlimit { current: most.map_or(memory, |most| Some(most.min(MEMORY_BYTES))), maximum: most };
    Ok(setrlimit(Resource::Data, memory)?)
}

/// Returns how many connections are served at once: each takes two descriptors.
pub(super) fn connections() -> usize {
    let files = getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX);
    let fitting = files.saturating_sub(OTHER_FILES) / 2;
    usize::try_from(fitting.clamp(16, MAX_CONNECTIONS)).unwrap_or(16)
}
