//! The ranges of host ids that are taken on this host, whichever state folder their sandboxes are in.
//! The kernel counts, signals and traces by id, and a file belongs to an id: two sandboxes must not
//! have one in common.
//!
//! Each range has a note in `/run/eyot-ids`, a symbolic link that is named after its block and whose
//! text names a state folder. The claim in that folder ([`crate::state`]) says which sandbox has the
//! range. So a note is true as long as its state folder has such a claim, and is taken over
//! otherwise, whoever was killed before he could remove it. A sleeping sandbox keeps its note.
//!
//! The lock of the folder is held for a few system calls, in which no other lock is waited for. A
//! note that can't be judged now counts as true.
//!
//! Only root has ranges. An Eyot before these notes makes none, but the notes of its sandboxes are
//! made when a later one uses the same state folder.

use std::fs::{self, File};
use std::io;
use std::ops::Range;
use std::os::unix::fs::{MetadataExt, symlink};
use std::path::{Path, PathBuf};

use eyot::{Error, ErrorKind, Result, SandboxId};
use eyot_image::FileLock;
use rustix::fs::{AtFlags, CWD, FlockOperation, StatxFlags, statx};
use rustix::io::Errno;

use crate::condition::Condition;
use crate::ready::ReadyMark;
use crate::record::Lock;
use crate::state::{BLOCKS, StateDir, blocks_in, ids_of, make_child, make_dir};
use crate::subordinate_ids::SubordinateIds;

/// The folder of notes. It is not in `/run/eyot`, which belongs to the user of a server that systemd
/// runs.
const FOLDER: &str = "/run/eyot-ids";
/// The step of a create that makes the folder.
pub(crate) const STEP: &str = "make /run/eyot-ids";

/// The notes of a host.
#[derive(Debug)]
pub(crate) struct HostRanges {
    folder: PathBuf,
}

/// A state folder as a note names it.
#[derive(Debug, Clone, PartialEq, Eq)]
struct RangeHolder {
    /// Device, number and birth of the folder: another folder at the same path is another holder.
    identity: String,
    /// The process namespace of the process that made the note.
    processes: u64,
    /// The path at which that process saw the folder.
    path: PathBuf,
}

impl RangeHolder {
    /// Describes a state folder that exists.
    fn of(state: &StateDir) -> io::Result<Self> {
        let processes = fs::metadata("/proc/self/ns/pid")?.ino();
        Ok(Self { identity: identity(state.root())?, processes, path: state.root().to_owned() })
    }

    fn parse(text: &str) -> Option<Self> {
        let mut words = text.splitn(3, ' ');
        let (identity, processes, path) = (words.next()?, words.next()?, words.next()?);
        Some(Self { identity: identity.to_owned(), processes: processes.parse().ok()?, path: path.into() })
    }

    fn text(&self) -> String {
        format!("{} {} {}", self.identity, self.processes, self.path.display())
    }

    /// Returns the state folder; `None` if it is not there, or can't be seen from here.
    fn state(&self) -> Option<StateDir> {
        let found = identity(&self.path).ok()?;
        (found == self.identity).then(|| StateDir::noted(self.path.clone()))
    }

    /// Tells whether this process can see all processes that the maker of the note could see.
    fn has_visible_processes(&self) -> bool {
        let own = fs::metadata("/proc/self/ns/pid").map(|namespace| namespace.ino());
        own.is_ok_and(|own| own == self.processes || own == FIRST_PROCESS_NAMESPACE)
    }
}

/// The number of the process namespace that all others are in (`PROC_PID_INIT_INO` of the kernel).
const FIRST_PROCESS_NAMESPACE: u64 = 0xEFFF_FFFC;

/// Identifies a folder, also from a later one that was given the same number.
fn identity(folder: &Path) -> io::Result<String> {
    let found = statx(CWD, folder, AtFlags::empty(), StatxFlags::BASIC_STATS | StatxFlags::BTIME)?;
    let born = found.stx_btime;
    let device = format!("{:x}.{:x}", found.stx_dev_major, found.stx_dev_minor);
    Ok(format!("{device}:{:x}:{:x}.{:x}", found.stx_ino, born.tv_sec, born.tv_nsec))
}

impl HostRanges {
    /// The notes of this host. Makes nothing.
    pub(crate) fn of_host() -> Self {
        Self { folder: FOLDER.into() }
    }

    /// Makes the folder, if need be. Refuses one that others than root could change.
    pub(crate) fn make(&self) -> io::Result<()> {
        if let Some(parent) = self.folder.parent() {
            make_dir(parent, 0o755)?;
        }
        make_child(&self.folder, 0o700)?;
        let found = fs::symlink_metadata(&self.folder)?;
        let is_closed = found.is_dir() && found.mode() & 0o077 == 0;
        if is_closed && found.uid() == rustix::process::geteuid().as_raw() {
            return Ok(());
        }
        Err(io::Error::other("it is there, and is no folder that only root may enter"))
    }

    /// Claims a free block of host ids for a sandbox whose directory exists. It belongs to no user of
    /// the host and to no sandbox of any state folder. Returns its number, from 1 to [`BLOCKS`];
    /// `None` if all are taken.
    pub(crate) fn take(
        &self,
        state: &StateDir,
        (id, first_try): (&SandboxId, u32),
        others: &SubordinateIds,
    ) -> io::Result<Option<u32>> {
        let holder = RangeHolder::of(state)?;
        for attempt in 0..BLOCKS {
            let block = (first_try.wrapping_add(attempt)) % BLOCKS + 1;
            let note = || self.note(block, &holder);
            if !others.have_any(&ids_of(block)) && state.take_block(block, id, note)? {
                return Ok(Some(block));
            }
        }
        Ok(None)
    }

    /// Gives up a sandbox's block. Call it when no file with its ids is left.
    pub(crate) fn release(&self, state: &StateDir, block: u32, id: &SandboxId) -> io::Result<()> {
        state.release_block(block, id, || {
            if let Err(error) = RangeHolder::of(state).and_then(|holder| self.forget(block, &holder)) {
                tracing::debug!(%error, block, "forget a range of ids; it is taken over when it is needed");
            }
        })
    }

    /// Makes the note for the block of a sandbox that is woken. The caller holds its lock. A sandbox
    /// of another state folder that has the same ids, such as one of a restored backup, loses its
    /// note if it sleeps. The inner error is a refusal.
    pub(crate) fn keep(&self, state: &StateDir, block: u32, id: &SandboxId) -> io::Result<Result<()>> {
        if !state.keep_block(block, id)? {
            let message = "another sandbox has its range of host ids";
            return Ok(Err(Error::new(ErrorKind::Conflict, message)));
        }
        let holder = RangeHolder::of(state)?;
        let is_noted = || self.note(block, &holder);
        if state.note_block(block, is_noted)? || self.is_taken_from_sleeper(block, &holder)? {
            return Ok(Ok(()));
        }
        let other = self.holder(block)?.map(|other| format!(", `{}`", other.path.display()));
        let message = format!(
            "a sandbox of another state folder{} has its range of host ids",
            other.unwrap_or_default()
        );
        let hint =
            "put that sandbox to sleep, or remove it: `eyot ls --state FOLDER` lists those that are there";
        Ok(Err(Error::new(ErrorKind::Unavailable, message).with_hint(hint)))
    }

    /// Makes the notes that claims of a state folder lack: those of an earlier version, those from
    /// before a restart of the host, and those of a folder that was copied. One that another state
    /// folder has stays that folder's.
    pub(crate) fn note_all(&self, state: &StateDir) -> io::Result<()> {
        let holder = RangeHolder::of(state)?;
        for block in state.blocks()?.difference(&blocks_in(&self.folder)?) {
            state.note_block(*block, || self.note(*block, &holder))?;
        }
        Ok(())
    }

    fn at(&self, block: u32) -> PathBuf {
        self.folder.join(block.to_string())
    }

    /// Locks the folder.
    fn lock(&self, how: FlockOperation) -> io::Result<FileLock> {
        let folder = File::open(&self.folder)?;
        while let Err(error) = rustix::fs::flock(&folder, how) {
            if error != Errno::INTR {
                return Err(error.into());
            }
        }
        Ok(FileLock::new(folder))
    }

    /// Returns the state folder that has a note; `None` if nobody has. A text that is no note is an
    /// error.
    fn holder(&self, block: u32) -> io::Result<Option<RangeHolder>> {
        match fs::read_link(self.at(block)) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            text => {
                let holder = text?.to_str().and_then(RangeHolder::parse);
                holder.map(Some).ok_or_else(|| io::ErrorKind::InvalidData.into())
            }
        }
    }

    /// Makes a note. Returns `false` if another state folder has the block. The caller shares its own
    /// state folder's gate.
    fn note(&self, block: u32, holder: &RangeHolder) -> io::Result<bool> {
        loop {
            match symlink(holder.text(), self.at(block)) {
                Ok(()) => return Ok(true),
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                Err(error) => return Err(error),
            }
            match self.holder(block) {
                Ok(None) => {}
                Ok(Some(found)) if found.identity == holder.identity => return Ok(true),
                Ok(Some(found)) if self.is_dropped(block, &found) => {}
                // What is no note is left alone.
                _ => return Ok(false),
            }
        }
    }

    /// Removes a note, if this holder has it.
    fn forget(&self, block: u32, holder: &RangeHolder) -> io::Result<()> {
        let _together = self.lock(FlockOperation::LockShared)?;
        match self.holder(block)? {
            Some(found) if found.identity == holder.identity => fs::remove_file(self.at(block)),
            _ => Ok(()),
        }
    }

    /// Removes a stale note. Returns `false` if it is not known to be stale.
    fn is_dropped(&self, block: u32, holder: &RangeHolder) -> bool {
        self.drop_if_stale(block, holder).unwrap_or_else(|error| {
            tracing::debug!(%error, block, "look whether a range of ids is in use; it counts as used");
            false
        })
    }

    fn drop_if_stale(&self, block: u32, holder: &RangeHolder) -> io::Result<bool> {
        let is_stale = || match holder.state() {
            Some(state) => state.is_block_free(block),
            None => Ok(holder.has_visible_processes() && !has_processes(&ids_of(block))?),
        };
        if !is_stale()? {
            return Ok(false);
        }
        let _alone = self.lock(FlockOperation::LockExclusive)?;
        // Nobody makes a claim and its note meanwhile.
        let state = holder.state();
        let gate = state.as_ref().map(StateDir::try_gate_alone).transpose()?;
        if gate.is_some_and(|gate| gate.is_none()) || !is_stale()? {
            return Ok(false);
        }
        self.remove_if_of(block, holder)
    }

    /// Takes the note of a sleeping sandbox of another state folder over.
    fn is_taken_from_sleeper(&self, block: u32, holder: &RangeHolder) -> io::Result<bool> {
        let Some(found) = self.holder(block)? else { return self.note(block, holder) };
        let Some(state) = found.state() else { return Ok(false) };
        let Some(id) = state.holder_of_block(block) else { return Ok(false) };
        let directory = state.sandbox(&id);
        // Whoever wakes it holds its lock, and looks for its note.
        let Some(_lock) = Lock::take_if_free(&directory)? else { return Ok(false) };
        let (record, condition) = Condition::of(&directory);
        let has_ended = ReadyMark::read(&directory)? == Some(ReadyMark::ASLEEP);
        let has_groups = record.is_none_or(|record| record.groups.iter().any(|group| group.exists()));
        if condition != Condition::Sleeping || !has_ended || has_groups {
            return Ok(false);
        }
        let _alone = self.lock(FlockOperation::LockExclusive)?;
        Ok(self.remove_if_of(block, &found)? && self.note(block, holder)?)
    }

    /// Removes a note that is still the one of this holder. Returns `false` if it is another's.
    fn remove_if_of(&self, block: u32, holder: &RangeHolder) -> io::Result<bool> {
        match self.holder(block) {
            Ok(None) => Ok(true),
            Ok(Some(found)) if found == *holder => fs::remove_file(self.at(block)).map(|()| true),
            _ => Ok(false),
        }
    }
}

/// Tells whether a process has one of these ids as a user id.
fn has_processes(ids: &[Range<u32>]) -> io::Result<bool> {
    for entry in fs::read_dir("/proc")? {
        let entry = entry?;
        if !entry.file_name().as_encoded_bytes().iter().all(u8::is_ascii_digit) {
            continue;
        }
        let users = match fs::read(entry.path().join("status")) {
            // It has ended.
            Err(error) if error.raw_os_error() == Some(libc::ESRCH) => continue,
            Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
            status => users_in(&String::from_utf8_lossy(&status?)),
        };
        if users.iter().any(|user| ids.iter().any(|ids| ids.contains(user))) {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Reads the user ids in `/proc/PID/status`.
fn users_in(status: &str) -> Vec<u32> {
    let line = status.lines().find_map(|line| line.strip_prefix("Uid:")).unwrap_or_default();
    line.split_whitespace().filter_map(|id| id.parse().ok()).collect()
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use crate::state::{account_uid, block_base};

    use super::*;

    /// A host of the test's own, with two state folders.
    struct World {
        _folder: tempfile::TempDir,
        ranges: HostRanges,
        one: StateDir,
        other: StateDir,
    }

    fn world() -> World {
        let folder = tempfile::tempdir().unwrap();
        let ranges = HostRanges { folder: folder.path().join("run/notes") };
        ranges.make().unwrap();
        let [one, other] = ["one", "other"].map(|name| StateDir::made_at(&folder.path().join(name)));
        World { _folder: folder, ranges, one, other }
    }

    fn sandbox(state: &StateDir) -> SandboxId {
        let id = SandboxId::generate();
        make_dir(&state.sandbox(&id), 0o700).unwrap();
        id
    }

    impl World {
        fn take(&self, state: &StateDir, first_try: u32) -> (SandboxId, u32) {
            let id = sandbox(state);
            let block = self.ranges.take(state, (&id, first_try), &SubordinateIds::default()).unwrap();
            (id, block.unwrap())
        }

        fn whose(&self, block: u32) -> Option<PathBuf> {
            self.ranges.holder(block).unwrap().map(|holder| holder.path)
        }
    }

    #[test]
    fn two_sandboxes_never_share_a_block_in_whichever_state_folders_they_are() {
        let world = world();
        let blocks = [&world.one, &world.one, &world.other, &world.one, &world.other];
        assert_eq!(blocks.map(|state| world.take(state, 7).1), [8, 9, 10, 11, 12]);
        // What was not noted is not claimed.
        let claims: HashSet<u32> = world.other.blocks().unwrap();
        assert_eq!(claims, HashSet::from([10, 12]));
    }

    #[test]
    fn many_at_once_get_blocks_of_their_own() {
        let world = world();
        let take = |state| (0..40).map(|_| world.take(state, 0).1).collect::<Vec<_>>();
        let mut blocks = std::thread::scope(|scope| {
            let states = [&world.one, &world.other, &world.one, &world.other];
            let threads = states.map(|state| scope.spawn(move || take(state)));
            threads.map(|thread| thread.join().unwrap()).concat()
        });
        blocks.sort_unstable();
        blocks.dedup();
        assert_eq!(blocks.len(), 160);
    }

    #[test]
    fn a_block_that_is_given_up_is_free_for_the_other_folder_and_only_its_holder_gives_it_up() {
        let world = world();
        let (id, block) = world.take(&world.one, 7);
        world.ranges.release(&world.other, block, &id).unwrap();
        world.ranges.release(&world.one, block, &sandbox(&world.one)).unwrap();
        assert_eq!(world.whose(block).as_deref(), Some(world.one.root()));
        world.ranges.release(&world.one, block, &id).unwrap();
        assert_eq!((world.whose(block), world.one.blocks().unwrap().len()), (None, 0));
        assert_eq!(world.take(&world.other, 7).1, block);
    }

    #[test]
    fn the_block_of_a_killed_process_is_taken_over_when_its_sandbox_is_gone() {
        let world = world();
        let (id, block) = world.take(&world.one, 7);
        std::fs::rename(world.one.sandbox(&id), world.one.trash(&id)).unwrap();
        assert_eq!(world.take(&world.other, 7).1, block + 1);
        std::fs::remove_dir(world.one.trash(&id)).unwrap();
        assert_eq!(world.take(&world.other, 7).1, block);
        // A process that was killed between its claim's end and its note's.
        std::fs::remove_file(world.other.root().join("blocks").join(block.to_string())).unwrap();
        assert_eq!(world.take(&world.one, 7).1, block);
    }

    #[test]
    fn a_block_whose_holder_is_at_work_counts_as_taken() {
        let world = world();
        let (id, block) = world.take(&world.one, 7);
        std::fs::remove_dir(world.one.sandbox(&id)).unwrap();
        let at_work = world.one.gate(FlockOperation::LockShared).unwrap();
        assert_eq!(world.take(&world.other, 7).1, block + 1);
        drop(at_work);
        assert_eq!(world.take(&world.other, 7).1, block);
    }

    #[test]
    fn the_block_of_a_removed_state_folder_is_taken_over_when_no_process_has_its_ids() {
        let world = world();
        // Blocks that no sandbox on this host ever has.
        let [first, second, third] = [2, 3, 4].map(|above| BLOCKS + above);
        let other = RangeHolder::of(&world.other).unwrap();
        let path = world.one.root().join("gone");
        let gone = RangeHolder { path, ..RangeHolder::of(&world.one).unwrap() };
        symlink(gone.text(), world.ranges.at(first)).unwrap();
        assert!(world.ranges.note(first, &other).unwrap());
        // Of a container whose processes and folders can't be seen from here, unless all can.
        let unseen = RangeHolder { processes: 1, ..gone };
        symlink(unseen.text(), world.ranges.at(second)).unwrap();
        assert_eq!(world.ranges.note(second, &other).unwrap(), unseen.has_visible_processes());
        symlink("no note", world.ranges.at(third)).unwrap();
        assert!(!world.ranges.note(third, &other).unwrap());
    }

    #[test]
    fn a_process_is_found_by_its_users_id() {
        let own = rustix::process::getuid().as_raw();
        assert!(has_processes(std::slice::from_ref(&(own..own + 1))).unwrap());
        assert!(!has_processes(std::slice::from_ref(&(block_base(BLOCKS)..block_base(BLOCKS) + 1))).unwrap());
        assert_eq!(users_in("Name:\tUid:\nUid:\t1\t2\t3\t4\nGid:\t5\n"), [1, 2, 3, 4]);
    }

    #[test]
    fn another_folder_at_the_same_path_is_another_holder() {
        let world = world();
        let before = RangeHolder::of(&world.one).unwrap();
        assert_eq!(before.state().unwrap().root(), world.one.root());
        std::fs::remove_dir_all(world.one.root()).unwrap();
        assert!(before.state().is_none());
        world.one.make().unwrap();
        assert!(before.state().is_none() && before != RangeHolder::of(&world.one).unwrap());
    }

    #[test]
    fn claims_without_a_note_get_one_unless_another_folder_has_it() {
        let world = world();
        let claim = |state: &StateDir, block| {
            assert!(state.take_block(block, &sandbox(state), || Ok(true)).unwrap());
        };
        [8, 9].into_iter().for_each(|block| claim(&world.one, block));
        claim(&world.other, 9);
        for state in [&world.other, &world.one] {
            world.ranges.note_all(state).unwrap();
        }
        assert_eq!(world.whose(8).as_deref(), Some(world.one.root()));
        assert_eq!(world.whose(9).as_deref(), Some(world.other.root()));
        assert_eq!(world.take(&world.other, 7).1, 10);
    }

    #[test]
    fn a_block_that_a_user_of_the_host_has_ids_of_is_left_to_that_user() {
        let world = world();
        let last = block_base(8) + crate::plan::RANGE_LEN - 1;
        let others = SubordinateIds::parse(&format!("joe:{last}:2\njim:{}:1\n", account_uid(10)));
        let id = sandbox(&world.one);
        assert_eq!(world.ranges.take(&world.one, (&id, 7), &others).unwrap(), Some(11));
    }

    #[test]
    fn a_folder_that_others_may_enter_is_refused() {
        use std::os::unix::fs::PermissionsExt;
        let world = world();
        for mode in [0o770, 0o701] {
            fs::set_permissions(&world.ranges.folder, fs::Permissions::from_mode(mode)).unwrap();
            assert!(world.ranges.make().is_err(), "{mode:o}");
        }
        fs::remove_dir(&world.ranges.folder).unwrap();
        symlink(world.one.root(), &world.ranges.folder).unwrap();
        assert!(world.ranges.make().is_err());
    }
}
