//! The guest's first steps, before it serves a client. Each step that protects it must succeed.

use std::fs::{File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixListener;

use super::access::AccessRule;
use super::group_memory::GroupMemory;
use super::guest::GuestSetup;
use super::memory_events::MemoryEvents;
use super::sys::{self, PerUser};
use crate::protocol::{CONFIG_FD, GuestConfig, LISTENER_FD, MAX_MESSAGE_BYTES, STREAM_FD, decode};

/// Limits on resources that the kernel counts per user, for the guest and its commands. Each counts
/// with all others of the user. By default the kernel gives a user four times as many bytes.
const PER_USER: [(PerUser, u64); 3] = [
    (PerUser::PendingSignals, 1024),
    (PerUser::QueueBytes, 819_200 / 4),
    (PerUser::LockedBytes, (8 << 20) / 4),
];

/// Protects this process and takes over what it was given.
pub fn start_up() -> io::Result<GuestSetup> {
    let (children, open_files) = protect()?;
    let stream = sys::take_inherited(STREAM_FD)?;
    let listener = take_listener()?;
    let config = read_config()?;
    config.late_files.iter().try_for_each(|(path, text)| replace_text(path, text))?;
    let memory_events = MemoryEvents::take(config.memory_events_fd)?;
    let access = if std::process::id() == 1 { AccessRule::Outsiders } else { AccessRule::Open };
    // Its group's files are the maker's to read, from outside.
    let group_memory = GroupMemory::default();
    Ok(GuestSetup {
        stream,
        listener,
        config,
        children,
        open_files,
        memory_events,
        group_memory,
        access,
        stop: None,
        // Its maker set them up, and knows.
        protections: None,
    })
}

/// Protects the guest: the first step of every guest. Returns the descriptor that becomes readable
/// when a child has ended, and the limit of open files for commands.
pub fn protect() -> io::Result<(OwnedFd, [u64; 2])> {
    sys::forbid_dumping()?;
    sys::keep_memory_small();
    sys::set_umask();
    std::env::set_current_dir("/")?;
    let children = sys::take_signals()?;
    if std::process::id() != 1 {
        sys::become_subreaper()?;
    }
    let open_files = sys::raise_open_files()?;
    PER_USER.into_iter().try_for_each(|(what, most)| sys::limit_per_user(what, most))?;
    sys::limit_core_files()?;
    Ok((children, open_files))
}

fn take_listener() -> io::Result<Option<UnixListener>> {
    // Without a listener there will be no later connections, and that is fine.
    let Ok(fd) = sys::take_inherited(LISTENER_FD) else {
        return Ok(None);
    };
    let listener = UnixListener::from(fd);
    listener.set_nonblocking(true)?;
    Ok(Some(listener))
}

/// Replaces the text of a file that exists.
fn replace_text(path: &str, text: &str) -> io::Result<()> {
    OpenOptions::new().write(true).truncate(true).open(path)?.write_all(text.as_bytes())
}

fn read_config() -> io::Result<GuestConfig> {
    let mut bytes = Vec::new();
    let file = File::from(sys::take_inherited(CONFIG_FD)?);
    file.take(MAX_MESSAGE_BYTES as u64).read_to_end(&mut bytes)?;
    decode(&bytes).map_err(|reason| io::Error::new(io::ErrorKind::InvalidData, reason))
}
