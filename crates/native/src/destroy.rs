//! Destroying sandboxes, and sweeping up after processes that died: a destroyed sandbox is first moved to the trash
//! (one atomic rename that only one process wins, and that frees its name), then its guest is killed, then its files
//! go. Whoever dies in between leaves the rest to the next sweep.

use std::io;
use std::os::fd::OwnedFd;
use std::path::Path;

use eyot::{Error, ErrorKind, Result, SandboxId, WorkspaceSpec};
use eyot_image::remove_tree;

use crate::cgroup;
use crate::condition::Condition;
use crate::ready::Ready;
use crate::record::{GuestProcess, Lock, Record, kill, wait_until_gone};
use crate::sleep::settle_if_free;
use crate::state::StateDir;

/// A sandbox's guest, in the hands of whoever made it.
pub(crate) struct Guest {
    pub process: GuestProcess,
    pub pidfd: OwnedFd,
}

/// Undoes a create: destroys the sandbox, but for a persistent workspace that was there before.
pub(crate) fn abandon(state: &StateDir, id: &SandboxId, guest: Option<&Guest>) -> Result<bool> {
    Record::keep_found_workspace(&state.sandbox(id)).map_err(failed)?;
    destroy(state, id, guest)
}

fn failed(error: io::Error) -> Error {
    Error::new(ErrorKind::Internal, crate::sentence(&error)).with_source(error)
}

/// Destroys a sandbox. `false`: it had been destroyed before. An error is the reason alone.
pub(crate) fn destroy(state: &StateDir, id: &SandboxId, guest: Option<&Guest>) -> Result<bool> {
    match std::fs::rename(state.sandbox(id), state.trash(id)) {
        Ok(()) => {}
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(false),
        Err(error) => return Err(failed(error)),
    }
    empty_trash(state, id, guest).map_err(failed)?;
    Ok(true)
}

/// Kills what still lives of a destroyed sandbox and removes its files. Two processes may do so at once.
fn empty_trash(state: &StateDir, id: &SandboxId, guest: Option<&Guest>) -> io::Result<()> {
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
    let ready = Ready::read(&directory)?;
    let recorded = match guest {
        Some(guest) if ready.is_none_or(|ready| ready.guest == Some(guest.process)) => None,
        // Unknown to the caller; or it was woken since, and the guest that the caller knows is gone.
        _ => recorded_guest(ready, record.as_ref())?,
    };
    if let Some(pidfd) = recorded.as_ref().or(guest.map(|guest| &guest.pidfd)) {
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
pub(crate) fn recorded_guest(ready: Option<Ready>, record: Option<&Record>) -> io::Result<Option<OwnedFd>> {
    // Without a record, number and start time alone tell: a later boot's process of the same would be a rare chance.
    let other_boot =
        record.is_some_and(|record| crate::record::boot_id().is_ok_and(|boot| boot != record.boot_id));
    match ready.and_then(|ready| ready.guest).filter(|_| !other_boot) {
        Some(process) => process.open(),
        None => Ok(None),
    }
}

/// Clears away what nobody owns: sandboxes that were never completed, whose deadline fired, or that were destroyed
/// only halfway; and what is left of the guests of sandboxes that sleep.
pub(crate) fn sweep(state: &StateDir) -> io::Result<()> {
    crate::image::sweep(&state.layers())?;
    for id in state.ids("trash")? {
        log_failure(&id, empty_trash(state, &id, None));
    }
    for id in state.ids("sandboxes")? {
        log_failure(&id, clear_away(state, &id));
    }
    state.drop_stale_claims()
}

fn log_failure(id: &SandboxId, result: io::Result<()>) {
    if let Err(error) = result {
        tracing::warn!(%error, sandbox = %id, "sweep; the next sweep tries again");
    }
}

/// Removes what is left of a sandbox that is nobody's any more.
fn clear_away(state: &StateDir, id: &SandboxId) -> io::Result<()> {
    let directory = state.sandbox(id);
    let removed = match Condition::of(&directory) {
        (_, Condition::Making) if was_abandoned(state, &directory)? => abandon(state, id, None),
        (_, Condition::Expired) => destroy(state, id, None),
        (Some(record), Condition::Sleeping) => return settle_if_free(&directory, &record),
        _ => return Ok(()),
    };
    removed.map(drop).map_err(io::Error::other)
}

/// Whether a sandbox that is not complete has nobody any more who makes it: its lock says so.
fn was_abandoned(state: &StateDir, directory: &Path) -> io::Result<bool> {
    let lock = match Lock::take_abandoned(state, directory) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(false),
        other => other?,
    };
    // It may have been completed before the lock was free.
    Ok(lock.is_some() && Ready::read(directory)?.is_none())
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
