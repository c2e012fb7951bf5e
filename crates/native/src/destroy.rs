//! Destroying sandboxes, and sweeping up after processes that died: a destroyed sandbox is first moved to the trash
//! (one atomic rename that only one process wins, and that frees its name), then its guest is killed, then its files
//! go. Whoever dies in between leaves the rest to the next sweep.

use std::io;
use std::os::fd::OwnedFd;
use std::path::Path;

use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType};

use eyot::{Error, ErrorKind, Result, SandboxId, WorkspaceSpec};

use crate::cgroup;
use crate::record::{GuestProcess, Lock, Record, kill, socket_path, wait_until_gone};
use crate::remove::remove_tree;
use crate::state::StateDir;

/// Undoes a create: destroys the sandbox, but for a persistent workspace that was there before.
pub(crate) fn abandon(state: &StateDir, id: &SandboxId, guest: Option<&OwnedFd>) -> Result<bool> {
    Record::keep_found_workspace(&state.sandbox(id)).map_err(failed)?;
    destroy(state, id, guest)
}

fn failed(error: io::Error) -> Error {
    Error::new(ErrorKind::Internal, crate::sentence(&error)).with_source(error)
}

/// Destroys a sandbox. `false`: it had been destroyed before. An error is the reason alone.
pub(crate) fn destroy(state: &StateDir, id: &SandboxId, guest: Option<&OwnedFd>) -> Result<bool> {
    match std::fs::rename(state.sandbox(id), state.trash(id)) {
        Ok(()) => {}
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(false),
        Err(error) => return Err(failed(error)),
    }
    empty_trash(state, id, guest).map_err(failed)?;
    Ok(true)
}

/// Kills what still lives of a destroyed sandbox and removes its files. Two processes may do so at once.
fn empty_trash(state: &StateDir, id: &SandboxId, guest: Option<&OwnedFd>) -> io::Result<()> {
    let directory = state.trash(id);
    let record = Record::read(&directory).ok();
    if let Some(record) = &record {
        state.release_name(&record.info.name, id)?;
    }
    let groups = match &record {
        Some(record) => record.groups.clone(),
        None => cgroup::groups_of(&state.cgroups(), id.as_str())?,
    };
    cgroup::let_die(&groups)?;
    let recorded = match guest {
        Some(_) => None,
        None => recorded_guest(&directory, record.as_ref())?,
    };
    if let Some(pidfd) = guest.or(recorded.as_ref()) {
        kill(pidfd)?;
        remove_while_it_dies(&directory);
        wait_until_gone(pidfd)?;
    }
    cgroup::remove(&groups)?;
    let workspace = record.as_ref().map(|record| &record.info.spec.workspace);
    if let Some(WorkspaceSpec::Persistent { id, destroy_on_session_destroy: true }) = workspace
        && !is_used(state, id)?
    {
        remove_tree(&state.workspace(id))?;
    }
    remove_tree(&directory)?;
    match record.and_then(|record| record.block) {
        Some(block) => state.release_block(block, id),
        None => Ok(()),
    }
}

/// Whether another sandbox has that persistent workspace: then it stays. One whose record can't be read, or is not
/// written yet because it is being made, may have it.
fn is_used(state: &StateDir, workspace: &str) -> io::Result<bool> {
    let uses = |id: &SandboxId| match Record::read(&state.sandbox(id)) {
        Ok(record) => match &record.info.spec.workspace {
            WorkspaceSpec::Persistent { id, .. } => id == workspace,
            WorkspaceSpec::Ephemeral => false,
        },
        Err(_) => state.sandbox(id).exists(),
    };
    Ok(state.ids("sandboxes")?.iter().any(uses))
}

/// The end of a guest is a millisecond of the kernel's work on another processor; the files can go meanwhile. Whatever
/// is left then, because a process wrote once more before it died, goes afterwards, where a failure counts; and so does
/// the record, which tells of what else there is to remove.
fn remove_while_it_dies(directory: &Path) {
    for name in ["upper", "work"] {
        if let Err(error) = remove_tree(&directory.join(name)) {
            tracing::debug!(%error, "remove the files of a sandbox that dies; tried again when it is dead");
        }
    }
}

/// The guest that the directory tells of. One that was never adopted ends by itself, with its maker's stream.
fn recorded_guest(directory: &Path, record: Option<&Record>) -> io::Result<Option<OwnedFd>> {
    // Without a record, number and start time alone tell: a later boot's process of the same would be a rare chance.
    let other_boot =
        record.is_some_and(|record| crate::record::boot_id().is_ok_and(|boot| boot != record.boot_id));
    match GuestProcess::read(directory)?.filter(|_| !other_boot) {
        Some(process) => process.open(),
        None => Ok(None),
    }
}

/// Whether a sandbox's guest is there: somebody listens on its socket. A guest whose queue is full is there too.
pub(crate) fn is_alive(directory: &Path) -> bool {
    try_connect(directory).is_ok_and(|tried| matches!(tried, Ok(()) | Err(Errno::AGAIN)))
}

fn try_connect(directory: &Path) -> io::Result<std::result::Result<(), Errno>> {
    let (_open, path) = socket_path(directory)?;
    let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
    let socket = rustix::net::socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)?;
    Ok(rustix::net::connect(&socket, &SocketAddrUnix::new(path)?))
}

/// Clears away what nobody owns: sandboxes that were never completed, whose deadline fired, or that were destroyed
/// only halfway.
pub(crate) fn sweep(state: &StateDir) -> io::Result<()> {
    crate::image::sweep(&state.layers())?;
    for id in state.ids("trash")? {
        log_failure(&id, empty_trash(state, &id, None));
    }
    for id in state.ids("sandboxes")? {
        let removed = match leftover(state, &state.sandbox(&id)) {
            None => continue,
            Some(Leftover::Unfinished) => abandon(state, &id, None),
            Some(Leftover::Expired) => destroy(state, &id, None),
        };
        log_failure(&id, removed.map(drop).map_err(io::Error::other));
    }
    state.drop_stale_claims()
}

fn log_failure(id: &SandboxId, result: io::Result<()>) {
    if let Err(error) = result {
        tracing::warn!(%error, sandbox = %id, "sweep; the next sweep tries again");
    }
}

/// Why a sandbox's directory is nobody's.
enum Leftover {
    /// Its maker died before it was complete.
    Unfinished,
    /// Its deadline ended it.
    Expired,
}

/// Whether a sandbox's directory is left over: complete, but ended by its deadline; or incomplete, and its lock says
/// that nobody is making it.
fn leftover(state: &StateDir, directory: &Path) -> Option<Leftover> {
    if is_complete(directory)? {
        let expired = Record::read(directory).is_ok_and(|record| record.may_have_expired());
        return (expired && !is_alive(directory)).then_some(Leftover::Expired);
    }
    let _lock = Lock::take_abandoned(state, directory).ok()??;
    // It may have been completed before the lock was free.
    (!is_complete(directory)?).then_some(Leftover::Unfinished)
}

fn is_complete(directory: &Path) -> Option<bool> {
    Some(GuestProcess::read(directory).ok()?.is_some())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_workspace_stays_while_a_sandbox_without_a_readable_record_may_have_it() {
        let dir = tempfile::tempdir().unwrap();
        let state = StateDir::open(&dir.path().join("state"), None).unwrap();
        assert!(!is_used(&state, "shared").unwrap());
        let being_made = state.sandbox(&SandboxId::generate());
        std::fs::create_dir(&being_made).unwrap();
        assert!(is_used(&state, "shared").unwrap());
        std::fs::write(being_made.join("sandbox.json"), "half a rec").unwrap();
        assert!(is_used(&state, "shared").unwrap());
    }
}
