//! Changes of the layers of a sandbox: its writable layer becomes a snapshot, or is thrown away, and an empty one is put above other
//! layers. The intent, a file with the whole change, is written first, and whoever uses the sandbox next completes what a killed
//! process began. So the sandbox is as it was before, or as it is to be.

use std::fs;
use std::io;
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown};
use std::path::Path;

use eyot::SnapshotId;
use serde::{Deserialize, Serialize};

use crate::cow_layers::{begin_again, share_bases};
use crate::cow_mount::COW;
use crate::disk::has_disk;
use crate::disk_move;
use crate::image::{Lower, SnapshotLayer};
use crate::plan::{NEXT_ROOT, NEXT_WORK, WORK};
use crate::ready::MOVE;
use crate::record::Record;
use crate::state::{StateDir, make_child, write_whole};

/// The writable layer.
const UPPER: &str = "upper";
/// A writable layer that is thrown away.
const DISCARDED: &str = "upper.discarded";

/// Copies on write that are thrown away.
const DISCARDED_COW: &str = "cow.discarded";

/// A directory of the next overlay in an earlier version.
const MAKING: &str = "next.making";

/// The kernel's own directory of an overlay that another one took the place of.
const DISCARDED_WORK: &str = "work.discarded";

/// A change of a sandbox's layers.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[cfg_attr(test, derive(Serialize))]
pub(crate) struct FilesMove {
    /// The snapshot that the writable layer becomes. `None`: it is thrown away.
    pub kept_as: Option<SnapshotId>,
    /// The layers of the sandbox from then on.
    #[serde(flatten)]
    pub lower: Lower,
    /// The permission bits of the new layer's root. `None`: those of the present one, which are noted before it is moved, because
    /// whoever is inside may have closed it.
    #[serde(default)]
    pub mode: Option<u32>,
}

/// A change that was written.
#[derive(Deserialize)]
struct BegunMove {
    #[serde(flatten)]
    change: FilesMove,
    /// The file is the record that the sandbox has after it. Those of an earlier version are not.
    #[serde(default)]
    holds_record: bool,
}

/// The file of a change: the record that the sandbox has after it, and the rest of the change. The last step makes this file the
/// record, which ignores the rest.
#[derive(Serialize)]
struct NextRecord<'a> {
    #[serde(flatten)]
    record: &'a Record,
    kept_as: Option<&'a SnapshotId>,
    #[serde(skip_serializing_if = "Option::is_none")]
    mode: Option<u32>,
    holds_record: bool,
}

/// The bits without which the owner of a directory can't move it to another parent.
const MOVABLE: u32 = 0o700;

impl FilesMove {
    /// Reads the change that was begun in a sandbox's directory, if there is one.
    pub(crate) fn read(directory: &Path) -> io::Result<Option<Self>> {
        Ok(BegunMove::read(directory)?.map(|begun| begun.change))
    }

    /// Makes the change in the directory of a sandbox that sleeps. The caller holds its lock, has completed what was begun, and has
    /// [prepared](crate::disk_move::prepare) the next disk of a sandbox that has one.
    pub(crate) fn make(&self, state: &StateDir, directory: &Path, record: Record) -> io::Result<Record> {
        if has_disk(directory) {
            self.write(directory, &record)?
        } else {
            // Whole directories of before: once the change is begun, they would be taken for its own.
            remove_discarded(directory)?;
            self.write_with_mode(directory, &record)?;
        }
        complete(state, directory, record)
    }

    /// Makes the change that was written as this one, and removes nothing. The caller holds the sandbox's lock.
    pub(crate) fn make_written(
        self,
        state: &StateDir,
        directory: &Path,
        record: Record,
    ) -> io::Result<Record> {
        BegunMove { change: self, holds_record: true }.make(state, directory, record)
    }

    /// Writes the change of a living sandbox, whose [next directories](make_next) are there, and returns it as it was written. It is
    /// [made](Self::make_written) then, or [forgotten](Self::forget).
    pub(crate) fn begin_below(&self, directory: &Path, record: &Record) -> io::Result<Self> {
        // Whoever completes the change takes the next directories as they are. The root may have got another mode since they were
        // made.
        let present = fs::symlink_metadata(directory.join(UPPER))?;
        set_mode(&directory.join(NEXT_ROOT), present.mode() & 0o7777)?;
        self.write_with_mode(directory, record)
    }

    /// Takes the change back, if it was written.
    pub(crate) fn forget(directory: &Path) -> io::Result<()> {
        match fs::remove_file(directory.join(MOVE)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
            _ => remove_discarded(directory),
        }
    }

    fn write_with_mode(&self, directory: &Path, record: &Record) -> io::Result<Self> {
        let present = fs::symlink_metadata(directory.join(UPPER))?.mode() & 0o7777;
        let change = Self { mode: self.mode.or(Some(present)), ..self.clone() };
        change.write(directory, record).map(|()| change)
    }

    fn write(&self, directory: &Path, record: &Record) -> io::Result<()> {
        let record = Record { lower: self.lower.clone(), ..record.clone() };
        let next = NextRecord {
            record: &record,
            kept_as: self.kept_as.as_ref(),
            mode: self.mode,
            holds_record: true,
        };
        write_whole(directory, MOVE, &serde_json::to_vec(&next)?)
    }

    /// Adapts a change that was begun before its state folder was copied. The record is adapted already.
    pub(crate) fn move_below(directory: &Path, record: &Record, state: &Path, was: &Path) -> io::Result<()> {
        let Some(mut change) = Self::read(directory)? else { return Ok(()) };
        change.lower.move_below(state, was)?;
        change.write(directory, record)
    }

    /// Has the kernel write the file of a change to the disk. Returns at once. A file system may write a file before it takes the
    /// place of another one, which takes a tenth of a millisecond.
    pub(crate) fn begin_to_write_out(directory: &Path) {
        let written = fs::File::open(directory.join(MOVE))
            .and_then(|file| Ok(rustix::fs::fadvise(file, 0, None, rustix::fs::Advice::DontNeed)?));
        if let Err(error) = written {
            tracing::debug!(%error, "begin to write out a change of files");
        }
    }
}

impl BegunMove {
    fn read(directory: &Path) -> io::Result<Option<Self>> {
        match fs::read(directory.join(MOVE)) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            bytes => Ok(Some(serde_json::from_slice(&bytes?)?)),
        }
    }

    fn make(self, state: &StateDir, directory: &Path, record: Record) -> io::Result<Record> {
        let Self { change, holds_record } = self;
        if has_disk(directory) {
            let below = change.lower.snapshots.first().map(SnapshotLayer::snapshot_folder);
            disk_move::complete(state, directory, change.kept_as.as_ref(), below)?;
        } else {
            move_copies(state, directory, &change)?;
            move_upper(state, directory, &change)?;
        }
        let record = Record { lower: change.lower, ..record };
        if holds_record {
            Record::replace_by(directory, MOVE)?;
        } else {
            // An earlier version began it.
            record.write(directory)?;
            fs::remove_file(directory.join(MOVE))?;
        }
        Ok(record)
    }
}

/// Completes the change that was begun in a sandbox's directory, if there is one, and removes what is thrown away. Returns the
/// record that it has then. The caller holds its lock. The sandbox counts as asleep, or has another root already: nothing is written
/// to the layer that is moved.
pub(crate) fn complete(state: &StateDir, directory: &Path, record: Record) -> io::Result<Record> {
    let record = match BegunMove::read(directory)? {
        Some(begun) => begun.make(state, directory, record)?,
        None => record,
    };
    remove_discarded(directory)?;
    Ok(record)
}

/// Moves the writable layer, and makes the next one.
fn move_upper(state: &StateDir, directory: &Path, change: &FilesMove) -> io::Result<()> {
    let upper = directory.join(UPPER);
    let old = match &change.kept_as {
        Some(id) => state.snapshot_files(id),
        None => directory.join(DISCARDED),
    };
    if !old.exists() {
        let mode = fs::symlink_metadata(&upper)?.mode() & 0o7777;
        if mode & MOVABLE != MOVABLE {
            fs::set_permissions(&upper, fs::Permissions::from_mode(mode | MOVABLE))?;
        }
        fs::rename(&upper, &old)?;
    }
    if take_next(directory)? {
        return Ok(());
    }
    let found = fs::symlink_metadata(&old)?;
    make_child(&upper, 0o700)?;
    chown(&upper, Some(found.uid()), Some(found.gid()))?;
    let mode = change.mode.unwrap_or(found.mode() & 0o7777);
    fs::set_permissions(&upper, fs::Permissions::from_mode(mode))
}

/// Moves the copies on write. They come first: a snapshot is there once it has its files.
fn move_copies(state: &StateDir, directory: &Path, change: &FilesMove) -> io::Result<()> {
    let copies = directory.join(COW);
    let old = match &change.kept_as {
        Some(id) => state.snapshot(id).join(COW),
        None => directory.join(DISCARDED_COW),
    };
    let Some(below) = change.lower.snapshots.first() else { return Ok(()) };
    if !old.exists() {
        if !copies.exists() {
            return Ok(());
        }
        fs::rename(&copies, &old)?;
    }
    begin_again(directory, &old, below.snapshot_folder())?;
    share_bases(directory, below.snapshot_folder())
}

/// Makes the two directories of an overlay that is to take the place of the present one, with the owner and the mode of those. No
/// change has begun yet.
pub(crate) fn make_next(directory: &Path) -> io::Result<()> {
    remove_discarded(directory)?;
    for (present, next) in [(UPPER, NEXT_ROOT), (WORK, NEXT_WORK)] {
        let (found, next) = (fs::symlink_metadata(directory.join(present))?, directory.join(next));
        let mode = found.mode() & 0o7777;
        make_child(&next, mode & 0o777)?;
        chown(&next, Some(found.uid()), Some(found.gid()))?;
        set_mode(&next, mode)?;
    }
    Ok(())
}

/// Gives a directory these permission bits, if it has others.
fn set_mode(directory: &Path, mode: u32) -> io::Result<()> {
    if fs::symlink_metadata(directory)?.mode() & 0o7777 == mode {
        return Ok(());
    }
    fs::set_permissions(directory, fs::Permissions::from_mode(mode))
}

/// Gives the directories of [`make_next`] their names; `false` if there are none.
fn take_next(directory: &Path) -> io::Result<bool> {
    let at = |name: &str| directory.join(name);
    if at(NEXT_WORK).exists() {
        if at(WORK).exists() {
            fs::rename(at(WORK), at(DISCARDED_WORK))?;
        }
        fs::rename(at(NEXT_WORK), at(WORK))?;
    }
    match fs::rename(at(NEXT_ROOT), at(UPPER)) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        renamed => renamed.map(|()| true),
    }
}

/// Removes what earlier changes have thrown away, or have prepared in vain. A change that was begun needs all of it, and nothing is
/// removed.
pub(crate) fn remove_discarded(directory: &Path) -> io::Result<()> {
    if directory.join(MOVE).try_exists()? {
        return Ok(());
    }
    disk_move::forget(directory)?;
    for discarded in [DISCARDED, DISCARDED_COW, DISCARDED_WORK, NEXT_ROOT, NEXT_WORK, MAKING]
        .map(|name| directory.join(name))
    {
        if discarded.exists() {
            eyot_image::remove_tree(&discarded)?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::tests::record;

    /// A sandbox's directory with a file, and the change that makes a snapshot of it.
    fn scene(keeps: bool) -> (tempfile::TempDir, StateDir, std::path::PathBuf, Record, FilesMove) {
        let dir = tempfile::tempdir().unwrap();
        let state = StateDir::made_at(&dir.path().join("state"));
        let record = record();
        let directory = state.sandbox(&record.info.id);
        fs::create_dir_all(directory.join(UPPER)).unwrap();
        fs::write(directory.join("upper/file"), "kept").unwrap();
        fs::set_permissions(directory.join(UPPER), fs::Permissions::from_mode(0o751)).unwrap();
        record.write(&directory).unwrap();
        let id = SnapshotId::generate();
        make_child(&state.snapshot(&id), 0o700).unwrap();
        let folder = state.snapshot_files(&id).to_str().unwrap().to_owned();
        let snapshots = vec![SnapshotLayer { id: id.clone(), folder, ids: None }];
        let lower = Lower { snapshots, ..Lower::default() };
        (dir, state, directory, record, FilesMove { kept_as: keeps.then_some(id), lower, mode: None })
    }

    fn is_after(state: &StateDir, directory: &Path, change: &FilesMove) {
        assert_eq!(fs::read_dir(directory.join(UPPER)).unwrap().count(), 0);
        assert_eq!(fs::metadata(directory.join(UPPER)).unwrap().mode() & 0o777, 0o751);
        assert_eq!(Record::read(directory).unwrap().lower, change.lower);
        assert!(!directory.join(MOVE).exists() && !directory.join(DISCARDED).exists());
        if let Some(id) = &change.kept_as {
            assert_eq!(fs::read_to_string(state.snapshot_files(id).join("file")).unwrap(), "kept");
        }
    }

    #[test]
    fn whatever_step_a_process_dies_behind_the_next_one_completes_the_change() {
        for keeps in [true, false] {
            for (done, earlier_version) in (0..=4).flat_map(|done| [(done, false), (done, true)]) {
                let (_dir, state, directory, record, change) = scene(keeps);
                if earlier_version {
                    let json =
                        serde_json::to_vec(&FilesMove { mode: Some(0o751), ..change.clone() }).unwrap();
                    write_whole(&directory, MOVE, &json).unwrap();
                } else {
                    change.write_with_mode(&directory, &record).unwrap();
                }
                let old = match &change.kept_as {
                    Some(id) => state.snapshot_files(id),
                    None => directory.join(DISCARDED),
                };
                if done >= 1 {
                    fs::rename(directory.join(UPPER), &old).unwrap();
                }
                if done >= 2 {
                    make_child(&directory.join(UPPER), 0o700).unwrap();
                }
                if done >= 3 {
                    fs::set_permissions(directory.join(UPPER), fs::Permissions::from_mode(0o751)).unwrap();
                }
                if done >= 3 && earlier_version {
                    Record { lower: change.lower.clone(), ..record.clone() }.write(&directory).unwrap();
                }
                if done >= 4 && earlier_version {
                    fs::remove_file(directory.join(MOVE)).unwrap();
                } else if done >= 4 {
                    Record::replace_by(&directory, MOVE).unwrap();
                }
                let record = complete(&state, &directory, Record::read(&directory).unwrap()).unwrap();
                assert_eq!(record.lower, change.lower, "{keeps}, behind step {done}");
                is_after(&state, &directory, &change);
            }
        }
    }

    #[test]
    fn the_next_directories_are_taken_whatever_step_a_process_dies_behind() {
        for done in 0..=3 {
            let (_dir, state, directory, record, change) = scene(true);
            make_child(&directory.join(WORK), 0o755).unwrap();
            fs::set_permissions(directory.join(UPPER), fs::Permissions::from_mode(0o700)).unwrap();
            make_next(&directory).unwrap();
            // It was changed between the two.
            fs::set_permissions(directory.join(UPPER), fs::Permissions::from_mode(0o751)).unwrap();
            change.begin_below(&directory, &record).unwrap();
            fs::write(directory.join(NEXT_ROOT).join("later"), "").unwrap();
            let moves = [
                (directory.join(UPPER), state.snapshot_files(change.kept_as.as_ref().unwrap())),
                (directory.join(WORK), directory.join(DISCARDED_WORK)),
                (directory.join(NEXT_WORK), directory.join(WORK)),
            ];
            moves.iter().take(done).for_each(|(from, to)| fs::rename(from, to).unwrap());
            complete(&state, &directory, record).unwrap();
            assert!(directory.join("upper/later").exists(), "behind step {done}");
            assert_eq!(fs::metadata(directory.join(UPPER)).unwrap().mode() & 0o777, 0o751);
            assert!(directory.join(WORK).is_dir() && !directory.join(MOVE).exists());
            for gone in [NEXT_ROOT, NEXT_WORK, DISCARDED_WORK] {
                assert!(!directory.join(gone).exists(), "{gone}");
            }
        }
    }

    #[test]
    fn next_directories_without_a_change_are_not_taken() {
        let (_dir, state, directory, record, change) = scene(true);
        make_child(&directory.join(WORK), 0o755).unwrap();
        // Killed before the change was written.
        make_next(&directory).unwrap();
        fs::write(directory.join(NEXT_ROOT).join("later"), "").unwrap();
        complete(&state, &directory, record.clone()).unwrap();
        assert!(!directory.join(NEXT_ROOT).exists() && directory.join("upper/file").exists());
        make_next(&directory).unwrap();
        fs::write(directory.join(NEXT_ROOT).join("later"), "").unwrap();
        change.make(&state, &directory, record).unwrap();
        is_after(&state, &directory, &change);
    }

    #[test]
    fn next_directories_have_the_owner_and_the_mode_of_the_present_ones() {
        let (_dir, _state, directory, ..) = scene(true);
        make_child(&directory.join(WORK), 0o700).unwrap();
        for mode in [0o1777, 0o2755, 0o500, 0o666] {
            fs::set_permissions(directory.join(UPPER), fs::Permissions::from_mode(mode)).unwrap();
            make_next(&directory).unwrap();
            let next = fs::metadata(directory.join(NEXT_ROOT)).unwrap();
            assert_eq!(next.mode() & 0o7777, mode);
            let present = fs::metadata(directory.join(UPPER)).unwrap();
            assert_eq!((next.uid(), next.gid()), (present.uid(), present.gid()));
        }
    }

    #[test]
    fn a_change_that_is_made_again_after_a_rollback_throws_away_the_present_files() {
        let (_dir, state, directory, record, change) = scene(false);
        let record = change.make(&state, &directory, record).unwrap();
        is_after(&state, &directory, &change);
        fs::write(directory.join("upper/second"), "").unwrap();
        change.make(&state, &directory, record).unwrap();
        is_after(&state, &directory, &change);
    }
}
