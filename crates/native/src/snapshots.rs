//! The snapshots of native sandboxes: see [`crate::kept_snapshot`] for how they are kept.

use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use async_trait::async_trait;
use eyot::internal::{different_images, of_another_image};
use eyot::{
    AwakeSnapshot, BranchPoint, CompareOptions, Error, ErrorKind, FileChanges, ImageInfo, NewImage,
    NewSnapshot, Result, SandboxId, SandboxName, SandboxPath, SandboxSnapshots, SnapshotId, SnapshotInfo,
};
use eyot_image::FileLock;
use rustix::fs::FlockOperation;

use crate::blocking::{on_blocking_thread, on_blocking_thread_and_after};
use crate::commit::CommitStop;
use crate::compared::{ComparedPart, compare};
use crate::condition::Condition;
use crate::copies::copied_layers;
use crate::cow_mount::CowMount;
use crate::disk::{ComparedDisk, has_disk};
use crate::disk_move::{self, DiskChange};
use crate::files_move::{self, FilesMove};
use crate::folder_change;
use crate::image::Lower;
use crate::kept_snapshot;
use crate::merged_layers::MergedLayers;
use crate::new_snapshot::{NotedSnapshot, TAKE, beyond_bytes, failed};
use crate::plan::ROOT;
use crate::record::{Lock, Record};
use crate::sandboxes::Sandboxes;
use crate::sleep::put_to_sleep;
use crate::snapshot_base::{existing, not_found};
use crate::tree_copy::TakenBytes;

/// The snapshots of the native provider.
pub(crate) struct NativeSnapshots(pub Arc<Sandboxes>);

#[async_trait]
impl SandboxSnapshots for NativeSnapshots {
    async fn take(&self, sandbox: &SandboxId, new: NewSnapshot) -> Result<SnapshotInfo> {
        let id = sandbox.clone();
        self.blocking(move |sandboxes| sandboxes.take_snapshot(&id, new)).await
    }

    async fn take_awake(&self, sandbox: &SandboxId, new: &NewSnapshot) -> Result<Option<AwakeSnapshot>> {
        let (sandboxes, id, new) = (Arc::clone(&self.0), sandbox.clone(), new.clone());
        on_blocking_thread_and_after(move || sandboxes.take_awake(&id, new)).await
    }

    async fn roll_back(&self, sandbox: &SandboxId, snapshot: &SnapshotId) -> Result<()> {
        let (id, snapshot) = (sandbox.clone(), snapshot.clone());
        self.blocking(move |sandboxes| sandboxes.roll_back(&id, &snapshot)).await
    }

    async fn list(&self) -> Result<Vec<SnapshotInfo>> {
        self.blocking(|sandboxes| kept_snapshot::list(&sandboxes.state).map_err(failed("list the snapshots")))
            .await
    }

    async fn list_with_sizes(&self) -> Result<Vec<SnapshotInfo>> {
        let work = |sandboxes: &Sandboxes| kept_snapshot::list_with_sizes(&sandboxes.state);
        self.blocking(move |sandboxes| work(sandboxes).map_err(failed("list the snapshots"))).await
    }

    async fn find(&self, snapshot: &SnapshotId) -> Result<Option<SnapshotInfo>> {
        let id = snapshot.clone();
        self.blocking(move |sandboxes| {
            kept_snapshot::find(&sandboxes.state, &id).map_err(failed("find a snapshot"))
        })
        .await
    }

    async fn bytes_of_pool(&self, pool: &SandboxName) -> Result<u64> {
        let pool = pool.clone();
        self.blocking(move |sandboxes| {
            kept_snapshot::bytes_of_pool(&sandboxes.state, Some(&pool)).map_err(failed("count the snapshots"))
        })
        .await
    }

    async fn remove(&self, snapshot: &SnapshotId) -> Result<()> {
        let id = snapshot.clone();
        self.blocking(move |sandboxes| {
            let removed = kept_snapshot::remove(&sandboxes.state, &id);
            if removed.map_err(failed("remove a snapshot"))? { Ok(()) } else { Err(not_found(&id)) }
        })
        .await
    }

    async fn compare(
        &self,
        from: &BranchPoint,
        to: &BranchPoint,
        options: &CompareOptions,
    ) -> Result<FileChanges> {
        let (from, to, options) = (from.clone(), to.clone(), options.clone());
        self.blocking(move |sandboxes| sandboxes.compare(&from, &to, &options)).await
    }

    async fn check_commit(&self, point: &BranchPoint, image: &NewImage) -> Result<()> {
        let (point, image) = (point.clone(), image.clone());
        self.blocking(move |sandboxes| sandboxes.check_commit(&point, &image)).await
    }

    async fn commit(&self, snapshot: &SnapshotId, image: &NewImage) -> Result<ImageInfo> {
        let (id, image, stop) = (snapshot.clone(), image.clone(), CommitStop::default());
        let is_stopped = Arc::clone(&stop.0);
        self.blocking(move |sandboxes| sandboxes.commit(&id, &image, &is_stopped)).await
    }
}

impl NativeSnapshots {
    async fn blocking<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Sandboxes) -> Result<T> + Send + 'static,
    ) -> Result<T> {
        let sandboxes = Arc::clone(&self.0);
        on_blocking_thread(move || work(&sandboxes)).await
    }
}

/// A sandbox that sleeps, locked. No process of it runs.
pub(crate) struct StillSandbox {
    pub record: Record,
    pub directory: PathBuf,
    _lock: Lock,
}

impl Sandboxes {
    /// Holds a sleeping sandbox still, and completes what was begun with its files.
    pub(crate) fn hold_still(&self, id: &SandboxId, what: &str) -> Result<StillSandbox> {
        let (id, lock) = self.locked(id.as_str())?;
        self.hold_locked_still(&id, lock, what)
    }

    fn hold_locked_still(&self, id: &SandboxId, lock: Lock, what: &str) -> Result<StillSandbox> {
        let directory = self.state.sandbox(id);
        let (record, condition) = Condition::of(&directory);
        let record = match (record, condition) {
            (Some(record), Condition::Sleeping | Condition::Dead) => record,
            _ => {
                let message = format!("{what}: the sandbox does not sleep");
                return Err(Error::new(ErrorKind::Conflict, message).with_hint("put it to sleep first"));
            }
        };
        self.state.make()?;
        put_to_sleep(&directory, &record).map_err(failed("end what is left of its guest"))?;
        folder_change::recover(&directory).map_err(failed("undo an apply"))?;
        let record =
            files_move::complete(&self.state, &directory, record).map_err(failed("move its files"))?;
        Ok(StillSandbox { record, directory, _lock: lock })
    }

    fn take_snapshot(&self, id: &SandboxId, new: NewSnapshot) -> Result<SnapshotInfo> {
        let StillSandbox { record, directory, _lock } = self.hold_still(id, "take a snapshot")?;
        let copied = if has_disk(&directory) {
            if let Some(last) = self.last_of_same_disk(&record, &directory, &new)? {
                return Ok(last);
            }
            Some(self.copy_disk(&record, &directory, &new)?)
        } else {
            None
        };
        let taken = self.take_still(record, &directory, new, copied);
        if copied.is_some() && taken.is_err() {
            self.forget_copy(&directory);
        }
        taken
    }

    fn take_still(
        &self,
        record: Record,
        directory: &Path,
        new: NewSnapshot,
        copied: Option<TakenBytes>,
    ) -> Result<SnapshotInfo> {
        let kept = {
            // Alone: of two who want one name, one gets it.
            let _alone = self.state.lock_snapshots(FlockOperation::LockExclusive).map_err(failed(TAKE))?;
            match self.note_snapshot(&record, directory, new, copied)? {
                NotedSnapshot::Last(info) => Err(info),
                NotedSnapshot::New(kept) => {
                    let change = self.move_into(&kept, directory)?;
                    change.make(&self.state, directory, record).map_err(failed(TAKE))?;
                    Ok(kept)
                }
            }
        };
        match kept {
            Ok(kept) => Ok(kept.info_of_new()),
            Err(last) => {
                self.forget_copy(directory);
                Ok(*last)
            }
        }
    }

    /// Returns the last snapshot where the disk has nothing that was written since, and that is enough.
    fn last_of_same_disk(
        &self,
        record: &Record,
        directory: &Path,
        new: &NewSnapshot,
    ) -> Result<Option<SnapshotInfo>> {
        if !new.for_forks || record.lower.snapshots.is_empty() {
            return Ok(None);
        }
        let disk = ComparedDisk::open(&self.disks, directory).map_err(failed(TAKE))?;
        let _used = self.state.lock_snapshots(FlockOperation::LockShared).map_err(failed(TAKE))?;
        self.last_of_same_files(record, &disk.path().join(ROOT), new)
    }

    /// Copies the files of a disk, which may take long, unless the snapshot can't be taken anyway.
    fn copy_disk(&self, record: &Record, directory: &Path, new: &NewSnapshot) -> Result<TakenBytes> {
        let held = {
            let _used = self.state.lock_snapshots(FlockOperation::LockShared).map_err(failed(TAKE))?;
            self.refuse_snapshot(record, new)?;
            kept_snapshot::bytes_of_pool(&self.state, new.pool.as_ref()).map_err(failed(TAKE))?
        };
        let most = new.most_bytes_of_pool.unwrap_or(u64::MAX);
        let change = DiskChange::Keep { most_cost: most.saturating_sub(held) };
        disk_move::prepare((&self.state, &self.disks), directory, record, &change).map_err(
            |error| match error.kind() {
                // Not the host's own refusal.
                io::ErrorKind::QuotaExceeded if error.raw_os_error().is_none() => beyond_bytes(most),
                _ => failed(TAKE)(error),
            },
        )
    }

    /// Removes the copy of a disk that no snapshot has become, unless a change was begun that needs it.
    fn forget_copy(&self, directory: &Path) {
        let forgotten = match FilesMove::read(directory) {
            Ok(None) => disk_move::forget(directory),
            begun => begun.map(drop),
        };
        if let Err(error) = forgotten {
            tracing::warn!(%error, "remove the copy of a disk; the next use of its sandbox tries again");
        }
    }

    fn roll_back(&self, id: &SandboxId, snapshot: &SnapshotId) -> Result<()> {
        let failed = failed("roll back");
        {
            let StillSandbox { record, directory, _lock } = self.hold_still(id, "roll back")?;
            let _used = self.state.lock_snapshots(FlockOperation::LockShared).map_err(&failed)?;
            let kept = existing(&self.state, snapshot).map_err(&failed)?;
            let kept = kept.ok_or_else(|| not_found(snapshot))?;
            if !is_over_same_image(&kept.lower, &record.lower) {
                return Err(of_another_image(snapshot));
            }
            if !have_same_copies(&kept.cow, &record.cow) {
                let message =
                    format!("roll back: snapshot `{snapshot}` is of a sandbox with other copies on write");
                return Err(Error::new(ErrorKind::Conflict, message)
                    .with_hint("make a sandbox from it: `eyot fork SNAPSHOT`"));
            }
            let lower = kept.lower_with_it(&self.state).map_err(&failed)?;
            // A root that was closed since is as open as it was.
            let root = fs::symlink_metadata(self.state.snapshot_files(&kept.id)).map_err(&failed)?;
            let mode = root.mode() & 0o7777;
            if has_disk(&directory) {
                let change = DiskChange::Discard { snapshot: &self.state.snapshot(&kept.id), mode };
                disk_move::prepare((&self.state, &self.disks), &directory, &record, &change)
                    .map_err(&failed)?;
            }
            let change = FilesMove { kept_as: None, lower, mode: Some(mode) };
            change.make(&self.state, &directory, record).map_err(&failed)?;
        }
        kept_snapshot::collect(&self.state).map_err(failed)
    }

    /// Compares two sides. The lock of the snapshots is held only while their layers are opened, since a comparison may read for
    /// minutes. Whoever moved or removed a layer meanwhile changed the sides: then the comparison is begun anew.
    fn compare(&self, from: &BranchPoint, to: &BranchPoint, options: &CompareOptions) -> Result<FileChanges> {
        let failed = failed("compare files");
        for _ in 0..COMPARISON_TRIES {
            // Before the snapshots are locked: whoever has a sandbox's lock may be waiting for theirs.
            [from, to].into_iter().try_for_each(|point| self.complete_move(point))?;
            let disks = self.disks_of([from, to])?;
            let Some((paths, parts)) = self.opened_sides([from, to], &disks, &options.path)? else {
                continue;
            };
            let found = compare(&parts, options.text);
            if self.sides([from, to], &disks)?.is_some_and(|(_, now)| now == paths) {
                return found.map_err(failed);
            }
        }
        let message = "compare files: they were moved or removed while they were compared";
        Err(Error::new(ErrorKind::Unavailable, message)
            .with_hint("try again when nobody takes snapshots of them"))
    }

    /// Opens the disks of the sandboxes that are compared.
    fn disks_of(&self, points: [&BranchPoint; 2]) -> Result<[Option<ComparedDisk>; 2]> {
        let open = |point: &BranchPoint| {
            let BranchPoint::Sandbox(id) = point else { return Ok(None) };
            let directory = self.state.sandbox(&self.id_of(id.as_str())?);
            if has_disk(&directory) { self.open_disk(id).map(Some) } else { Ok(None) }
        };
        let [from, to] = points.map(open);
        Ok([from?, to?])
    }

    /// Opens the disk of a sandbox to look at it. The sandbox neither wakes nor falls asleep meanwhile.
    pub(crate) fn open_disk(&self, id: &SandboxId) -> Result<ComparedDisk> {
        let (id, _lock) = self.locked(id.as_str())?;
        ComparedDisk::open(&self.disks, &self.state.sandbox(&id))
            .map_err(failed("open the disk of a sandbox"))
    }

    fn opened_sides(
        &self,
        points: [&BranchPoint; 2],
        disks: &[Option<ComparedDisk>; 2],
        below: &SandboxPath,
    ) -> Result<Option<(Vec<PartPaths>, Vec<ComparedPart>)>> {
        let Some((_used, paths)) = self.sides(points, disks)? else { return Ok(None) };
        let parts = paths.iter().filter_map(|part| part.open(below)).collect::<io::Result<_>>();
        Ok(Some((paths, parts.map_err(failed("compare files"))?)))
    }

    /// Returns the layers of both sides, with the lock under which they stay where they are; `None` if a sandbox has another disk than
    /// the one that was opened.
    fn sides(
        &self,
        [from, to]: [&BranchPoint; 2],
        [disk_of_from, disk_of_to]: &[Option<ComparedDisk>; 2],
    ) -> Result<Option<(FileLock, Vec<PartPaths>)>> {
        let used = self.state.lock_snapshots(FlockOperation::LockShared).map_err(failed("compare files"))?;
        let sides = (self.side(from, disk_of_from.as_ref())?, self.side(to, disk_of_to.as_ref())?);
        let (Some(from), Some(to)) = sides else { return Ok(None) };
        if !is_over_same_image(&from.lower, &to.lower) {
            return Err(different_images());
        }
        if !have_same_copies(&from.cow, &to.cow) {
            let message = "compare files: the two sides have different copies on write";
            return Err(Error::new(ErrorKind::Conflict, message));
        }
        Ok(Some((used, PartPaths::of(&from, &to))))
    }

    fn side(&self, point: &BranchPoint, disk: Option<&ComparedDisk>) -> Result<Option<ComparedSide>> {
        let failed = failed("compare files");
        match point {
            BranchPoint::Snapshot(id) => {
                let kept = existing(&self.state, id).map_err(&failed)?.ok_or_else(|| not_found(id))?;
                let lower = kept.lower_with_it(&self.state).map_err(failed)?;
                Ok(Some(ComparedSide { top: None, lower, cow: kept.cow }))
            }
            BranchPoint::Base(id) => {
                let (record, _) = self.recorded(id)?;
                Ok(Some(ComparedSide { top: None, lower: record.lower, cow: record.cow }))
            }
            BranchPoint::Sandbox(id) => {
                let (record, directory) = self.recorded(id)?;
                if disk.is_some_and(|disk| !disk.is_of(&directory)) {
                    return Ok(None);
                }
                let top = Some(disk.map_or(directory, ComparedDisk::path));
                Ok(Some(ComparedSide { top, lower: record.lower, cow: record.cow }))
            }
        }
    }

    /// Completes the move of a sandbox's files that a killed process has begun.
    pub(crate) fn complete_move(&self, point: &BranchPoint) -> Result<()> {
        let (BranchPoint::Sandbox(id) | BranchPoint::Base(id)) = point else { return Ok(()) };
        let id = self.id_of(id.as_str())?;
        let is_begun = || {
            let begun = FilesMove::read(&self.state.sandbox(&id));
            begun.map(|begun| begun.is_some()).map_err(failed("read the record of a sandbox"))
        };
        if !is_begun()? {
            return Ok(());
        }
        let (id, lock) = self.locked(id.as_str())?;
        // A process that is alive completes it itself, and frees the lock.
        if !is_begun()? {
            return Ok(());
        }
        self.hold_locked_still(&id, lock, "complete the move of its files").map(drop)
    }

    /// Returns the record of a sandbox whose files are not being moved.
    pub(crate) fn recorded(&self, id: &SandboxId) -> Result<(Record, PathBuf)> {
        let id = self.id_of(id.as_str())?;
        let directory = self.state.sandbox(&id);
        let failed = failed("read the record of a sandbox");
        if FilesMove::read(&directory).map_err(&failed)?.is_some() {
            let message = format!("compare files: those of sandbox `{id}` are being moved");
            return Err(Error::new(ErrorKind::Unavailable, message).with_hint("try again in a moment"));
        }
        Ok((Record::read(&directory).map_err(failed)?, directory))
    }
}

/// The number of times that a comparison is begun whose files are moved meanwhile.
const COMPARISON_TRIES: usize = 3;

/// One side of a comparison.
struct ComparedSide {
    /// The folder of a sandbox's own files: its directory, or its disk.
    top: Option<PathBuf>,
    lower: Lower,
    cow: Vec<CowMount>,
}

/// The folders of the layers of both sides, topmost first, of all that they have or of what they have at one mount.
#[derive(Debug, Clone, PartialEq, Eq)]
struct PartPaths {
    /// The mount point, relative to the root.
    point: PathBuf,
    paths: [Vec<PathBuf>; 2],
    /// The other parts lie elsewhere. Only the first one has some.
    elsewhere: Vec<PathBuf>,
}

impl PartPaths {
    fn of(from: &ComparedSide, to: &ComparedSide) -> Vec<Self> {
        let point = |mount: &CowMount| relative(&mount.target);
        let elsewhere = from.cow.iter().map(point).collect();
        let root = Self { point: PathBuf::new(), paths: [from.layers(), to.layers()], elsewhere };
        let copied = from.cow.iter().map(|mount| {
            let paths = [from, to].map(|side| copied_layers(mount, side.top.as_deref(), &side.lower));
            Self { point: point(mount), paths, elsewhere: Vec::new() }
        });
        [root].into_iter().chain(copied).collect()
    }

    /// Opens the layers of what lies at `below` and below; `None` if nothing of it does.
    fn open(&self, below: &SandboxPath) -> Option<io::Result<ComparedPart>> {
        let below = relative(below);
        let top = match below.strip_prefix(&self.point) {
            _ if self.elsewhere.iter().any(|point| below.starts_with(point)) => return None,
            Ok(top) => top.to_owned(),
            Err(_) if self.point.starts_with(&below) => PathBuf::new(),
            Err(_) => return None,
        };
        let [from, to] = self.paths.clone().map(MergedLayers::open);
        let part = |(from, to)| ComparedPart { from, to, point: self.point.clone(), top };
        Some(from.and_then(|from| Ok((from, to?))).map(part))
    }
}

/// Returns a path relative to the root.
fn relative(path: &SandboxPath) -> PathBuf {
    PathBuf::from(path.as_str().trim_start_matches('/'))
}

impl ComparedSide {
    fn layers(&self) -> Vec<PathBuf> {
        let below = self.lower.folders().into_iter().map(|(folder, _)| folder);
        self.top.as_ref().map(|top| top.join("upper")).into_iter().chain(below).collect()
    }
}

fn is_over_same_image(one: &Lower, other: &Lower) -> bool {
    (&one.folder, &one.layers) == (&other.folder, &other.layers)
}

fn have_same_copies(one: &[CowMount], other: &[CowMount]) -> bool {
    one.len() == other.len() && one.iter().all(|mount| other.contains(mount))
}
