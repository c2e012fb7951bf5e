//! The contract of a guest in a container of another engine (Docker, say), beyond the frames: its
//! location, the streams of its maker and of later clients, and the meaning of its exit code.
//!
//! The container's program is `<GUEST_DIR>/eyot-guest init`. It becomes a user of its own, listens
//! in [`RUN_DIR`], and waits for its first client, which sends a [`ContainerConfig`]. A stream to
//! it is `eyot-guest relay`, run in the container by its engine. The first byte on its standard
//! output says what it is connected to ([`RELAY_TO_MAKER`], [`RELAY_TO_GUEST`]). Everything after
//! that is the protocol.

use minicbor::{Decode, Encode};

use super::{GuestConfig, Identity, LOG_BYTES};

/// The directory in the container with the guest's program. It must be a mount, and read-only:
/// otherwise a program from inside could take its place and run with the guest's privileges.
pub const GUEST_DIR: &str = "/.eyot-guest";
/// The program in [`GUEST_DIR`].
pub const GUEST_FILE: &str = "eyot-guest";
/// The directory in the container with the guest's sockets: an empty tmpfs, and for the same reason
/// a mount.
pub const RUN_DIR: &str = "/.eyot-run";
/// The argument that makes the program a container's PID 1.
pub const INIT: &str = "init";
/// The argument that makes the program a stream to the guest.
pub const RELAY: &str = "relay";

/// The user and the group of the guest in a container. No other process may have them.
pub const CONTAINER_GUEST_ID: u32 = 65_533;
/// The capabilities that the guest in a container needs for itself, as a mask: `CHOWN`,
/// `DAC_OVERRIDE`, `FOWNER`, `KILL`, `SETGID`, `SETUID`, `SETPCAP`. Commands keep none of them
/// unless [`ContainerConfig::capabilities`] says so.
pub const CONTAINER_GUEST_CAPABILITIES: u64 = 1 | 1 << 1 | 1 << 3 | 1 << 5 | 1 << 6 | 1 << 7 | 1 << 8;

/// The relay's first byte: the guest waits for its configuration, the length of which (four bytes,
/// little endian) and itself come first.
pub const RELAY_TO_MAKER: u8 = b'm';
/// The relay's first byte: the guest has its configuration.
pub const RELAY_TO_GUEST: u8 = b'g';

/// The time that a guest waits for its configuration, in milliseconds.
pub const CONFIG_PATIENCE_MS: u64 = 120_000;

/// The guest ended because it was asked to: its sandbox sleeps.
pub const EXIT_ASKED: u8 = 0;
/// The guest failed.
pub const EXIT_FAILED: u8 = 1;
/// The time to live is over.
pub const EXIT_TTL: u8 = 70;
/// The sandbox was idle for too long.
pub const EXIT_IDLE: u8 = 71;
/// The sandbox was never complete: its maker was gone, or asked for something impossible.
pub const EXIT_INCOMPLETE: u8 = 72;

/// No client came to configure the guest.
pub const EXIT_UNCONFIGURED: u8 = 73;

/// The node, or somebody on it, has stopped a Pod's container.
pub const EXIT_STOPPED: u8 = 74;

/// The configuration that a guest in a container gets when it is made.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub struct ContainerConfig {
    /// As for any guest; its users are not looked at, because the guest finds them in the
    /// container.
    #[n(0)]
    pub guest: GuestConfig,
    /// The user who runs commands: `name`, `uid`, `name:group` or `uid:gid`, as images have it.
    #[n(1)]
    pub user: String,
    /// The capabilities that commands of root keep, as a mask.
    #[n(2)]
    pub capabilities: u64,
    /// The home directory of the user who runs commands, if it is not the one in `passwd`.
    #[n(3)]
    pub home: Option<String>,
    /// It is not the sandbox's first guest: if its maker is gone before it is adopted, the sandbox
    /// sleeps.
    #[n(5)]
    pub is_woken: bool,
    /// Mount points that get their owner and mode before they are used.
    #[n(4)]
    pub directories: Vec<PreparedDirectory>,
}

impl ContainerConfig {
    /// Returns the configuration of a guest that has the rights of the commands' own user and no more: it finds out who that is,
    /// changes to no other, and limits nothing.
    pub fn of_own_user((client_nonce, guest_nonce): ([u8; 16], [u8; 16])) -> Self {
        let user = Identity { name: String::new(), uid: 0, gid: 0, home: String::new(), capabilities: 0 };
        let guest = GuestConfig {
            client_nonce,
            guest_nonce,
            ttl_ms: None,
            idle_timeout_ms: None,
            user,
            users: Vec::new(),
            env: Vec::new(),
            switch_user: false,
            log_bytes: LOG_BYTES,
            max_processes: None,
            forbid_setuid: false,
            memory_events_fd: None,
            last_process_id: 0,
            later_users: None,
            late_files: Vec::new(),
        };
        let (user, directories) = (String::new(), Vec::new());
        Self { guest, user, capabilities: 0, home: None, is_woken: false, directories }
    }
}

/// A mount point that the guest prepares.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub struct PreparedDirectory {
    /// The path.
    #[n(0)]
    pub path: String,
    /// The directory belongs to the user who runs commands. Otherwise its owner does not change.
    #[n(1)]
    pub of_user: bool,
    /// The permissions, if they are to be changed.
    #[n(2)]
    pub mode: Option<u32>,
}
