//! The persistent workspaces of a state folder: listed, and removed. A workspace is removed under
//! the lock under which creates take one, and only while no sandbox has it. It is first moved to the
//! trash, below a directory with a sandbox's id: nothing of it is read there, and the next sweep
//! removes what a killed process has left.

use std::collections::{BTreeMap, HashSet};
use std::ffi::CString;
use std::fs;
use std::io;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use eyot::{Error, ErrorKind, Result, SandboxId, WorkspaceSpec};
use eyot_archive::{Descent, entries, remove_tree};
use rustix::fs::{AtFlags, FileType, Stat};
use rustix::io::Errno;
use serde::Serialize;

use crate::record::Record;
use crate::sparse_copy::BLOCK_BYTES;
use crate::state::{StateDir, make_child};

/// The name of a workspace in its directory in the trash.
const IN_TRASH: &str = "workspace";

/// A persistent workspace.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct KeptWorkspace {
    /// The name; that of a pool other than `default` is `POOL.NAME`.
    pub name: String,
    /// The size of its files on the disk, in bytes; `None` if not all of them could be looked at.
    pub size_bytes: Option<u64>,
    /// The time of the last change that was seen in it, in milliseconds since 1970.
    pub changed_ms: i64,
    /// The names of the sandboxes that have it, whether they run or sleep.
    pub sandboxes: Vec<String>,
}

/// Lists the persistent workspaces of a state folder, sorted by name. `names` returns the name by
/// which users know a sandbox, if it is not the record's. Every file is looked at for its size.
///
/// # Errors
/// If the state folder can't be read.
pub fn kept_workspaces(
    state: &Path,
    names: &dyn Fn(&SandboxId) -> Option<String>,
) -> Result<Vec<KeptWorkspace>> {
    let state = StateDir::open(state, None)?;
    let failed = |error| Error::host("list the workspaces", error);
    let mut users: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for id in state.ids("sandboxes").map_err(failed)? {
        if let Ok(record) = Record::read(&state.sandbox(&id))
            && let WorkspaceSpec::Persistent { id: workspace, .. } = &record.info.spec.workspace
        {
            users.entry(workspace.clone()).or_default().push(shown_name(&record, names));
        }
    }
    let mut found = Vec::new();
    for name in all_names(&state).map_err(failed)? {
        let path = state.workspace(&name);
        let top = match Descent::open(rustix::fs::CWD, path.as_os_str().as_bytes()) {
            // Removed meanwhile.
            Err(Errno::NOENT) => continue,
            top => top.map_err(io::Error::from),
        };
        let seen = top.and_then(TreeSize::of).map_err(failed)?;
        let sandboxes = users.remove(&name).unwrap_or_default();
        let size_bytes = seen.is_whole.then_some(seen.bytes);
        found.push(KeptWorkspace { name, size_bytes, changed_ms: seen.changed_ms, sandboxes });
    }
    Ok(found)
}

/// Removes a persistent workspace with its files. `names` is as for [`kept_workspaces`].
///
/// # Errors
/// `not_found`. `conflict` if a sandbox has it, whether it runs, sleeps, is being made or is being
/// destroyed; nothing was changed then.
pub fn remove_kept_workspace(
    state: &Path,
    name: &str,
    names: &dyn Fn(&SandboxId) -> Option<String>,
) -> Result<()> {
    let state = StateDir::open(state, None)?;
    let failed = |error| Error::host(format!("remove workspace `{name}`"), error);
    let trash = {
        let _alone = state.lock_workspaces().map_err(failed)?;
        if !all_names(&state).map_err(failed)?.iter().any(|found| found == name) {
            return Err(Error::new(ErrorKind::NotFound, format!("there is no workspace `{name}`")));
        }
        if let Some(holder) = holder(&state, name, &["sandboxes", "trash"]).map_err(failed)? {
            return Err(holder.refusal(name, names));
        }
        move_to_trash(&state, name).map_err(failed)?
    };
    remove_tree(&trash).map_err(failed)
}

/// Removes the workspace of a sandbox that is being destroyed, unless another sandbox has it.
pub(crate) fn remove_unless_used(state: &StateDir, name: &str) -> io::Result<()> {
    let trash = {
        let _alone = state.lock_workspaces()?;
        // One in the trash is not asked: of two that are destroyed at once, one has to remove it.
        if holder(state, name, &["sandboxes"])?.is_some() {
            return Ok(());
        }
        match move_to_trash(state, name) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
            moved => moved?,
        }
    };
    remove_tree(&trash)
}

/// Returns the names of all workspaces, sorted. A link is none, and neither is one in the making.
fn all_names(state: &StateDir) -> io::Result<Vec<String>> {
    let mut names = Vec::new();
    let entries = match fs::read_dir(state.workspace("")) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(names),
        entries => entries?,
    };
    for entry in entries {
        let entry = entry?;
        if let Ok(name) = entry.file_name().into_string()
            && !name.starts_with('.')
            && entry.file_type()?.is_dir()
        {
            names.push(name);
        }
    }
    names.sort();
    Ok(names)
}

/// A sandbox that has a workspace, or may have it.
enum Holder {
    /// It has it.
    Certain(Box<Record>),
    /// Its record can't be read: it may be in the making.
    Possible(SandboxId),
}

impl Holder {
    fn refusal(&self, workspace: &str, names: &dyn Fn(&SandboxId) -> Option<String>) -> Error {
        let (reason, hint) = match self {
            Self::Certain(record) => {
                let name = shown_name(record, names);
                let hint =
                    format!("`eyot rm {name}` destroys the sandbox; the workspace stays until it is removed");
                (format!("sandbox `{name}` uses it"), hint)
            }
            Self::Possible(id) => {
                let hint =
                    format!("try again if it is being made; `eyot rm {id}` destroys one that is damaged");
                (format!("sandbox `{id}` may use it, and has no record that says so"), hint)
            }
        };
        Error::new(ErrorKind::Conflict, format!("remove workspace `{workspace}`: {reason}")).with_hint(hint)
    }
}

/// Finds a sandbox in these folders that has that workspace. A sandbox without a readable record
/// counts as having it, because it may be one that is still being made.
fn holder(state: &StateDir, workspace: &str, folders: &[&str]) -> io::Result<Option<Holder>> {
    for folder in folders {
        for id in state.ids(folder)? {
            let directory = state.root().join(folder).join(id.as_str());
            match Record::read(&directory) {
                Ok(record) => match &record.info.spec.workspace {
                    WorkspaceSpec::Persistent { id, .. } if id == workspace => {
                        return Ok(Some(Holder::Certain(Box::new(record))));
                    }
                    _ => {}
                },
                // In the trash there is none in the making.
                Err(_) if *folder == "sandboxes" && directory.exists() => {
                    return Ok(Some(Holder::Possible(id)));
                }
                Err(_) => {}
            }
        }
    }
    Ok(None)
}

fn shown_name(record: &Record, names: &dyn Fn(&SandboxId) -> Option<String>) -> String {
    names(&record.info.id).unwrap_or_else(|| record.info.name.to_string())
}

/// Moves a workspace to the trash, and returns what is to be removed there. A name that is a link is
/// moved itself.
fn move_to_trash(state: &StateDir, name: &str) -> io::Result<PathBuf> {
    let path = state.workspace(name);
    let found = fs::symlink_metadata(&path)?;
    if found.is_dir() && found.permissions().mode() & 0o700 != 0o700 {
        // An ordinary user moves only a directory that is writable, and a sandbox may have closed this one.
        fs::set_permissions(&path, fs::Permissions::from_mode(0o700))?;
    }
    loop {
        let trash = state.trash(&SandboxId::generate());
        make_child(&trash, 0o700)?;
        match fs::rename(&path, trash.join(IN_TRASH)) {
            // A sweep has removed the empty directory.
            Err(error) if error.kind() == io::ErrorKind::NotFound && !trash.exists() => {}
            moved => return moved.map(|()| trash),
        }
    }
}

/// The size of a tree, and when it changed last. No link is followed, and a tree may be of any
/// depth. Sandboxes may change it meanwhile.
struct TreeSize {
    bytes: u64,
    changed_ms: i64,
    /// Everything could be looked at.
    is_whole: bool,
    /// The files with several names that were counted.
    counted: HashSet<u64>,
}

impl TreeSize {
    fn of(top: OwnedFd) -> io::Result<Self> {
        let found = rustix::fs::fstat(&top)?;
        let mut size = Self { bytes: 0, changed_ms: 0, is_whole: true, counted: HashSet::new() };
        size.add(&found);
        size.is_whole = size.walk(top, found.st_dev).is_ok();
        Ok(size)
    }

    fn walk(&mut self, top: OwnedFd, device: u64) -> io::Result<()> {
        let mut descent = Descent::new(top);
        let mut left = vec![self.add_entries(descent.current(), device)?];
        while let Some(directories) = left.last_mut() {
            if let Some(name) = directories.pop() {
                match descent.enter(&name) {
                    // Removed or replaced meanwhile.
                    Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP) => {}
                    entered => {
                        entered?;
                        left.push(self.add_entries(descent.current(), device)?);
                    }
                }
            } else {
                left.pop();
                if !descent.leave() {
                    return Err(io::Error::new(io::ErrorKind::ResourceBusy, "a folder of it was moved"));
                }
            }
        }
        Ok(())
    }

    /// Adds the entries of one directory. Returns the directories among them. Mounts are left out.
    fn add_entries(&mut self, directory: BorrowedFd<'_>, device: u64) -> io::Result<Vec<CString>> {
        let mut directories = Vec::new();
        for entry in entries(directory)? {
            let entry = entry?;
            let name = entry.file_name();
            let found = match rustix::fs::statat(directory, name, AtFlags::SYMLINK_NOFOLLOW) {
                Err(Errno::NOENT) => continue,
                found => found?,
            };
            if found.st_dev != device {
                continue;
            }
            self.add(&found);
            if FileType::from_raw_mode(found.st_mode) == FileType::Directory {
                directories.push(name.to_owned());
            }
        }
        Ok(directories)
    }

    fn add(&mut self, found: &Stat) {
        let is_directory = FileType::from_raw_mode(found.st_mode) == FileType::Directory;
        // No sandbox can set the time of a change.
        let changed_ms =
            found.st_ctime.saturating_mul(1000).saturating_add(found.st_ctime_nsec as i64 / 1_000_000);
        self.changed_ms = self.changed_ms.max(changed_ms);
        if is_directory || found.st_nlink < 2 || self.counted.insert(found.st_ino) {
            self.bytes += u64::try_from(found.st_blocks).unwrap_or_default() * BLOCK_BYTES;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;
    use crate::destroy::{destroy, sweep};
    use crate::record::tests::record;

    fn state() -> (tempfile::TempDir, StateDir) {
        let dir = tempfile::tempdir().unwrap();
        let state = StateDir::made_at(&dir.path().join("state"));
        (dir, state)
    }

    /// Makes a sandbox that has this workspace.
    fn sandbox(state: &StateDir, workspace: &str, goes_along: bool) -> SandboxId {
        let mut record = record();
        record.info.spec.workspace =
            WorkspaceSpec::Persistent { id: workspace.to_owned(), destroy_on_session_destroy: goes_along };
        let directory = state.sandbox(&record.info.id);
        fs::create_dir(&directory).unwrap();
        record.write(&directory).unwrap();
        record.info.id
    }

    fn nameless(_: &SandboxId) -> Option<String> {
        None
    }

    fn remove(state: &StateDir, name: &str) -> Result<()> {
        remove_kept_workspace(state.root(), name, &nameless)
    }

    #[test]
    fn what_is_listed_has_its_size_its_change_and_its_sandboxes_and_no_link_is_followed() {
        let (dir, state) = state();
        let top = state.workspace("w");
        fs::create_dir_all(top.join("deep/er")).unwrap();
        fs::write(top.join("deep/er/file"), vec![1; 100_000]).unwrap();
        fs::hard_link(top.join("deep/er/file"), top.join("again")).unwrap();
        fs::write(dir.path().join("outside"), vec![1; 1_000_000]).unwrap();
        symlink(dir.path(), top.join("link")).unwrap();
        symlink(dir.path(), state.workspace("linked")).unwrap();
        fs::create_dir(state.workspace(".making")).unwrap();
        let id = sandbox(&state, "w", false);
        let before =
            kept_workspaces(state.root(), &|found| (*found == id).then(|| "dev".to_owned())).unwrap();
        let [w] = before.as_slice() else { panic!("{before:?}") };
        assert_eq!((w.name.as_str(), &w.sandboxes), ("w", &vec!["dev".to_owned()]));
        let bytes = w.size_bytes.unwrap();
        assert!((100_000..200_000).contains(&bytes), "{bytes}");
        assert!((0..60_000).contains(&(eyot::internal::now_ms() - w.changed_ms)), "{w:?}");
    }

    #[test]
    fn one_that_a_sandbox_has_or_may_have_stays_and_a_free_one_goes_whole() {
        let (dir, state) = state();
        let outside = dir.path().join("outside");
        fs::create_dir(&outside).unwrap();
        fs::write(outside.join("file"), "x").unwrap();
        for name in ["used", "free"] {
            fs::create_dir(state.workspace(name)).unwrap();
            fs::write(state.workspace(name).join("file"), "x").unwrap();
            symlink(&outside, state.workspace(name).join("link")).unwrap();
        }
        fs::set_permissions(state.workspace("free"), fs::Permissions::from_mode(0o500)).unwrap();
        let id = sandbox(&state, "used", false);
        let refused = remove(&state, "used").unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::Conflict);
        assert!(refused.to_string().contains("uses it"), "{refused}");
        let begun = state.sandbox(&SandboxId::generate());
        fs::create_dir(&begun).unwrap();
        assert_eq!(remove(&state, "free").unwrap_err().kind(), ErrorKind::Conflict);
        fs::write(begun.join("sandbox.json"), "half a rec").unwrap();
        assert_eq!(remove(&state, "free").unwrap_err().kind(), ErrorKind::Conflict);
        fs::remove_dir_all(&begun).unwrap();
        remove(&state, "free").unwrap();
        assert!(!state.workspace("free").exists() && outside.join("file").exists());
        assert!(fs::read_dir(state.root().join("trash")).unwrap().next().is_none());
        assert!(destroy(&state, &id, None).unwrap());
        remove(&state, "used").unwrap();
        for absent in ["used", "..", "../sandboxes", "", ".making", "link"] {
            assert_eq!(remove(&state, absent).unwrap_err().kind(), ErrorKind::NotFound, "{absent}");
        }
    }

    #[test]
    fn what_a_killed_removal_has_left_is_swept_and_nothing_in_it_is_taken_for_a_record() {
        let (_dir, state) = state();
        let kept = state.workspace("kept");
        fs::create_dir(&kept).unwrap();
        fs::create_dir(state.workspace("w")).unwrap();
        // A sandbox that has written what looks like a record that takes another workspace along.
        let mut forged = record();
        forged.info.spec.workspace =
            WorkspaceSpec::Persistent { id: "kept".to_owned(), destroy_on_session_destroy: true };
        forged.write(&state.workspace("w")).unwrap();
        let trash = move_to_trash(&state, "w").unwrap();
        assert!(trash.exists() && !state.workspace("w").exists());
        sweep(&state).unwrap();
        assert!(!trash.exists() && kept.exists());
    }

    #[test]
    fn a_workspace_that_a_create_takes_while_it_is_to_be_removed_stays() {
        let (_dir, state) = state();
        for name in ["asked", "along"] {
            fs::create_dir(state.workspace(name)).unwrap();
        }
        let dying = sandbox(&state, "along", true);
        std::thread::scope(|scope| {
            let creating = state.lock_workspaces().unwrap();
            let asked = scope.spawn(|| remove(&state, "asked"));
            let along = scope.spawn(|| destroy(&state, &dying, None));
            while !state.trash(&dying).exists() {
                std::thread::yield_now();
            }
            sandbox(&state, "asked", false);
            sandbox(&state, "along", false);
            drop(creating);
            assert_eq!(asked.join().unwrap().unwrap_err().kind(), ErrorKind::Conflict);
            assert!(along.join().unwrap().unwrap());
        });
        assert!(state.workspace("asked").exists() && state.workspace("along").exists());
    }
}
