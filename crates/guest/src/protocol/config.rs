//! The guest's configuration, and the users that it knows.

use minicbor::{Decode, Encode};

/// The configuration that a guest gets when it is made.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub struct GuestConfig {
    /// The nonce that a client must present.
    #[cbor(n(0), with = "minicbor::bytes")]
    pub client_nonce: [u8; 16],
    /// The nonce that the guest presents.
    #[cbor(n(1), with = "minicbor::bytes")]
    pub guest_nonce: [u8; 16],
    /// The guest ends the sandbox this many milliseconds after its start.
    #[n(2)]
    pub ttl_ms: Option<u64>,
    /// The guest ends the sandbox after this many milliseconds without activity.
    #[n(3)]
    pub idle_timeout_ms: Option<u64>,
    /// The user who runs commands and owns files unless a call names another.
    #[n(4)]
    pub user: Identity,
    /// Other users that a call may name. Empty where the guest can't change users.
    #[n(5)]
    pub users: Vec<Identity>,
    /// Every command's basic variables (`PATH`, `LANG`, …). `HOME`, `USER`, `LOGNAME` come from the
    /// identity.
    #[n(6)]
    pub env: Vec<(String, String)>,
    /// The guest may and must change to the user for every command and file call (it runs as
    /// another one itself).
    #[n(7)]
    pub switch_user: bool,
    /// The most bytes of a started process's log that are kept, per process.
    #[n(8)]
    pub log_bytes: u64,
    /// `RLIMIT_NPROC` of every command, if it is to be set.
    #[n(9)]
    pub max_processes: Option<u64>,
    /// No command may give a file the setuid or setgid bit: some of what is written stays on the
    /// host.
    #[cbor(n(12), default)]
    pub forbid_setuid: bool,
    /// The descriptor of a file with a line `oom_kill <number>`: how many processes of the sandbox
    /// were killed because its memory was used up (`memory.events`, or `memory.oom_control` of
    /// cgroup v1).
    #[n(10)]
    pub memory_events_fd: Option<i32>,
    /// The numbers of started processes begin behind this one: those of earlier guests of the
    /// sandbox are not used again.
    #[cbor(n(13), default)]
    pub last_process_id: u32,
    /// The ids of users who appear later. A user who is not in `users` is looked up in the
    /// sandbox's own files when a call names it, and may have these ids. With `None` there are no
    /// such users.
    #[cbor(n(14), default)]
    pub later_users: Option<Ids>,
    /// The texts of files that exist, by path. The guest replaces them before it serves: what was
    /// made before the sandbox had a name has another in them.
    #[cbor(n(15), default)]
    pub late_files: Vec<(String, String)>,
}

/// The ids that users may have in a sandbox.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub struct Ids {
    /// The first user id that is too large.
    #[n(0)]
    pub users_below: u32,
    /// The first group id that is too large.
    #[n(1)]
    pub groups_below: u32,
    /// An id that no user or group may have: the guest's own.
    #[n(2)]
    pub reserved: Option<u32>,
    /// The home directory of a user who is named by number and has no line in `passwd`.
    #[n(3)]
    pub home_of_numbers: String,
}

/// A user inside the sandbox.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub struct Identity {
    /// The name.
    #[n(0)]
    pub name: String,
    /// The user id.
    #[n(1)]
    pub uid: u32,
    /// The group id.
    #[n(2)]
    pub gid: u32,
    /// The home directory.
    #[n(3)]
    pub home: String,
    /// The capabilities that commands of this user keep, as a mask; 0 for every user but root.
    #[n(4)]
    pub capabilities: u64,
}
