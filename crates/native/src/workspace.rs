//! Persistent workspaces on the host's disk. In root's workspaces, files have owners from a block
//! of ids that no user of the host has ([`WORKSPACE_BASE`]). Each mount maps them to the ids
//! inside, so any sandbox can use them. Earlier versions wrote the ids from inside to the disk;
//! such a workspace is converted once, before the next sandbox uses it. An ordinary user's
//! workspaces belong to that user.

use std::ffi::CString;
use std::fs;
use std::io;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{PermissionsExt, chown};
use std::path::Path;

use eyot::{Error, ErrorKind, Result, SandboxId, WorkspaceSpec};
use eyot_archive::{Descent, entries};
use rustix::fs::{AtFlags, FileType, Gid, Uid};

use crate::condition::Condition;
use crate::disk_ids::WORKSPACE_BASE;
use crate::maker::failed;
use crate::plan::{IdMap, RANGE_LEN};
use crate::record::Record;
use crate::state::StateDir;

/// The step that makes a workspace. Errors and tests use this name.
const STEP: &str = "make its workspace";
/// The name of a new workspace until it has its owner. No workspace can be called so.
const MAKING: &str = ".making";

/// Makes the workspace `name` if it is not there, and changes the owners in one of an earlier
/// version. Returns whether it was made now. `sandbox` is about to use it; a new one belongs to its
/// user, which is a uid and a gid inside.
pub(crate) fn prepare(
    state: &StateDir,
    name: &str,
    sandbox: &SandboxId,
    (map, user): (IdMap, (u32, u32)),
) -> Result<bool> {
    let _alone = state.lock_workspaces().map_err(failed(STEP))?;
    let path = state.workspace(name);
    let top = match Descent::open(rustix::fs::CWD, path.as_os_str().as_bytes()) {
        Err(rustix::io::Errno::NOENT) => {
            return make(state, &path, map, user).map(|()| true).map_err(failed(STEP));
        }
        other => other.map_err(|error| failed(STEP)(error.into()))?,
    };
    if let IdMap::Range(_) = map {
        let found = rustix::fs::fstat(&top).map_err(|error| failed(STEP)(error.into()))?;
        if !is_ours(found.st_uid) {
            refuse_if_used(state, name, sandbox)?;
            change_owners(&top).map_err(failed(STEP))?;
        }
    }
    Ok(false)
}

/// Makes a workspace. It gets its name when it is complete.
fn make(state: &StateDir, path: &Path, map: IdMap, (uid, gid): (u32, u32)) -> io::Result<()> {
    let making = state.workspace(MAKING);
    eyot_image::remove_tree(&making)?;
    fs::create_dir(&making)?;
    fs::set_permissions(&making, fs::Permissions::from_mode(0o755))?;
    if let IdMap::Range(_) = map {
        chown(&making, Some(WORKSPACE_BASE + uid), Some(WORKSPACE_BASE + gid))?;
    }
    fs::rename(&making, path)
}

/// Refuses to convert a workspace that a sandbox may be using: one that an earlier version started
/// writes the ids from inside for as long as it runs.
fn refuse_if_used(state: &StateDir, name: &str, sandbox: &SandboxId) -> Result<()> {
    let Some(user) = user_of(state, name, sandbox).map_err(failed(STEP))? else { return Ok(()) };
    let message = format!(
        "create sandbox: workspace `{name}` was made by an earlier version of Eyot, and sandbox `{user}` still uses it"
    );
    Err(Error::new(ErrorKind::Conflict, message)
        .with_hint(format!("put `{user}` to sleep or destroy it, and try again")))
}

/// Returns the name of a sandbox that may have processes and uses that workspace.
fn user_of(state: &StateDir, workspace: &str, except: &SandboxId) -> io::Result<Option<String>> {
    let has_it = |record: &Record| match &record.info.spec.workspace {
        WorkspaceSpec::Persistent { id, .. } => id == workspace,
        WorkspaceSpec::Ephemeral => false,
    };
    for id in state.ids("sandboxes")?.iter().filter(|id| *id != except) {
        let (record, condition) = Condition::of(&state.sandbox(id));
        // A damaged one does not say what it has, and may run.
        let is_unknown = matches!(condition, Condition::Running | Condition::Damaged);
        let may_have_it = record.as_ref().map_or(is_unknown, has_it);
        if may_have_it && (is_unknown || condition == Condition::Making) {
            return Ok(Some(record.map_or_else(|| id.to_string(), |record| record.info.name.to_string())));
        }
    }
    // What is being destroyed may still have processes.
    let dying =
        state.ids("trash")?.into_iter().find_map(|id| Record::read(&state.trash(&id)).ok().filter(has_it));
    Ok(dying.map(|record| record.info.name.to_string()))
}

/// Tells whether an id on disk is one that workspaces have.
fn is_ours(id: u32) -> bool {
    (WORKSPACE_BASE..WORKSPACE_BASE + RANGE_LEN).contains(&id)
}

/// Returns the new id on disk for one that was written from inside. Other ids stay.
fn moved(id: u32) -> u32 {
    if id < RANGE_LEN { WORKSPACE_BASE + id } else { id }
}

/// Converts the owners of everything below `top`. The owner of `top` itself is changed last, after
/// everything else is on the disk, and so marks the workspace as done: a conversion can be
/// interrupted anywhere and repeated. The change removes set-id bits and file capabilities. No link
/// is followed, and a tree may be of any depth.
fn change_owners(top: &OwnedFd) -> io::Result<()> {
    let own = rustix::fs::fstat(top)?;
    let mut descent = Descent::new(top.try_clone()?);
    let mut left = vec![change_entries(descent.current(), own.st_dev)?];
    while let Some(directories) = left.last_mut() {
        if let Some(name) = directories.pop() {
            descent.enter(&name)?;
            left.push(change_entries(descent.current(), own.st_dev)?);
        } else {
            left.pop();
            if !descent.leave() {
                return Err(io::Error::new(io::ErrorKind::ResourceBusy, "a folder of it was moved"));
            }
        }
    }
    rustix::fs::syncfs(top)?;
    let (uid, gid) = (Uid::from_raw(moved(own.st_uid)), Gid::from_raw(moved(own.st_gid)));
    Ok(rustix::fs::fchown(top, Some(uid), Some(gid))?)
}

/// Converts the owners of the entries of one directory. Returns the directories among them. Mounts
/// are left out.
fn change_entries(directory: BorrowedFd<'_>, device: u64) -> io::Result<Vec<CString>> {
    let mut directories = Vec::new();
    for entry in entries(directory)? {
        let entry = entry?;
        let name = entry.file_name();
        let found = rustix::fs::statat(directory, name, AtFlags::SYMLINK_NOFOLLOW)?;
        if found.st_dev != device {
            continue;
        }
        let (uid, gid) = (moved(found.st_uid), moved(found.st_gid));
        if (uid, gid) != (found.st_uid, found.st_gid) {
            let (uid, gid) = (Uid::from_raw(uid), Gid::from_raw(gid));
            rustix::fs::chownat(directory, name, Some(uid), Some(gid), AtFlags::SYMLINK_NOFOLLOW)?;
        }
        if FileType::from_raw_mode(found.st_mode) == FileType::Directory {
            directories.push(name.to_owned());
        }
    }
    Ok(directories)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{MetadataExt, symlink};

    use super::*;
    use crate::plan::IdRange;

    fn state() -> (tempfile::TempDir, StateDir) {
        let dir = tempfile::tempdir().unwrap();
        let state = StateDir::made_at(&dir.path().join("state"));
        (dir, state)
    }

    fn ids(path: &Path) -> (u32, u32) {
        let found = fs::symlink_metadata(path).unwrap();
        (found.uid(), found.gid())
    }

    const BLOCK: IdMap = IdMap::Range(IdRange { base: 0x7001_0000, shift: 1 });
    const INSIDE: u32 = WORKSPACE_BASE;
    const USER: (u32, u32) = (1000, 1000);

    #[test]
    fn the_ids_of_workspaces_are_no_sandboxs() {
        assert!(WORKSPACE_BASE + RANGE_LEN <= crate::state::block_base(1));
        assert!(
            is_ours(moved(0)) && is_ours(moved(RANGE_LEN - 1)) && !is_ours(0) && !is_ours(moved(RANGE_LEN))
        );
        assert_eq!(moved(moved(33)), moved(33));
    }

    #[test]
    fn a_workspace_of_an_ordinary_user_is_made_and_stays_as_it_is() {
        let (_dir, state) = state();
        let (single, id) = (IdMap::Single { uid: 501, gid: 20 }, SandboxId::generate());
        assert!(prepare(&state, "w", &id, (single, USER)).unwrap());
        let before = ids(&state.workspace("w"));
        assert!(!prepare(&state, "w", &id, (single, USER)).unwrap());
        assert_eq!(ids(&state.workspace("w")), before);
    }

    #[test]
    fn an_earlier_versions_workspace_gets_ids_of_its_own_once_and_no_link_is_followed() {
        if !rustix::process::geteuid().is_root() {
            return;
        }
        let (dir, state) = state();
        let (top, outside) = (state.workspace("w"), dir.path().join("outside"));
        fs::write(&outside, "x").unwrap();
        let mut deep = top.join("deep");
        for _ in 0..60 {
            deep.push("a-folder-with-a-long-name");
        }
        fs::create_dir_all(&deep).unwrap();
        for (name, owner) in
            [("of-user", 1000), ("of-root", 0), ("of-www", 33), ("done", INSIDE + 7), ("far", 70_000)]
        {
            fs::write(top.join(name), "x").unwrap();
            chown(top.join(name), Some(owner), Some(owner)).unwrap();
        }
        fs::set_permissions(top.join("of-root"), fs::Permissions::from_mode(0o6755)).unwrap();
        fs::hard_link(top.join("of-www"), deep.join("second-name")).unwrap();
        symlink(&outside, top.join("link")).unwrap();
        symlink(dir.path(), deep.join("link")).unwrap();
        chown(&top, Some(1000), Some(1000)).unwrap();
        let id = SandboxId::generate();
        for _ in 0..2 {
            assert!(!prepare(&state, "w", &id, (BLOCK, USER)).unwrap());
            for (name, owner) in [
                ("", 1000),
                ("of-user", 1000),
                ("of-root", 0),
                ("of-www", 33),
                ("done", 7),
                ("link", 0),
                ("deep", 0),
            ] {
                assert_eq!(ids(&top.join(name)), (INSIDE + owner, INSIDE + owner), "{name}");
            }
            assert_eq!(ids(&top.join("far")), (70_000, 70_000));
            assert_eq!(ids(&deep.join("second-name")).0, INSIDE + 33);
            assert_eq!(fs::metadata(top.join("of-root")).unwrap().mode() & 0o7777, 0o755);
            assert_eq!((ids(&outside), ids(dir.path())), ((0, 0), (0, 0)));
        }
    }

    #[test]
    fn what_was_changed_halfway_is_changed_to_its_end() {
        if !rustix::process::geteuid().is_root() {
            return;
        }
        let (_dir, state) = state();
        let top = state.workspace("w");
        fs::create_dir_all(top.join("a")).unwrap();
        fs::write(top.join("a/left"), "x").unwrap();
        chown(top.join("a"), Some(INSIDE), Some(INSIDE)).unwrap();
        assert!(!prepare(&state, "w", &SandboxId::generate(), (BLOCK, USER)).unwrap());
        assert_eq!([ids(&top), ids(&top.join("a")), ids(&top.join("a/left"))], [(INSIDE, INSIDE); 3]);
    }
}
