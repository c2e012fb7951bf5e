//! The snapshots of native sandboxes: see [`crate::kept_snapshot`] for how they are kept.

use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use async_trait::async_trait;
use eyot::internal::system_reason;
use eyot::{
    BranchPoint, CompareOptions, Error, ErrorKind, FileChanges, NewSnapshot, Result, SandboxId,
    SandboxSnapshots, SandboxSpec, SnapshotId, SnapshotInfo,
};
use eyot_image::FileLock;
use rustix::fs::FlockOperation;

use crate::blocking::on_blocking_thread;
use crate::compared::compare;
use crate::condition::Condition;
use crate::files_move::{self, FilesMove};
use crate::image::{Lower, SnapshotLayer, fits_in_mount};
use crate::kept_snapshot::{self, KeptSnapshot};
use crate::merged_layers::MergedLayers;
use crate::record::{Lock, Record};
use crate::sandboxes::Sandboxes;
use crate::sleep::put_to_sleep;
use crate::snapshot_base::{existing, not_found};

/// The snapshots of the native provider.
pub(crate) struct NativeSnapshots(pub Arc<Sandboxes>);

#[async_trait]
impl SandboxSnapshots for NativeSnapshots {
    async fn take(&self, sandbox: &SandboxId, new: NewSnapshot) -> Result<SnapshotInfo> {
        let id = sandbox.clone();
        self.blocking(move |sandboxes| sandboxes.take_snapshot(&id, new)).await
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
struct StillSandbox {
    record: Record,
    directory: PathBuf,
    _lock: Lock,
}

/// Refuses a snapshot of a sandbox that lies above so many layers that it could not be mounted above one more.
fn refuse_beyond_depth(lower: &Lower) -> Result<()> {
    let mut next = lower.clone();
    let one_more = SnapshotLayer { id: SnapshotId::generate(), folder: String::new(), ids: None };
    next.snapshots.push(one_more);
    if fits_in_mount(&next) {
        return Ok(());
    }
    let (snapshots, layers) = (lower.snapshots.len(), lower.layers.len().max(1));
    let message = format!(
        "take a snapshot: the sandbox lies above {snapshots} of them and {layers} layers of its image, and the kernel takes \
         no more"
    );
    Err(Error::new(ErrorKind::Quota, message)
        .with_hint("roll it back to an earlier one, or make a new sandbox of its files"))
}

impl Sandboxes {
    /// Holds a sleeping sandbox still, and completes what was begun with its files.
    fn hold_still(&self, id: &SandboxId, what: &str) -> Result<StillSandbox> {
        let (id, lock) = self.locked(id.as_str())?;
        let directory = self.state.sandbox(&id);
        let (record, condition) = Condition::of(&directory);
        let record = match (record, condition) {
            (Some(record), Condition::Sleeping | Condition::Dead) => record,
            _ => {
                let message = format!("{what}: the sandbox does not sleep");
                return Err(Error::new(ErrorKind::Conflict, message).with_hint("put it to sleep first"));
            }
        };
        if has_disk(&directory) {
            let message = format!("{what}: a sandbox with a disk limit keeps its files on a disk of its own");
            return Err(Error::new(ErrorKind::Unsupported, message).with_hint("make it without a disk limit"));
        }
        self.state.make()?;
        put_to_sleep(&directory, &record).map_err(failed("end what is left of its guest"))?;
        let record =
            files_move::complete(&self.state, &directory, record).map_err(failed("move its files"))?;
        Ok(StillSandbox { record, directory, _lock: lock })
    }

    fn take_snapshot(&self, id: &SandboxId, new: NewSnapshot) -> Result<SnapshotInfo> {
        let StillSandbox { record, directory, _lock } = self.hold_still(id, "take a snapshot")?;
        refuse_beyond_depth(&record.lower)?;
        let failed = failed("take a snapshot");
        // Alone: of two who want one name, one gets it.
        let _alone = self.state.lock_snapshots(FlockOperation::LockExclusive).map_err(&failed)?;
        // A caller may choose the id.
        if self.state.snapshot(&new.id).exists() {
            let message = format!("take a snapshot: the id `{}` is in use", new.id);
            return Err(Error::new(ErrorKind::AlreadyExists, message).with_hint("leave the id out"));
        }
        if let Some(name) = &new.name
            && kept_snapshot::has_name(&self.state, new.pool.as_ref(), name).map_err(&failed)?
        {
            let message = format!("take a snapshot: the name `{name}` is in use");
            return Err(Error::new(ErrorKind::AlreadyExists, message)
                .with_hint("take another name, or remove that snapshot"));
        }
        let kept = KeptSnapshot {
            id: new.id,
            name: new.name,
            pool: new.pool,
            sandbox: id.clone(),
            sandbox_name: new.sandbox_name,
            labels: new.labels,
            created_ms: kept_snapshot::next_ms(&self.state).map_err(&failed)?,
            // Rules that were changed since are in force in the forks, too.
            spec: SandboxSpec { egress: record.info.spec.egress.clone(), ..new.spec },
            made_from: record.info.spec.clone(),
            lower: record.lower.clone(),
            ids: record.id_block(),
            program_path: record.program_path.clone(),
            own_bytes: None,
            hidden: new.for_forks,
            for_forks: new.for_forks,
        };
        kept.write(&self.state).map_err(&failed)?;
        let lower = kept.lower_with_it(&self.state).map_err(&failed)?;
        let change = FilesMove { kept_as: Some(kept.id.clone()), lower, mode: None };
        change.make(&self.state, &directory, record).map_err(&failed)?;
        let shared = if kept.lower.snapshots.is_empty() { Some(0) } else { None };
        Ok(kept.info(shared))
    }

    fn roll_back(&self, id: &SandboxId, snapshot: &SnapshotId) -> Result<()> {
        let failed = failed("roll back");
        {
            let StillSandbox { record, directory, _lock } = self.hold_still(id, "roll back")?;
            let _used = self.state.lock_snapshots(FlockOperation::LockShared).map_err(&failed)?;
            let kept = existing(&self.state, snapshot).map_err(&failed)?;
            let kept = kept.ok_or_else(|| not_found(snapshot))?;
            if !is_over_same_image(&kept.lower, &record.lower) {
                let message = format!("roll back: snapshot `{snapshot}` is of a sandbox with another image");
                return Err(Error::new(ErrorKind::Conflict, message)
                    .with_hint("make a sandbox from it: `eyot fork SNAPSHOT`"));
            }
            let lower = kept.lower_with_it(&self.state).map_err(&failed)?;
            // A root that was closed since is as open as it was.
            let root = fs::symlink_metadata(self.state.snapshot_files(&kept.id)).map_err(&failed)?;
            let change = FilesMove { kept_as: None, lower, mode: Some(root.mode() & 0o7777) };
            change.make(&self.state, &directory, record).map_err(&failed)?;
        }
        kept_snapshot::collect(&self.state).map_err(failed)
    }

    /// Compares two sides. The lock of the snapshots is held only while their layers are opened, since a comparison may read for
    /// minutes. Whoever moved or removed a layer meanwhile changed the sides: then the comparison is begun anew.
    fn compare(&self, from: &BranchPoint, to: &BranchPoint, options: &CompareOptions) -> Result<FileChanges> {
        let failed = failed("compare files");
        let below = Path::new(options.path.as_str().trim_start_matches('/')).to_owned();
        for _ in 0..COMPARISON_TRIES {
            // Before the snapshots are locked: whoever has a sandbox's lock may be waiting for theirs.
            [from, to].into_iter().try_for_each(|point| self.complete_move(point))?;
            let (paths, [from_layers, to_layers]) = self.opened_sides(from, to)?;
            let found = compare(&from_layers, &to_layers, &below, options.text);
            if self.sides(from, to)?.1 == paths {
                return found.map_err(failed);
            }
        }
        let message = "compare files: they were moved or removed while they were compared";
        Err(Error::new(ErrorKind::Unavailable, message)
            .with_hint("try again when nobody takes snapshots of them"))
    }

    fn opened_sides(&self, from: &BranchPoint, to: &BranchPoint) -> Result<(SidePaths, [MergedLayers; 2])> {
        let failed = failed("compare files");
        let (_used, paths) = self.sides(from, to)?;
        let [from, to] = paths.clone().map(MergedLayers::open);
        Ok((paths, [from.map_err(&failed)?, to.map_err(failed)?]))
    }

    /// Returns the layers of both sides, with the lock under which they stay where they are.
    fn sides(&self, from: &BranchPoint, to: &BranchPoint) -> Result<(FileLock, SidePaths)> {
        let used = self.state.lock_snapshots(FlockOperation::LockShared).map_err(failed("compare files"))?;
        let (from, to) = (self.side(from)?, self.side(to)?);
        if !is_over_same_image(&from.lower, &to.lower) {
            return Err(Error::new(
                ErrorKind::Conflict,
                "compare files: the two sides have different images",
            ));
        }
        Ok((used, [from.layers(), to.layers()]))
    }

    fn side(&self, point: &BranchPoint) -> Result<ComparedSide> {
        let failed = failed("compare files");
        match point {
            BranchPoint::Snapshot(id) => {
                let kept = existing(&self.state, id).map_err(&failed)?.ok_or_else(|| not_found(id))?;
                Ok(ComparedSide { top: None, lower: kept.lower_with_it(&self.state).map_err(failed)? })
            }
            BranchPoint::Base(id) => {
                let (record, _) = self.recorded(id)?;
                Ok(ComparedSide { top: None, lower: record.lower })
            }
            BranchPoint::Sandbox(id) => {
                let (record, directory) = self.recorded(id)?;
                if has_disk(&directory) {
                    let message =
                        "compare files: a sandbox with a disk limit keeps its files on a disk of its own";
                    return Err(
                        Error::new(ErrorKind::Unsupported, message).with_hint("make it without a disk limit")
                    );
                }
                Ok(ComparedSide { top: Some(directory.join("upper")), lower: record.lower })
            }
        }
    }

    /// Completes the move of a sandbox's files that a killed process has begun.
    fn complete_move(&self, point: &BranchPoint) -> Result<()> {
        let (BranchPoint::Sandbox(id) | BranchPoint::Base(id)) = point else { return Ok(()) };
        let id = self.id_of(id.as_str())?;
        let begun =
            FilesMove::read(&self.state.sandbox(&id)).map_err(failed("read the record of a sandbox"))?;
        if begun.is_some() {
            self.hold_still(&id, "complete the move of its files").map(drop)?;
        }
        Ok(())
    }

    /// Returns the record of a sandbox whose files are not being moved.
    fn recorded(&self, id: &SandboxId) -> Result<(Record, PathBuf)> {
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

/// The folders of the layers of both sides, topmost first.
type SidePaths = [Vec<PathBuf>; 2];

/// The layers of one side of a comparison.
struct ComparedSide {
    top: Option<PathBuf>,
    lower: Lower,
}

impl ComparedSide {
    fn layers(&self) -> Vec<PathBuf> {
        let below = self.lower.folders().into_iter().map(|(folder, _)| folder);
        self.top.clone().into_iter().chain(below).collect()
    }
}

fn is_over_same_image(one: &Lower, other: &Lower) -> bool {
    (&one.folder, &one.layers) == (&other.folder, &other.layers)
}

fn has_disk(directory: &Path) -> bool {
    directory.join(crate::disk::IMAGE).exists()
}

fn failed(what: &'static str) -> impl Fn(io::Error) -> Error {
    move |error| {
        let kind = match error.kind() {
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => ErrorKind::Quota,
            _ => ErrorKind::Internal,
        };
        Error::new(kind, format!("{what}: {}", system_reason(&error))).with_source(error)
    }
}
