//! The layers of a sandbox with a disk limit change as those of others do, but its writable layer lies on a disk of its own, and no
//! snapshot keeps a disk. So its files are copied from there, and an empty disk takes the place of the old one. All of that is
//! prepared in the sandbox's directory before the intent is written; then only names change.

use std::fs;
use std::io;
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown};
use std::path::Path;

use eyot::SnapshotId;

use crate::cow_layers::{begin_again, share_bases};
use crate::cow_mount::{COW, COW_WORK};
use crate::disk::{Disks, IMAGE, NEXT_IMAGE};
use crate::plan::{COW_POINTS, ROOT, WORK};
use crate::record::Record;
use crate::state::{StateDir, make_child};
use crate::tree_copy::{TakenBytes, TreeCopy};

/// The copy of the writable layer.
pub(crate) const COPIED_UPPER: &str = "upper.copied";
/// The copy of the copies on write.
const COPIED_COW: &str = "cow.copied";
const LINKS: &str = "links.copied";

/// The part of the host's disk that a copy leaves free: a twentieth.
const SPARE_PART: u64 = 20;

/// A change of the layers that is to be prepared.
pub(crate) enum DiskChange<'a> {
    /// The files become a snapshot.
    Keep {
        /// The most bytes that the copy may cost.
        most_cost: u64,
    },
    /// The files are thrown away for those of the snapshot in this folder.
    Discard {
        /// The snapshot's folder.
        snapshot: &'a Path,
        /// The permission bits of the next root.
        mode: u32,
    },
}

/// Prepares the change for a sandbox that sleeps, whose lock the caller holds. The lock of the snapshots is not needed, since a copy
/// may take long. Returns the room that it takes.
pub(crate) fn prepare(
    (state, disks): (&StateDir, &Disks),
    directory: &Path,
    record: &Record,
    change: &DiskChange<'_>,
) -> io::Result<TakenBytes> {
    let prepared = prepare_parts((state, disks), directory, record, change);
    if prepared.is_err()
        && let Err(error) = forget(directory)
    {
        tracing::warn!(%error, "remove the copy of a disk");
    }
    prepared
}

fn prepare_parts(
    (state, disks): (&StateDir, &Disks),
    directory: &Path,
    record: &Record,
    change: &DiskChange<'_>,
) -> io::Result<TakenBytes> {
    let wanted = disks.wanted(&record.info.spec.limits).map_err(io::Error::other)?;
    let wanted = wanted.ok_or_else(|| io::Error::other("this host can attach no disk any more"))?;
    let old = wanted.attach(directory)?;
    let files = old.path();
    let taken = match change {
        DiskChange::Keep { most_cost } => {
            refuse_without_room(&files, directory)?;
            copy_files(&files, directory, *most_cost)?
        }
        DiskChange::Discard { .. } => TakenBytes::default(),
    };
    let next = wanted.make_next(state, directory)?;
    make_folders(&files, &next.path(), change)?;
    Ok(taken)
}

/// Refuses a copy that would fill the host's disk, on which the disks of others grow.
fn refuse_without_room(files: &Path, directory: &Path) -> io::Result<()> {
    let (from, to) = (rustix::fs::statvfs(files)?, rustix::fs::statvfs(directory)?);
    let used = from.f_blocks.saturating_sub(from.f_bfree).saturating_mul(from.f_frsize);
    let (free, all) = (to.f_bavail.saturating_mul(to.f_frsize), to.f_blocks.saturating_mul(to.f_frsize));
    if has_room(used, free, all) {
        return Ok(());
    }
    let message = format!("its files take {} MiB, and the host's disk has no room for a copy", used >> 20);
    Err(io::Error::new(io::ErrorKind::StorageFull, message))
}

/// Tells whether a disk of `all` bytes, `free` of which are free, has room for a copy of `used` bytes.
fn has_room(used: u64, free: u64, all: u64) -> bool {
    free >= used.saturating_add(all / SPARE_PART)
}

/// Copies the writable layer and the copies on write from the disk to the sandbox's directory.
fn copy_files(files: &Path, directory: &Path, most_cost: u64) -> io::Result<TakenBytes> {
    let mut copy = TreeCopy::new(directory.join(LINKS), most_cost)?;
    if files.join(COW).exists() {
        copy.copy(&files.join(COW), &directory.join(COPIED_COW))?;
    }
    copy.copy(&files.join(ROOT), &directory.join(COPIED_UPPER))?;
    copy.finish()
}

/// Makes the folders of the next disk, with the owners and the modes of the old one's.
fn make_folders(old: &Path, next: &Path, change: &DiskChange<'_>) -> io::Result<()> {
    for name in [ROOT, WORK, COW_WORK, COW_POINTS] {
        let Ok(found) = fs::symlink_metadata(old.join(name)) else { continue };
        let mode = match change {
            DiskChange::Discard { mode, .. } if name == ROOT => *mode,
            _ => found.mode() & 0o7777,
        };
        make_child(&next.join(name), 0o700)?;
        chown(next.join(name), Some(found.uid()), Some(found.gid()))?;
        fs::set_permissions(next.join(name), fs::Permissions::from_mode(mode))?;
    }
    if !old.join(COW).exists() {
        return Ok(());
    }
    let below = match change {
        DiskChange::Keep { .. } => old,
        DiskChange::Discard { snapshot, .. } => snapshot,
    };
    begin_again(next, &old.join(COW), below)
}

/// Completes a change that was prepared: the files become the snapshot `kept_as`, and those below it are in the folder `below`. What a
/// killed process has done already is left alone.
pub(crate) fn complete(
    state: &StateDir,
    directory: &Path,
    kept_as: Option<&SnapshotId>,
    below: Option<&Path>,
) -> io::Result<()> {
    if let Some(id) = kept_as {
        // A snapshot is there once it has its files, so they come last.
        let copies = [(COPIED_COW, state.snapshot(id).join(COW)), (COPIED_UPPER, state.snapshot_files(id))];
        for (name, to) in copies {
            let copied = directory.join(name);
            if copied.exists() {
                fs::rename(copied, to)?;
            }
        }
        // The old disk is the only other place that has them.
        fs::symlink_metadata(state.snapshot_files(id))?;
    }
    match fs::rename(directory.join(NEXT_IMAGE), directory.join(IMAGE)) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    below.map_or(Ok(()), |below| share_bases(directory, below))
}

/// Removes what was prepared for a change that was not begun.
pub(crate) fn forget(directory: &Path) -> io::Result<()> {
    for folder in [COPIED_UPPER, COPIED_COW, LINKS].map(|name| directory.join(name)) {
        if folder.exists() {
            eyot_image::remove_tree(&folder)?;
        }
    }
    match fs::remove_file(directory.join(NEXT_IMAGE)) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whatever_rename_a_process_dies_behind_the_next_one_completes_the_change() {
        for done in 0..=3 {
            let dir = tempfile::tempdir().unwrap();
            let state = StateDir::made_at(&dir.path().join("state"));
            let (id, directory) = (SnapshotId::generate(), dir.path().join("sandbox"));
            make_child(&state.snapshot(&id), 0o700).unwrap();
            fs::create_dir_all(directory.join(COPIED_UPPER)).unwrap();
            fs::create_dir_all(directory.join(COPIED_COW)).unwrap();
            fs::write(directory.join(COPIED_UPPER).join("file"), "kept").unwrap();
            fs::write(directory.join(IMAGE), "old").unwrap();
            fs::write(directory.join(NEXT_IMAGE), "next").unwrap();
            let moves = [
                (directory.join(COPIED_COW), state.snapshot(&id).join(COW)),
                (directory.join(COPIED_UPPER), state.snapshot_files(&id)),
                (directory.join(NEXT_IMAGE), directory.join(IMAGE)),
            ];
            moves.iter().take(done).for_each(|(from, to)| fs::rename(from, to).unwrap());
            complete(&state, &directory, Some(&id), None).unwrap();
            assert_eq!(fs::read_to_string(state.snapshot_files(&id).join("file")).unwrap(), "kept", "{done}");
            assert_eq!(fs::read_to_string(directory.join(IMAGE)).unwrap(), "next", "{done}");
            assert!(state.snapshot(&id).join(COW).is_dir() && fs::read_dir(&directory).unwrap().count() == 1);
        }
    }

    #[test]
    fn a_copy_leaves_a_twentieth_of_the_hosts_disk_free() {
        assert!(has_room(95, 100, 100) && !has_room(96, 100, 100));
        assert!(has_room(0, 5, 100) && !has_room(0, 4, 100) && !has_room(u64::MAX, u64::MAX - 1, 100));
    }

    #[test]
    fn an_old_disk_stays_as_long_as_its_files_are_nowhere_else() {
        let dir = tempfile::tempdir().unwrap();
        let state = StateDir::made_at(&dir.path().join("state"));
        for name in [IMAGE, NEXT_IMAGE] {
            fs::write(dir.path().join(name), name).unwrap();
        }
        complete(&state, dir.path(), Some(&SnapshotId::generate()), None).unwrap_err();
        assert_eq!(fs::read_to_string(dir.path().join(IMAGE)).unwrap(), IMAGE);
    }
}
