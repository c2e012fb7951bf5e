//! Snapshots on the disk. The files of one are what was the writable layer of its sandbox: they are moved, not copied,
//! so a snapshot costs the same whatever its size. Those of a disk are copied, see [`crate::disk_move`]. Files keep the host ids of the
//! sandbox that wrote them.
//!
//! A snapshot that was removed, or that was only for forks, stays hidden as long as a sandbox or another snapshot lies above
//! it.

use std::collections::{BTreeMap, HashSet};
use std::fs;
use std::io::{self, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use eyot::internal::now_ms;
use eyot::{SandboxId, SandboxName, SandboxSpec, SnapshotId, SnapshotInfo};
use rustix::fs::FlockOperation;
use serde::{Deserialize, Serialize};

use crate::cow_mount::{COW, CowMount};
use crate::files_move::FilesMove;
use crate::image::{Lower, SnapshotLayer};
use crate::record::Record;
use crate::sparse_copy::BLOCK_BYTES;
use crate::state::{IdBlock, StateDir, make_child, write_whole};

const RECORD: &str = "snapshot.json";

/// The record of a snapshot.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct KeptSnapshot {
    pub id: SnapshotId,
    pub name: Option<SandboxName>,
    pub pool: Option<SandboxName>,
    pub sandbox: SandboxId,
    pub sandbox_name: SandboxName,
    pub labels: BTreeMap<String, String>,
    pub created_ms: i64,
    /// The spec of the sandbox, as its pool knows it.
    pub spec: SandboxSpec,
    /// The spec that the sandbox was made from.
    pub made_from: SandboxSpec,
    /// The layers below its files.
    #[serde(flatten)]
    pub lower: Lower,
    /// The copies on write of its sandbox.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub cow: Vec<CowMount>,
    /// The host ids of the sandbox that wrote its files.
    pub ids: Option<IdBlock>,
    /// The `PATH` of its image.
    pub program_path: Option<String>,
    /// The bytes of its files, once they were counted. They never change.
    pub own_bytes: Option<u64>,
    /// The bytes that it costs of its pool's quota of the disk, if it was copied from a disk.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub copy_cost: Option<u64>,
    /// It is not listed: it was removed, and something lies above it, or it is for forks.
    #[serde(default)]
    pub hidden: bool,
    /// It is only there to make forks from.
    #[serde(default)]
    pub for_forks: bool,
}

impl KeptSnapshot {
    /// Reads the record of a snapshot that is complete; `None` if there is none.
    pub(crate) fn read(state: &StateDir, id: &SnapshotId) -> io::Result<Option<Self>> {
        let folder = state.snapshot(id);
        if !state.snapshot_files(id).is_dir() {
            return Ok(None);
        }
        match fs::read(folder.join(RECORD)) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            bytes => Ok(Some(serde_json::from_slice(&bytes?)?)),
        }
    }

    /// Reads every complete snapshot, hidden ones too, oldest first.
    pub(crate) fn all(state: &StateDir) -> io::Result<Vec<Self>> {
        let read = state.snapshots()?.into_iter().map(|id| Self::read(state, &id));
        Ok(read.collect::<io::Result<Vec<_>>>()?.into_iter().flatten().collect())
    }

    /// Makes the snapshot's folder, with the record. Nobody reads that before the snapshot has its files.
    pub(crate) fn make(&self, state: &StateDir) -> io::Result<()> {
        let folder = state.snapshot(&self.id);
        make_child(&folder, 0o700)?;
        let mut file =
            fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(folder.join(RECORD))?;
        file.write_all(&serde_json::to_vec(self)?)
    }

    /// Writes the record of a snapshot anew.
    pub(crate) fn write(&self, state: &StateDir) -> io::Result<()> {
        write_whole(&state.snapshot(&self.id), RECORD, &serde_json::to_vec(self)?)
    }

    /// Removes the record of one that has no files yet.
    pub(crate) fn forget(&self, state: &StateDir) -> io::Result<()> {
        eyot_image::remove_tree(&state.snapshot(&self.id))
    }

    /// Returns the layers of a sandbox that begins with this snapshot.
    pub(crate) fn lower_with_it(&self, state: &StateDir) -> io::Result<Lower> {
        let folder = state.snapshot_files(&self.id).into_os_string().into_string();
        let folder = folder.map_err(|_| io::ErrorKind::InvalidFilename)?;
        let own = SnapshotLayer { id: self.id.clone(), folder, ids: self.ids };
        let snapshots = [vec![own], self.lower.snapshots.clone()].concat();
        Ok(Lower { snapshots, ..self.lower.clone() })
    }

    /// Tells whether a sandbox can be made from it.
    pub(crate) fn is_usable(&self) -> bool {
        !self.hidden || self.for_forks
    }

    /// Counts the bytes of its files, unless they are known. They stay unknown where they can't be counted, as in a directory that
    /// its owner has closed to himself: whoever wrote the files must not make the list fail.
    fn count_bytes(&mut self, state: &StateDir) {
        if self.own_bytes.is_some() {
            return;
        }
        let copies = state.snapshot(&self.id).join(COW);
        let copied = if copies.exists() { bytes_below(&copies) } else { Ok(0) };
        let counted = copied.and_then(|copied| Ok(copied + bytes_below(&state.snapshot_files(&self.id))?));
        let noted = counted.and_then(|bytes| {
            self.own_bytes = Some(bytes);
            self.write(state)
        });
        if let Err(error) = noted {
            tracing::debug!(%error, id = %self.id, "count the bytes of a snapshot; the next list tries again");
        }
    }

    /// Returns what there is to know of it when it was just taken.
    pub(crate) fn info_of_new(self) -> SnapshotInfo {
        let shared = self.lower.snapshots.is_empty().then_some(0);
        self.info(shared)
    }

    /// Returns what there is to know of it, with the bytes of those below it.
    pub(crate) fn info(self, shared_bytes: Option<u64>) -> SnapshotInfo {
        SnapshotInfo {
            own_bytes: self.own_bytes,
            shared_bytes,
            parent: self.lower.snapshots.first().map(|layer| layer.id.clone()),
            id: self.id,
            name: self.name,
            pool: self.pool,
            sandbox: self.sandbox,
            sandbox_name: self.sandbox_name,
            labels: self.labels,
            created_ms: self.created_ms,
            spec: self.spec,
        }
    }
}

/// Lists the snapshots that were not removed.
pub(crate) fn list(state: &StateDir) -> io::Result<Vec<SnapshotInfo>> {
    Ok(infos(KeptSnapshot::all(state)?, |snapshot| !snapshot.hidden))
}

/// Lists them, and counts the bytes that are not known.
pub(crate) fn list_with_sizes(state: &StateDir) -> io::Result<Vec<SnapshotInfo>> {
    // Nobody removes one while it is walked through, and written.
    let _used = state.lock_snapshots(FlockOperation::LockShared)?;
    let mut kept = KeptSnapshot::all(state)?;
    kept.iter_mut().for_each(|snapshot| snapshot.count_bytes(state));
    Ok(infos(kept, |snapshot| !snapshot.hidden))
}

/// Finds a snapshot that a sandbox can be made from.
pub(crate) fn find(state: &StateDir, id: &SnapshotId) -> io::Result<Option<SnapshotInfo>> {
    let infos = infos(KeptSnapshot::all(state)?, |snapshot| snapshot.id == *id && snapshot.is_usable());
    Ok(infos.into_iter().next())
}

/// Returns the time of a snapshot that is taken now. Each is later than all before it, so that the oldest of a pool stay the
/// oldest, whoever looks when.
pub(crate) fn next_ms(state: &StateDir) -> io::Result<i64> {
    let last = KeptSnapshot::all(state)?.iter().map(|snapshot| snapshot.created_ms).max();
    Ok(last.map_or(i64::MIN, |last| last.saturating_add(1)).max(now_ms()))
}

/// Describes those of all snapshots that are wanted, oldest first.
fn infos(all: Vec<KeptSnapshot>, is_wanted: impl Fn(&KeptSnapshot) -> bool) -> Vec<SnapshotInfo> {
    let sizes: BTreeMap<SnapshotId, Option<u64>> =
        all.iter().map(|snapshot| (snapshot.id.clone(), snapshot.own_bytes)).collect();
    let size = |layer: &SnapshotLayer| sizes.get(&layer.id).copied().flatten();
    let info = |snapshot: KeptSnapshot| {
        let shared_bytes = snapshot.lower.snapshots.iter().map(size).sum();
        snapshot.info(shared_bytes)
    };
    let mut wanted: Vec<_> = all.into_iter().filter(is_wanted).collect();
    wanted.sort_by_key(|snapshot| snapshot.created_ms);
    wanted.into_iter().map(info).collect()
}

/// Tells whether a pool has a snapshot of this name.
pub(crate) fn has_name(state: &StateDir, pool: Option<&SandboxName>, name: &SandboxName) -> io::Result<bool> {
    let is_it = |other: &KeptSnapshot| {
        !other.hidden && other.pool.as_ref() == pool && other.name.as_ref() == Some(name)
    };
    Ok(KeptSnapshot::all(state)?.iter().any(is_it))
}

/// Counts what the snapshots of a pool cost of its quota of the disk, hidden ones too.
pub(crate) fn bytes_of_pool(state: &StateDir, pool: Option<&SandboxName>) -> io::Result<u64> {
    let mut bytes: u64 = 0;
    for id in state.snapshots()? {
        match KeptSnapshot::read(state, &id) {
            Ok(Some(kept)) if kept.pool.as_ref() == pool => {
                bytes = bytes.saturating_add(kept.copy_cost.unwrap_or_default());
            }
            Ok(_) => {}
            // It may be another pool's, which must not be held up by it.
            Err(error) => tracing::warn!(%error, %id, "count a snapshot whose record can't be read"),
        }
    }
    Ok(bytes)
}

/// Removes a snapshot, and what nobody needs any more. Returns `false` if there is none.
pub(crate) fn remove(state: &StateDir, id: &SnapshotId) -> io::Result<bool> {
    let _alone = state.lock_snapshots(FlockOperation::LockExclusive)?;
    let Some(mut snapshot) = KeptSnapshot::read(state, id)?.filter(|snapshot| !snapshot.hidden) else {
        return Ok(false);
    };
    snapshot.hidden = true;
    snapshot.write(state)?;
    // It is removed for whoever asked; its files may have to wait, as while the record of a sandbox can't be read.
    if let Err(error) = collect_alone(state) {
        tracing::warn!(%error, "remove the snapshots that nobody needs; a later removal tries again");
    }
    Ok(true)
}

/// Tells whether a sandbox lies above snapshots, which may be needed no more when it is gone.
pub(crate) fn lies_above_some(state: &StateDir, id: &SandboxId) -> bool {
    let there_are = state.snapshots().is_ok_and(|snapshots| !snapshots.is_empty());
    // One whose record can't be read may.
    there_are && Record::read(&state.sandbox(id)).map_or(true, |record| !record.lower.snapshots.is_empty())
}

/// Removes hidden snapshots that nothing lies above, and what killed processes left.
pub(crate) fn collect(state: &StateDir) -> io::Result<()> {
    if state.snapshots()?.is_empty() {
        return Ok(());
    }
    let _alone = state.lock_snapshots(FlockOperation::LockExclusive)?;
    collect_alone(state)
}

fn collect_alone(state: &StateDir) -> io::Result<()> {
    let mut needed = needed_by_sandboxes(state)?;
    let kept = KeptSnapshot::all(state)?;
    for snapshot in kept.iter().filter(|snapshot| !snapshot.hidden) {
        needed.extend(snapshot.lower.snapshots.iter().map(|layer| layer.id.clone()));
    }
    let stays = |id: &SnapshotId| {
        needed.contains(id) || kept.iter().any(|snapshot| snapshot.id == *id && !snapshot.hidden)
    };
    for id in state.snapshots()?.iter().filter(|id| !stays(id)) {
        eyot_image::remove_tree(&state.snapshot(id))?;
    }
    Ok(())
}

/// Lists the snapshots that sandboxes lie above, or are about to. A sandbox whose record can't be
/// read may need any: then nothing may be removed.
fn needed_by_sandboxes(state: &StateDir) -> io::Result<HashSet<SnapshotId>> {
    let mut needed = HashSet::new();
    for (place, id) in state.ids("sandboxes")?.into_iter().map(|id| (state.sandbox(&id), id)) {
        let directory = if place.exists() { place } else { state.trash(&id) };
        // Before the record, which a change becomes when it is completed.
        let moving = FilesMove::read(&directory)?;
        needed.extend(moving.into_iter().flat_map(|moving| moving.lower.snapshots).map(|layer| layer.id));
        let lower = match Record::read(&directory) {
            // It is being made, and holds the lock meanwhile; or it is gone.
            Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
            record => record?.lower,
        };
        needed.extend(lower.snapshots.into_iter().map(|layer| layer.id));
    }
    Ok(needed)
}

/// Counts the bytes that a tree takes on the disk. Follows no link.
fn bytes_below(folder: &Path) -> io::Result<u64> {
    let mut bytes = 0;
    let mut folders: Vec<PathBuf> = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder)? {
            let entry = entry?;
            let found = entry.metadata()?;
            bytes += found.blocks() * BLOCK_BYTES;
            if found.is_dir() {
                folders.push(entry.path());
            }
        }
    }
    Ok(bytes)
}
