//! The state folder, where sandboxes live between Eyot processes. Several processes may share one.
//! A change that two could make at once is either a single atomic system call (`mkdir`, `symlink`,
//! `rename`) or made under a sandbox's lock.
//!
//! ```text
//! sandboxes/<id>/   sandbox.json · ready · guest.sock · upper/ · work/ · files-move.json; of copied folders cow/ ·
//!                   cow-work/ · c/ · cow-base/ · apply.json. The directory itself is locked during
//!                   a create, a sleep, a wake, a change of its layers and a destroy. With a disk
//!                   limit, the image of a file system, disk, is in place of upper/ and work/; besides disk.next, disk.compared
//!                   and *.copied/: see `disk` and `disk_move`
//! slots/<id>/       half-made sandboxes that wait for a create; their owner holds their locks: see `slots`
//! names/<name>      a symbolic link whose text is the id
//! blocks/<n>        a symbolic link whose text is the id: that range of host ids is taken. A note for
//!                   the whole host says so as well: see `host_ranges`
//! workspaces/<id>/  persistent workspaces
//! layers/           skeletons, unpacked tarballs, empty disks
//! images/           the store of images: see `eyot_image`
//! programs/         the guest's program, by digest: see `launcher::guest_file`
//! cgroups           the places of sandboxes' control groups
//! snapshots/<id>/   snapshot.json · files/ · cow/ · cow-base/: see `kept_snapshot`
//! snapshots.lock    the lock between using a snapshot and removing what nobody uses
//! workspaces.lock   the lock for making persistent workspaces
//! gate              the lock between making a sandbox's directory and locking it
//! trash/<id>/       destroyed sandboxes until their files are gone
//! ```

use std::collections::HashSet;
use std::fs::{self, DirBuilder};
use std::io::{self, Write};
use std::ops::Range;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, symlink};
use std::path::{Path, PathBuf};

use eyot::{Error, Result, SandboxId, SandboxName, SnapshotId};
use eyot_image::FileLock;
use rustix::fs::FlockOperation;
use rustix::io::Errno;
use serde::{Deserialize, Serialize};

use crate::disk_ids::WORKSPACE_BASE;
use crate::host::{self, SetupFailure};
use crate::plan::{IdRange, RANGE_LEN};

/// Returns the default state folder: `/var/lib/eyot` for root, else `$XDG_STATE_HOME/eyot` or
/// `~/.local/state/eyot`. Without HOME, the home directory comes from the user database. Without
/// any home directory the path is empty, and such a state folder is refused. The default is never
/// in a folder that users share.
pub fn default_state_dir() -> PathBuf {
    if rustix::process::geteuid().is_root() {
        return PathBuf::from("/var/lib/eyot");
    }
    let absolute = |name: &str| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let home = || std::env::home_dir().filter(|home| home.is_absolute());
    let state_home = absolute("XDG_STATE_HOME").or_else(|| home().map(|home| home.join(".local/state")));
    state_home.map(|folder| folder.join("eyot")).unwrap_or_default()
}

/// The names and the blocks of host ids that sandboxes have.
#[derive(Debug, Default)]
pub(crate) struct Claims {
    pub names: HashSet<String>,
    pub blocks: HashSet<String>,
}

/// An opened state folder.
#[derive(Debug, Clone)]
pub(crate) struct StateDir {
    root: PathBuf,
}

impl StateDir {
    /// Opens the folder. Makes nothing: a folder that does not exist has no sandboxes. Refuses a
    /// folder on a file system that can't hold the upper directory of an overlay, such as NFS and
    /// overlayfs, a folder that other users could change, and one that holds files of something
    /// else. `simulated` is for tests: see [`crate::host::Facts`].
    pub(crate) fn open(root: &Path, simulated: Option<&serde_json::Value>) -> Result<Self> {
        host::check_folder(root)?;
        let found =
            canonical(root).map_err(|error| host::explained(not_opened(root, error), root, simulated));
        let root = found?;
        host::check_state_folder(&root, simulated)?;
        Ok(Self { root })
    }

    /// The folder at this path, which another process has opened and checked.
    pub(crate) fn noted(root: PathBuf) -> Self {
        Self { root }
    }

    /// Makes the folder (mode 0700) and those in it, if need be. The cause of a failure is not in
    /// its sentence yet: see [`host::explained`].
    pub(crate) fn make(&self) -> Result<()> {
        let failed = |error: io::Error| not_opened(&self.root, error);
        for name in ["sandboxes", "slots", "names", "blocks", "workspaces", "layers", "snapshots", "trash"] {
            let folder = self.root.join(name);
            if !folder.is_dir() {
                make_dir(&folder, 0o700).map_err(failed)?;
            }
        }
        Ok(())
    }

    /// Tells whether there is a folder for sandboxes. Without it there never was one.
    pub(crate) fn has_sandboxes(&self) -> bool {
        self.root.join("sandboxes").is_dir()
    }

    /// Opens and makes a folder, for tests.
    #[cfg(test)]
    pub(crate) fn made_at(root: &Path) -> Self {
        let state = Self::open(root, None).unwrap();
        state.make().unwrap();
        state
    }

    /// Returns the folder's path.
    pub(crate) fn root(&self) -> &Path {
        &self.root
    }

    /// Returns the path of a sandbox's directory.
    pub(crate) fn sandbox(&self, id: &SandboxId) -> PathBuf {
        self.root.join("sandboxes").join(id.as_str())
    }

    /// Returns the path of a half-made sandbox that waits for a create.
    pub(crate) fn slot(&self, id: &SandboxId) -> PathBuf {
        self.root.join("slots").join(id.as_str())
    }

    /// Returns the path of a destroyed sandbox until its files are removed.
    pub(crate) fn trash(&self, id: &SandboxId) -> PathBuf {
        self.root.join("trash").join(id.as_str())
    }

    /// Tells whether a canonical path contains the state folder or lies in it.
    pub(crate) fn overlaps(&self, path: &Path) -> bool {
        overlap(&self.root, path)
    }

    /// Returns the folder of prepared layers.
    pub(crate) fn layers(&self) -> PathBuf {
        self.root.join("layers")
    }

    /// Returns the folder of a snapshot.
    pub(crate) fn snapshot(&self, id: &SnapshotId) -> PathBuf {
        self.root.join("snapshots").join(id.as_str())
    }

    /// Returns the folder of a snapshot's files.
    pub(crate) fn snapshot_files(&self, id: &SnapshotId) -> PathBuf {
        self.snapshot(id).join("files")
    }

    /// Lists the snapshots that have a folder, oldest first.
    pub(crate) fn snapshots(&self) -> io::Result<Vec<SnapshotId>> {
        let entries = match fs::read_dir(self.root.join("snapshots")) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            entries => entries?,
        };
        let mut ids = Vec::new();
        for entry in entries {
            ids.extend(entry?.file_name().to_str().and_then(|name| SnapshotId::parse(name).ok()));
        }
        ids.sort();
        Ok(ids)
    }

    /// Takes the lock of the snapshots: shared by those who begin to use one, alone by those who remove what nobody uses.
    pub(crate) fn lock_snapshots(&self, how: FlockOperation) -> io::Result<FileLock> {
        self.lock("snapshots.lock", how)
    }

    /// Takes the lock of those who change folders of the host.
    pub(crate) fn lock_applies(&self) -> io::Result<FileLock> {
        self.lock("applies.lock", FlockOperation::LockExclusive)
    }

    /// Returns the folder of the image store.
    pub(crate) fn images(&self) -> PathBuf {
        self.root.join("images")
    }

    /// Returns the folder of programs that are run in sandboxes.
    pub(crate) fn programs(&self) -> PathBuf {
        self.root.join("programs")
    }

    /// Returns the file that lists the places of control groups.
    pub(crate) fn cgroups(&self) -> PathBuf {
        self.root.join("cgroups")
    }

    /// Returns the path of a persistent workspace's directory.
    pub(crate) fn workspace(&self, id: &str) -> PathBuf {
        self.root.join("workspaces").join(id)
    }

    /// Takes the gate. A process shares it while it makes a sandbox's directory and locks that. A
    /// process that must know that no other is between these two steps holds it alone.
    pub(crate) fn gate(&self, how: FlockOperation) -> io::Result<FileLock> {
        self.lock("gate", how)
    }

    /// Takes the lock under which a persistent workspace is made, or the owners in it are changed.
    pub(crate) fn lock_workspaces(&self) -> io::Result<FileLock> {
        self.lock("workspaces.lock", FlockOperation::LockExclusive)
    }

    /// Takes the gate alone; `None` if another process has passed it and is at work.
    pub(crate) fn try_gate_alone(&self) -> io::Result<Option<FileLock>> {
        match self.gate(FlockOperation::NonBlockingLockExclusive) {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(None),
            gate => gate.map(Some),
        }
    }

    fn lock(&self, name: &str, how: FlockOperation) -> io::Result<FileLock> {
        let path = self.root.join(name);
        let file = fs::OpenOptions::new().write(true).create(true).truncate(false).open(path)?;
        rustix::fs::flock(&file, how)?;
        Ok(FileLock::new(file))
    }

    /// Lists the ids in `sandboxes/`, `slots/` or `trash/`.
    pub(crate) fn ids(&self, folder: &str) -> io::Result<Vec<SandboxId>> {
        let mut ids = Vec::new();
        let entries = match fs::read_dir(self.root.join(folder)) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(ids),
            entries => entries?,
        };
        for entry in entries {
            if let Some(id) = entry?.file_name().to_str().and_then(|name| SandboxId::parse(name).ok()) {
                ids.push(id);
            }
        }
        ids.sort();
        Ok(ids)
    }

    /// Returns the id that holds a name, if its sandbox exists.
    pub(crate) fn id_of_name(&self, name: &SandboxName) -> Option<SandboxId> {
        self.holder("names", name.as_str())
    }

    /// Returns the name that a sandbox holds.
    pub(crate) fn name_of(&self, id: &SandboxId) -> Option<SandboxName> {
        let names = fs::read_dir(self.root.join("names")).ok()?;
        names.filter_map(|entry| SandboxName::parse(entry.ok()?.file_name().to_str()?).ok()).find(|name| {
            let held = fs::read_link(self.root.join("names").join(name.as_str()));
            held.is_ok_and(|target| target.as_os_str() == id.as_str())
        })
    }

    fn holder(&self, folder: &str, key: &str) -> Option<SandboxId> {
        let target = fs::read_link(self.root.join(folder).join(key)).ok()?;
        let id = SandboxId::parse(target.to_str()?).ok()?;
        self.sandbox(&id).exists().then_some(id)
    }

    /// Claims a name for a sandbox whose directory exists. Returns `false` if another sandbox has
    /// it.
    pub(crate) fn take_name(&self, name: &SandboxName, id: &SandboxId) -> io::Result<bool> {
        self.take("names", name.as_str(), id, || Ok(true))
    }

    /// Claims a block of host ids, if `note` notes it for the whole host. Returns `false`, and claims
    /// nothing, if another sandbox has it.
    pub(crate) fn take_block(
        &self,
        block: u32,
        id: &SandboxId,
        note: impl Fn() -> io::Result<bool>,
    ) -> io::Result<bool> {
        self.take("blocks", &block.to_string(), id, note)
    }

    /// Claims the block that a sandbox has had, if it is not claimed for it already. Returns `false`
    /// if another sandbox has it.
    pub(crate) fn keep_block(&self, block: u32, id: &SandboxId) -> io::Result<bool> {
        let is_own = self.holder_of_block(block).is_some_and(|holder| holder == *id);
        Ok(is_own || self.take_block(block, id, || Ok(true))?)
    }

    /// Notes a block for the whole host if it is claimed.
    pub(crate) fn note_block(&self, block: u32, note: impl Fn() -> io::Result<bool>) -> io::Result<bool> {
        let _together = self.gate(FlockOperation::LockShared)?;
        if self.is_block_free(block)? { Ok(false) } else { note() }
    }

    /// Lists the blocks that are claimed.
    pub(crate) fn blocks(&self) -> io::Result<HashSet<u32>> {
        blocks_in(&self.root.join("blocks"))
    }

    /// Returns the sandbox that has a block, if it is there.
    pub(crate) fn holder_of_block(&self, block: u32) -> Option<SandboxId> {
        self.holder("blocks", &block.to_string())
    }

    /// Tells whether no sandbox has a block, not even one in the trash. What can't be looked at is no
    /// answer.
    pub(crate) fn is_block_free(&self, block: u32) -> io::Result<bool> {
        let text = match fs::read_link(self.root.join("blocks").join(block.to_string())) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(true),
            text => text?,
        };
        let Some(id) = text.to_str().and_then(|text| SandboxId::parse(text).ok()) else { return Ok(true) };
        for place in ["sandboxes", "slots", "trash"] {
            if self.root.join(place).join(id.as_str()).try_exists()? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Makes one atomic claim, if `confirm` agrees when it is made. A claim whose sandbox is gone,
    /// from the trash as well, is taken over.
    fn take(
        &self,
        folder: &str,
        key: &str,
        id: &SandboxId,
        confirm: impl Fn() -> io::Result<bool>,
    ) -> io::Result<bool> {
        let claim = self.root.join(folder).join(key);
        loop {
            {
                let _together = self.gate(FlockOperation::LockShared)?;
                match symlink(id.as_str(), &claim) {
                    Ok(()) => {
                        let confirmed = confirm();
                        if !matches!(confirmed, Ok(true)) {
                            fs::remove_file(&claim)?;
                        }
                        return confirmed;
                    }
                    Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                    Err(error) => return Err(error),
                }
            }
            if !self.drop_if_stale(folder, &claim)? {
                return Ok(false);
            }
        }
    }

    /// Tells whether the sandbox that holds a claim exists.
    fn is_held(&self, folder: &str, claim: &Path) -> bool {
        claimant(claim).is_some_and(|id| self.may_hold(folder, &id))
    }

    /// Tells whether a sandbox exists and so may hold claims. A range of ids is held until no file
    /// with these ids is left.
    fn may_hold(&self, folder: &str, id: &SandboxId) -> bool {
        let has_ids = || self.slot(id).exists() || self.trash(id).exists();
        self.sandbox(id).exists() || (folder == "blocks" && has_ids())
    }

    /// Makes a slot the directory of the new sandbox `id`, which then holds the slot's range of host
    /// ids. Returns `false`, and changes nothing, if the id is in use. The gate is shared
    /// throughout, so no process takes the range's claim for stale. If this process is killed in
    /// between, the range is free while files with its ids are left: no program has run in a slot.
    pub(crate) fn fill_slot(&self, slot: &SandboxId, id: &SandboxId, block: u32) -> io::Result<bool> {
        let _together = self.gate(FlockOperation::LockShared)?;
        if self.trash(id).exists() {
            return Ok(false);
        }
        let (from, to) = (self.slot(slot), self.sandbox(id));
        let flags = rustix::fs::RenameFlags::NOREPLACE;
        match rustix::fs::renameat_with(rustix::fs::CWD, from, rustix::fs::CWD, to, flags) {
            Err(Errno::EXIST | Errno::NOTEMPTY) => return Ok(false),
            moved => moved?,
        }
        let claim = self.root.join("blocks").join(block.to_string());
        // Named after the new sandbox, so that one which a killed process leaves is found stale.
        let made = self.root.join("blocks").join(format!("{block}.{id}"));
        symlink(id.as_str(), &made)?;
        fs::rename(made, claim)?;
        Ok(true)
    }

    /// Removes a claim if it is stale. Holds the gate alone, so that no process makes a claim
    /// meanwhile.
    fn drop_if_stale(&self, folder: &str, claim: &Path) -> io::Result<bool> {
        let _alone = self.gate(FlockOperation::LockExclusive)?;
        if self.is_held(folder, claim) {
            return Ok(false);
        }
        match fs::remove_file(claim) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
            _ => Ok(true),
        }
    }

    /// Removes the claims of sandboxes that are gone. `held` are claims of sandboxes that were there a
    /// moment ago; they are not looked at.
    pub(crate) fn drop_stale_claims(&self, held: &Claims) -> io::Result<()> {
        for (folder, held) in [("names", &held.names), ("blocks", &held.blocks)] {
            let entries = match fs::read_dir(self.root.join(folder)) {
                Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
                entries => entries?,
            };
            for entry in entries {
                let name = entry?.file_name();
                let claim = self.root.join(folder).join(&name);
                if !name.to_str().is_some_and(|name| held.contains(name)) && !self.is_held(folder, &claim) {
                    self.drop_if_stale(folder, &claim)?;
                }
            }
        }
        Ok(())
    }

    /// Gives up a sandbox's name, if the sandbox still holds it.
    pub(crate) fn release_name(&self, name: &SandboxName, id: &SandboxId) -> io::Result<()> {
        self.release("names", name.as_str(), id, || ())
    }

    /// Gives up a sandbox's range of ids, after `forget` has removed the note for the whole host.
    pub(crate) fn release_block(&self, block: u32, id: &SandboxId, forget: impl Fn()) -> io::Result<()> {
        self.release("blocks", &block.to_string(), id, forget)
    }

    /// Gives up a claim if the sandbox still has it. The gate is shared, so that nobody takes it for
    /// stale, and makes one of his own, between the look and the removal.
    fn release(&self, folder: &str, key: &str, id: &SandboxId, before: impl Fn()) -> io::Result<()> {
        let claim = self.root.join(folder).join(key);
        let _together = self.gate(FlockOperation::LockShared)?;
        match fs::read_link(&claim) {
            Ok(target) if target.as_os_str() == id.as_str() => {
                before();
                match fs::remove_file(&claim) {
                    // Another process that clears the same sandbox away was faster.
                    Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
                    removed => removed,
                }
            }
            _ => Ok(()),
        }
    }
}

/// Lists the blocks that have an entry in a folder.
pub(crate) fn blocks_in(folder: &Path) -> io::Result<HashSet<u32>> {
    let mut blocks = HashSet::new();
    for entry in fs::read_dir(folder)? {
        blocks.extend(entry?.file_name().to_str().and_then(|name| name.parse::<u32>().ok()));
    }
    Ok(blocks)
}

/// Returns the id of the sandbox that a claim names.
fn claimant(claim: &Path) -> Option<SandboxId> {
    SandboxId::parse(fs::read_link(claim).ok()?.to_str()?).ok()
}

/// The number of ranges of host ids. They lie above the ids of persistent workspaces and below
/// 2^31: systemd lists uids 1,879,048,192–2,147,483,647 as unused.
pub(crate) const BLOCKS: u32 = 4094;

/// Returns the first host id of a block.
pub(crate) fn block_base(block: u32) -> u32 {
    WORKSPACE_BASE + block * RANGE_LEN
}

/// Returns the uid of the account of the sandbox with this block. Accounts lie above all ranges.
pub(crate) fn account_uid(block: u32) -> u32 {
    block_base(BLOCKS + 1) + block
}

/// Resolves the path of a folder that exists or could be made.
fn canonical(path: &Path) -> io::Result<PathBuf> {
    match path.canonicalize() {
        Ok(found) if !found.is_dir() => Err(io::Error::from_raw_os_error(Errno::NOTDIR.raw_os_error())),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            let name = path.file_name().ok_or(error)?;
            let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty());
            Ok(canonical(parent.unwrap_or(Path::new(".")))?.join(name))
        }
        found => found,
    }
}

/// Tells whether one of two canonical paths contains the other.
pub(crate) fn overlap(one: &Path, other: &Path) -> bool {
    one.starts_with(other) || other.starts_with(one)
}

fn not_opened(root: &Path, error: io::Error) -> Error {
    SetupFailure::of_goal("open the state folder", root.display().to_string(), error).into_error()
}

/// Returns every host id that a sandbox with this block uses.
pub(crate) fn ids_of(block: u32) -> [Range<u32>; 2] {
    let (base, account) = (block_base(block), account_uid(block));
    [base..base + RANGE_LEN, account..account + 1]
}

/// A sandbox's block of host ids. It is recorded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct IdBlock {
    /// The number of the block, from 1 to [`BLOCKS`].
    pub block: u32,
    /// See [`IdRange::shift`].
    shift: u32,
}

impl IdBlock {
    /// The block of a new sandbox. Its number is the shift, so that the users of different sandboxes
    /// are in different chains of the kernel's.
    pub(crate) fn shifted(block: u32) -> Self {
        Self { block, shift: block }
    }

    /// The block of a sandbox that an earlier version made.
    pub(crate) fn in_order(block: u32) -> Self {
        Self { block, shift: 0 }
    }

    /// Returns the host ids.
    pub(crate) fn range(self) -> IdRange {
        IdRange { base: block_base(self.block), shift: self.shift % RANGE_LEN }
    }
}

/// Writes a file of mode 0600 as a whole: it has this content then, or is as it was before. It is not synced.
pub(crate) fn write_whole(folder: &Path, name: &str, bytes: &[u8]) -> io::Result<()> {
    let made = folder.join(format!("{name}.new"));
    // Of somebody who was killed. Whatever it is, it is not written into.
    match fs::remove_file(&made) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let mut file = fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(&made)?;
    file.write_all(bytes)?;
    fs::rename(made, folder.join(name))
}

/// Makes a directory and its parents. A directory that exists is no error.
pub(crate) fn make_dir(path: &Path, mode: u32) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(mode).create(path)
}

/// Makes a directory in an existing one. A directory that exists is no error. Directories of a
/// sandbox are made this way, so that a destroyed sandbox does not come back.
pub(crate) fn make_child(path: &Path, mode: u32) -> io::Result<()> {
    match DirBuilder::new().mode(mode).create(path) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        made => made,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn state() -> (tempfile::TempDir, StateDir) {
        let dir = tempfile::tempdir().unwrap();
        let state = StateDir::made_at(&dir.path().join("state"));
        (dir, state)
    }

    #[test]
    fn a_folder_is_opened_without_being_made() {
        let dir = tempfile::tempdir().unwrap();
        let state = StateDir::open(&dir.path().join("new/state"), None).unwrap();
        assert_eq!((state.ids("sandboxes").unwrap(), state.has_sandboxes()), (Vec::new(), false));
        assert!(!dir.path().join("new").exists());
        state.make().unwrap();
        assert!(state.has_sandboxes());
    }

    #[test]
    fn a_folder_of_something_else_is_refused_and_stays_as_it_is() {
        let dir = tempfile::tempdir().unwrap();
        fs::write(dir.path().join("passwd"), "").unwrap();
        let error = StateDir::open(dir.path(), None).unwrap_err();
        assert!(error.to_string().contains("such as `passwd`"), "{error}");
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1);
    }

    #[test]
    fn what_a_new_disk_or_a_home_directory_has_is_no_hindrance() {
        let dir = tempfile::tempdir().unwrap();
        for name in ["lost+found", ".profile", "events", "pools/eyot.db"] {
            make_dir(&dir.path().join(name), 0o700).unwrap();
        }
        StateDir::made_at(dir.path());
        fs::write(dir.path().join("note"), "").unwrap();
        StateDir::open(dir.path(), None).unwrap();
    }

    #[test]
    fn a_name_in_use_is_not_taken_and_a_stale_one_is() {
        let (_dir, state) = state();
        let (first, second) = (SandboxId::generate(), SandboxId::generate());
        let name = SandboxName::parse("a").unwrap();
        make_dir(&state.sandbox(&first), 0o700).unwrap();
        assert!(state.take_name(&name, &first).unwrap());
        assert!(!state.take_name(&name, &second).unwrap());
        assert_eq!(state.id_of_name(&name), Some(first.clone()));
        fs::remove_dir(state.sandbox(&first)).unwrap();
        assert_eq!(state.id_of_name(&name), None);
        assert!(state.take_name(&name, &second).unwrap());
    }

    /// Returns the chain of the kernel's table of users (`uidhashentry` in kernel/user.c).
    fn chain(uid: u32) -> usize {
        (((uid >> 7) + uid) & 127) as usize
    }

    #[test]
    fn the_same_user_of_a_thousand_sandboxes_is_spread_over_the_chains_of_the_kernel() {
        for inside in [0, crate::plan::USER_ID, crate::plan::GUEST_ID] {
            let mut chains = [0; 128];
            (1..=1000).for_each(|block| chains[chain(IdBlock::shifted(block).range().host_id(inside))] += 1);
            assert!(chains.iter().all(|users| *users <= 2 * 1000 / 128), "{inside}: {chains:?}");
        }
    }

    #[test]
    fn a_shifted_block_has_no_id_of_another_block() {
        for block in [1, 2, 4093, BLOCKS] {
            let ids =
                IdBlock::in_order(block).range().host_id(0)..IdBlock::in_order(block + 1).range().host_id(0);
            let runs: Vec<_> = IdBlock::shifted(block).range().runs().collect();
            assert!(
                runs.iter().all(|run| ids.start <= run.host && run.host + run.count <= ids.end),
                "{runs:?}"
            );
        }
    }

    #[test]
    fn the_last_block_ends_below_two_to_the_31st() {
        assert!(u64::from(block_base(BLOCKS)) + u64::from(crate::plan::RANGE_LEN) < 1 << 31);
    }

    #[test]
    fn no_range_has_the_user_that_a_sandbox_is_charged_to() {
        let end_of_ranges = block_base(BLOCKS) + crate::plan::RANGE_LEN;
        assert!(end_of_ranges <= account_uid(1) && account_uid(BLOCKS) < 1 << 31);
        assert_ne!(account_uid(1), account_uid(2));
    }

    #[test]
    fn a_release_by_somebody_else_changes_nothing() {
        let (_dir, state) = state();
        let (first, second) = (SandboxId::generate(), SandboxId::generate());
        let name = SandboxName::parse("a").unwrap();
        make_dir(&state.sandbox(&first), 0o700).unwrap();
        state.take_name(&name, &first).unwrap();
        state.release_name(&name, &second).unwrap();
        assert_eq!(state.id_of_name(&name), Some(first));
    }
}
