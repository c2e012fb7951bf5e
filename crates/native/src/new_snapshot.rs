//! The steps of every new snapshot, of a sandbox that sleeps and of one that is awake: its record is written, and the writable
//! layer of the sandbox becomes its files.

use std::fs;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use eyot::internal::system_reason;
use eyot::{Error, ErrorKind, NewSnapshot, Result, SandboxSpec, SnapshotId, SnapshotInfo};

use crate::attributes::attribute_names;
use crate::cow_layers::keep_base;
use crate::disk::has_disk;
use crate::disk_move::COPIED_UPPER;
use crate::files_move::FilesMove;
use crate::image::{Lower, SnapshotLayer, fits_in_mount};
use crate::kept_snapshot::{self, KeptSnapshot};
use crate::plan::ROOT;
use crate::record::Record;
use crate::sandboxes::Sandboxes;
use crate::tree_copy::TakenBytes;

/// The goal of every step of a snapshot, for errors.
pub(crate) const TAKE: &str = "take a snapshot";

/// The outcome of noting a snapshot.
pub(crate) enum NotedSnapshot {
    /// The last one has the same files.
    Last(Box<SnapshotInfo>),
    /// The record of this one is written. The snapshot is there once it has its files.
    New(Box<KeptSnapshot>),
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
        .with_hint("roll it back to an earlier one, or copy its files into a new sandbox: `eyot transfer`"))
}

/// Refuses a snapshot with which those of its pool would take more of the disk than they may.
pub(crate) fn beyond_bytes(most: u64) -> Error {
    let message = format!(
        "take a snapshot: the pool's quota `disk_mib` leaves {} MiB for snapshots, and with this one they would take more",
        most >> 20
    );
    Error::new(ErrorKind::Quota, message).with_hint(
        "remove snapshots (`eyot snapshot rm`) and the sandboxes that lie above them, or roll this one back to an earlier one",
    )
}

impl Sandboxes {
    /// Writes the record of a snapshot that is to be taken. The caller has locked the sandbox and the snapshots. `copied` is the
    /// room that the copy of a disk takes.
    pub(crate) fn note_snapshot(
        &self,
        record: &Record,
        directory: &Path,
        new: NewSnapshot,
        copied: Option<TakenBytes>,
    ) -> Result<NotedSnapshot> {
        let failed = failed(TAKE);
        // Rules that were changed since are in force in the forks, too.
        let spec = SandboxSpec { egress: record.info.spec.egress.clone(), ..new.spec.clone() };
        let upper = directory.join(if has_disk(directory) { COPIED_UPPER } else { ROOT });
        if let Some(last) = self.last_of_same_files(record, &upper, &new)? {
            return Ok(NotedSnapshot::Last(Box::new(last)));
        }
        self.refuse_snapshot(record, &new)?;
        if let (Some(copied), Some(most)) = (copied, new.most_bytes_of_pool) {
            let held = kept_snapshot::bytes_of_pool(&self.state, new.pool.as_ref()).map_err(&failed)?;
            if held.saturating_add(copied.cost) > most {
                return Err(beyond_bytes(most));
            }
        }
        let kept = KeptSnapshot {
            id: new.id,
            name: new.name,
            pool: new.pool,
            sandbox: record.info.id.clone(),
            sandbox_name: new.sandbox_name,
            labels: new.labels,
            created_ms: kept_snapshot::next_ms(&self.state).map_err(&failed)?,
            spec,
            made_from: record.info.spec.clone(),
            lower: record.lower.clone(),
            cow: record.cow.clone(),
            ids: record.id_block(),
            program_path: record.program_path.clone(),
            own_bytes: copied.map(|copied| copied.bytes),
            copy_cost: copied.map(|copied| copied.cost),
            hidden: new.for_forks,
            for_forks: new.for_forks,
        };
        kept.make(&self.state).map_err(&failed)?;
        Ok(NotedSnapshot::New(Box::new(kept)))
    }

    /// Refuses a snapshot that can't be, whatever its files are. The caller has locked the snapshots.
    pub(crate) fn refuse_snapshot(&self, record: &Record, new: &NewSnapshot) -> Result<()> {
        refuse_beyond_depth(&record.lower)?;
        // A caller may choose the id.
        if self.state.snapshot(&new.id).exists() {
            let message = format!("take a snapshot: the id `{}` is in use", new.id);
            return Err(Error::new(ErrorKind::AlreadyExists, message).with_hint("leave the id out"));
        }
        if let Some(name) = &new.name
            && kept_snapshot::has_name(&self.state, new.pool.as_ref(), name).map_err(failed(TAKE))?
        {
            let message = format!("take a snapshot: the name `{name}` is in use");
            return Err(Error::new(ErrorKind::AlreadyExists, message)
                .with_hint("take another name, or remove that snapshot"));
        }
        Ok(())
    }

    /// Returns the change that makes the writable layer of a sandbox the files of a snapshot.
    pub(crate) fn move_into(&self, kept: &KeptSnapshot, directory: &Path) -> Result<FilesMove> {
        keep_base(directory, &self.state.snapshot(&kept.id)).map_err(failed(TAKE))?;
        let lower = kept.lower_with_it(&self.state).map_err(failed(TAKE))?;
        Ok(FilesMove { kept_as: Some(kept.id.clone()), lower, mode: None })
    }

    /// Returns the last snapshot of a sandbox that has written nothing to `upper` since, if one for forks is wanted: they need no
    /// layer of their own.
    pub(crate) fn last_of_same_files(
        &self,
        record: &Record,
        upper: &Path,
        new: &NewSnapshot,
    ) -> Result<Option<SnapshotInfo>> {
        if !new.for_forks || new.name.is_some() {
            return Ok(None);
        }
        let last = self.unchanged_since(record, upper).map_err(failed(TAKE))?;
        Ok(last.map(|last| SnapshotInfo {
            sandbox_name: new.sandbox_name.clone(),
            labels: new.labels.clone(),
            spec: SandboxSpec { egress: record.info.spec.egress.clone(), ..new.spec.clone() },
            ..last.info(None)
        }))
    }

    fn unchanged_since(&self, record: &Record, upper: &Path) -> io::Result<Option<KeptSnapshot>> {
        let Some(last) = record.lower.snapshots.first() else { return Ok(None) };
        let kept = KeptSnapshot::read(&self.state, &last.id)?;
        // Copies on write have upper directories of their own.
        let is_own = |kept: &KeptSnapshot| kept.sandbox == record.info.id && record.cow.is_empty();
        let kept = kept.filter(|kept| kept.is_usable() && is_own(kept));
        let is_same = || is_same_root(upper, &self.state.snapshot_files(&last.id));
        if kept.is_some() && !is_same()? { Ok(None) } else { Ok(kept) }
    }
}

/// Tells whether an upper directory is empty, and its own owner, mode and attributes are those of the layer below.
fn is_same_root(upper: &Path, below: &Path) -> io::Result<bool> {
    if fs::read_dir(upper)?.next().is_some() {
        return Ok(false);
    }
    let facts = |folder: &Path| -> io::Result<_> {
        let stat = fs::symlink_metadata(folder)?;
        Ok((stat.mode(), stat.uid(), stat.gid()))
    };
    Ok(facts(upper)? == facts(below)? && !has_own_attributes(upper)? && !has_own_attributes(below)?)
}

/// Tells whether a layer's root has attributes beside those of the overlay.
fn has_own_attributes(folder: &Path) -> io::Result<bool> {
    let is_of_overlay =
        |name: &[u8]| name.starts_with(b"trusted.overlay.") || name.starts_with(b"user.overlay.");
    Ok(attribute_names(folder)?.iter().any(|name| !is_of_overlay(name.as_bytes())))
}

/// Makes the error of a step.
pub(crate) fn failed(what: &'static str) -> impl Fn(io::Error) -> Error {
    move |error| {
        let kind = match error.kind() {
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => ErrorKind::Quota,
            _ => ErrorKind::Internal,
        };
        Error::new(kind, format!("{what}: {}", system_reason(&error))).with_source(error)
    }
}
