//! Destroying sandboxes, and sweeping up after killed processes. A destroyed sandbox is first moved
//! to the trash: one atomic rename that only one process wins, and that frees its name. Then its
//! guest is killed, then its files are removed. The sandbox's lock is held throughout, so no
//! process makes it, puts it to sleep or wakes it meanwhile. If this process is killed in between,
//! the next sweep does the rest. All of this works without a readable record.

use std::io;
use std::os::fd::OwnedFd;
use std::path::Path;

use eyot::internal::system_reason;
use eyot::{Error, ErrorKind, Result, SandboxId, WorkspaceSpec};
use eyot_image::remove_tree;

use crate::cgroup;
use crate::condition::{Condition, ConditionReader};
use crate::cow_mount::COW;
use crate::folder_change;
use crate::host_ranges::HostRanges;
use crate::in_parts::in_parts;
use crate::kept_workspaces::remove_unless_used;
use crate::ready::ReadyMark;
use crate::record::{GuestProcess, Lock, Record, kill, wait_until_gone};
use crate::sleep::settle_if_free;
use crate::state::{Claims, StateDir};

/// A sandbox's guest, as the process knows it that started it.
pub(crate) struct GuestHandle {
    pub process: GuestProcess,
    pub pidfd: OwnedFd,
}

/// Undoes a create: destroys the sandbox, but keeps a persistent workspace that existed before.
pub(crate) fn abandon(state: &StateDir, id: &SandboxId, guest: Option<&GuestHandle>) -> Result<bool> {
    let Some(lock) = locked(state, id).map_err(failed)? else { return Ok(false) };
    undo(state, id, guest, &lock).map_err(failed)
}

/// Destroys a sandbox after waiting for its lock. Returns `false` if it was destroyed before. The
/// error has only the reason; callers add the operation.
pub(crate) fn destroy(state: &StateDir, id: &SandboxId, guest: Option<&GuestHandle>) -> Result<bool> {
    let Some(lock) = locked(state, id).map_err(failed)? else { return Ok(false) };
    discard(state, id, guest, &lock).map_err(failed)
}

/// Makes the error of a destroy that failed. The next try or the next sweep removes what is left.
fn failed(error: io::Error) -> Error {
    use io::ErrorKind::{DirectoryNotEmpty, ResourceBusy, TimedOut};
    let kind = match error.kind() {
        DirectoryNotEmpty | ResourceBusy | TimedOut => ErrorKind::Unavailable,
        _ => ErrorKind::Internal,
    };
    Error::new(kind, system_reason(&error)).with_source(error)
}

/// Waits for the lock of a sandbox; `None` if there is no such sandbox.
fn locked(state: &StateDir, id: &SandboxId) -> io::Result<Option<Lock>> {
    match Lock::wait(&state.sandbox(id)) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        locked => locked.map(Some),
    }
}

fn undo(state: &StateDir, id: &SandboxId, guest: Option<&GuestHandle>, lock: &Lock) -> io::Result<bool> {
    Record::keep_found_workspace(&state.sandbox(id))?;
    discard(state, id, guest, lock)
}

/// Moves a sandbox to the trash and empties that. Returns `false` if the sandbox was destroyed
/// before.
fn discard(state: &StateDir, id: &SandboxId, guest: Option<&GuestHandle>, lock: &Lock) -> io::Result<bool> {
    let (directory, trash) = (state.sandbox(id), state.trash(id));
    let moved = match std::fs::rename(&directory, &trash) {
        Err(error)
            if matches!(error.kind(), io::ErrorKind::DirectoryNotEmpty | io::ErrorKind::AlreadyExists) =>
        {
            // What an earlier version has left of it.
            empty_trash(state, id, None, lock)?;
            std::fs::rename(&directory, &trash)
        }
        moved => moved,
    };
    match moved {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(false),
        moved => moved?,
    }
    empty_trash(state, id, guest, lock)?;
    Ok(true)
}

/// Kills the processes of a sandbox in the trash and removes its files. The caller holds its lock.
fn empty_trash(
    state: &StateDir,
    id: &SandboxId,
    guest: Option<&GuestHandle>,
    _lock: &Lock,
) -> io::Result<()> {
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
    // A damaged mark names no guest; what runs in its groups is killed with them.
    let ready = ReadyMark::read(&directory).unwrap_or_default();
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
    if let Some(WorkspaceSpec::Persistent { id, destroy_on_session_destroy: true }) = workspace {
        remove_unless_used(state, id)?;
    }
    // The files that an apply had replaced are still in the folder, in a directory of their own.
    if let Err(error) = folder_change::recover(&directory) {
        tracing::warn!(%error, sandbox = %id, "undo an apply that was killed; the sandbox is removed nevertheless");
    }
    remove_tree(&directory)?;
    match record.and_then(|record| record.id_block()) {
        Some(ids) => HostRanges::of_host().release(state, ids.block, id),
        None => Ok(()),
    }
}

/// Removes the files while the killed guest still ends, which takes the kernel about a millisecond
/// on another processor. A process may write once more before it dies. What is left then is removed
/// afterwards, where a failure counts. So is the record, which lists what else there is to remove.
fn remove_while_it_dies(directory: &Path) {
    for name in ["upper", "work", COW] {
        if let Err(error) = remove_tree(&directory.join(name)) {
            tracing::debug!(%error, "remove the files of a sandbox that dies; tried again when it is dead");
        }
    }
}

/// Opens the guest that the mark names; `None` if it is gone. A guest that was never adopted ends
/// on its own, with its maker's stream.
pub(crate) fn recorded_guest(
    ready: Option<ReadyMark>,
    record: Option<&Record>,
) -> io::Result<Option<OwnedFd>> {
    // Without a record, number and start time alone tell: a later boot's process of the same would be a rare chance.
    let other_boot =
        record.is_some_and(|record| crate::record::boot_id().is_ok_and(|boot| boot != record.boot_id));
    match ready.and_then(|ready| ready.guest).filter(|_| !other_boot) {
        Some(process) => process.open(),
        None => Ok(None),
    }
}

/// A sandbox with its record, if that can be read, and its condition.
pub(crate) type FoundSandbox = (SandboxId, Option<Record>, Condition);

/// Removes what killed processes have left: sandboxes that were never completed, that have expired,
/// or that were destroyed only halfway; and the remains of the guests of sleeping sandboxes.
/// Returns the sandboxes that are there, in the order of their ids. What can't be removed now is
/// logged, and fails only if the sandboxes can't be listed.
pub(crate) fn sweep(state: &StateDir) -> io::Result<Vec<FoundSandbox>> {
    log_sweep(crate::image::sweep(&state.layers()));
    log_sweep(empty_whole_trash(state));
    log_sweep(clear_slots(state));
    let ids = state.ids("sandboxes")?;
    let found = in_parts(&ids, |part| {
        let mut reader = ConditionReader::default();
        part.iter().map(|id| find_and_clear(state, id.clone(), &mut reader)).collect()
    });
    log_sweep(state.drop_stale_claims(&claims_of(&found)));
    Ok(found)
}

/// Collects the claims that records tell of. Those of other sandboxes are looked at one by one.
fn claims_of(found: &[FoundSandbox]) -> Claims {
    let mut claims = Claims::default();
    for record in found.iter().filter_map(|(_, record, _)| record.as_ref()) {
        claims.names.insert(record.info.name.to_string());
        claims.blocks.extend(record.id_block().map(|ids| ids.block.to_string()));
    }
    claims
}

fn empty_whole_trash(state: &StateDir) -> io::Result<()> {
    for id in state.ids("trash")? {
        log_failure(&id, finish_destroying(state, &id));
    }
    Ok(())
}

/// Removes the slots of killed processes.
fn clear_slots(state: &StateDir) -> io::Result<()> {
    for id in state.ids("slots")? {
        log_failure(&id, clear_slot(state, &id));
    }
    Ok(())
}

fn clear_slot(state: &StateDir, id: &SandboxId) -> io::Result<()> {
    let directory = state.slot(id);
    // Looked at first without the gate, which creates pass.
    if if_there(Lock::take_if_free(&directory))?.is_none() {
        return Ok(());
    }
    let Some(lock) = if_there(Lock::take_abandoned(state, &directory))? else { return Ok(()) };
    match std::fs::rename(&directory, state.trash(id)) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        moved => moved.and_then(|()| empty_trash(state, id, None, &lock)),
    }
}

fn log_sweep(result: io::Result<()>) {
    if let Err(error) = result {
        tracing::warn!(%error, "sweep the state folder; the next sweep tries again");
    }
}

/// Looks at a sandbox, once more if it was cleared away after the first look.
fn find_and_clear(state: &StateDir, id: SandboxId, reader: &mut ConditionReader) -> FoundSandbox {
    let directory = state.sandbox(&id);
    let (record, condition) = reader.read(&directory);
    log_failure(&id, clear_away(state, &id, record.as_ref(), condition));
    if let Condition::Making | Condition::Expired = condition {
        let (record, condition) = Condition::of(&directory);
        return (id, record, condition);
    }
    (id, record, condition)
}

fn log_failure(id: &SandboxId, result: io::Result<()>) {
    if let Err(error) = result {
        tracing::warn!(%error, sandbox = %id, "sweep; the next sweep tries again");
    }
}

/// Completes a destroy whose process was killed. A destroy that is still under way is left alone.
fn finish_destroying(state: &StateDir, id: &SandboxId) -> io::Result<()> {
    match if_there(Lock::take_if_free(&state.trash(id)))? {
        Some(lock) => empty_trash(state, id, None, &lock),
        None => Ok(()),
    }
}

/// Removes what is left of a sandbox that has no owner any more. A sandbox whose lock is held is
/// left alone.
fn clear_away(
    state: &StateDir,
    id: &SandboxId,
    record: Option<&Record>,
    condition: Condition,
) -> io::Result<()> {
    let directory = state.sandbox(id);
    match (record, condition) {
        (_, Condition::Making) => {
            let Some(lock) = if_there(Lock::take_abandoned(state, &directory))? else { return Ok(()) };
            // It may have been completed before the lock was free.
            if Condition::of(&directory).1 == Condition::Making && undo(state, id, None, &lock)? {
                tracing::info!(sandbox = %id, "removed what was left of a sandbox that was never completed");
            }
            Ok(())
        }
        (_, Condition::Expired) => {
            let Some(lock) = if_there(Lock::take_if_free(&directory))? else { return Ok(()) };
            discard(state, id, None, &lock).map(drop)
        }
        (Some(record), Condition::Sleeping) => settle_if_free(&directory, record),
        _ => Ok(()),
    }
}

/// Turns a missing directory into `None`. The lock is `None` as well while another process holds
/// it.
fn if_there(taken: io::Result<Option<Lock>>) -> io::Result<Option<Lock>> {
    match taken {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        taken => taken,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sandbox_whose_record_is_empty_is_not_swept_and_one_that_was_never_written_is() {
        let dir = tempfile::tempdir().unwrap();
        let state = StateDir::made_at(&dir.path().join("state"));
        let [damaged, begun, left] = [(); 3].map(|()| SandboxId::generate());
        for id in [&damaged, &begun, &left] {
            std::fs::create_dir_all(state.sandbox(id).join("upper")).unwrap();
        }
        std::fs::write(state.sandbox(&damaged).join("sandbox.json"), "").unwrap();
        // As an earlier version left it: a destroy of something that came back beside what is in the trash.
        std::fs::create_dir_all(state.trash(&left).join("upper")).unwrap();
        ReadyMark::ASLEEP.make(&state.sandbox(&left)).unwrap();
        sweep(&state).unwrap();
        assert!(state.sandbox(&damaged).exists() && !state.sandbox(&begun).exists());
        for id in [&damaged, &left] {
            assert!(destroy(&state, id, None).unwrap());
            assert!(!state.sandbox(id).exists() && !state.trash(id).exists());
            assert!(!destroy(&state, id, None).unwrap());
        }
    }

    #[test]
    fn nobody_is_destroyed_while_somebody_is_at_work_on_it() {
        let dir = tempfile::tempdir().unwrap();
        let state = StateDir::made_at(&dir.path().join("state"));
        let id = SandboxId::generate();
        std::fs::create_dir(state.sandbox(&id)).unwrap();
        let lock = Lock::take(&state.sandbox(&id)).unwrap();
        std::thread::scope(|scope| {
            let destroying = scope.spawn(|| destroy(&state, &id, None));
            sweep(&state).unwrap();
            // What is made meanwhile goes with it.
            std::fs::create_dir(state.sandbox(&id).join("upper")).unwrap();
            assert!(!destroying.is_finished());
            drop(lock);
            assert!(destroying.join().unwrap().unwrap());
        });
        assert!(!state.sandbox(&id).exists() && !state.trash(&id).exists());
    }
}
