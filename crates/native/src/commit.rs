//! Images of snapshots: the layers above the image become one layer more, and the configuration stays.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use eyot::internal::system_reason;
use eyot::{BranchPoint, Error, ErrorKind, ImageInfo, NewImage, Result, SnapshotId};
use eyot_image::{ImageName, LayerAbove};
use rustix::fs::FlockOperation;

use crate::image::{Lower, image_store, is_host};
use crate::merged_layers::MergedLayers;
use crate::packed_tree::{self, SnapshotTree};
use crate::record::Record;
use crate::sandboxes::Sandboxes;
use crate::snapshot_base::{existing, not_found};

/// Tells a commit to end once nobody waits for it.
#[derive(Default)]
pub(crate) struct CommitStop(pub Arc<AtomicBool>);

impl Drop for CommitStop {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// The image below the snapshots of a commit.
struct CommitBase {
    /// The name by which it was found.
    name: Option<String>,
    lower: Lower,
}

impl CommitBase {
    /// Refuses what is over no image of the store: there is nothing that the layer could lie above elsewhere.
    fn refuse_what_is_no_image(&self, commit: &ImageName) -> Result<()> {
        if !self.lower.layers.is_empty() {
            return Ok(());
        }
        let commit = commit.short();
        let (what, hint) = if is_host(self.name.as_deref()) {
            (
                "is made of this host's own programs (`host`), which are in no image".to_owned(),
                "make it from an image: `eyot create --image NAME`; `eyot image ls` shows those that are there, and \
                 `eyot image build-base --name debian:12 --suite bookworm` makes one"
                    .to_owned(),
            )
        } else {
            let name = self.name.as_deref().unwrap_or_default();
            (
                format!("is made over `{name}`, which is a file or folder of the host and no image of the store"),
                "import that first, and make the sandbox from it: `eyot image import ROOTFS.tar --name NAME`, `eyot \
                 create --image NAME`"
                    .to_owned(),
            )
        };
        Err(Error::new(ErrorKind::Unsupported, format!("commit `{commit}`: the sandbox {what}"))
            .with_hint(hint))
    }

    fn image_name(&self) -> Option<ImageName> {
        self.name.as_deref().and_then(|name| ImageName::parse(name).ok())
    }
}

impl Sandboxes {
    pub(crate) fn check_commit(&self, point: &BranchPoint, image: &NewImage) -> Result<()> {
        let name = ImageName::parse_new(&image.reference)?;
        let base =
            self.commit_base(point).map_err(|error| error.context(format!("commit `{}`", name.short())))?;
        base.refuse_what_is_no_image(&name)?;
        let store = image_store(self.state.root());
        store.check_commit(&name, &base.lower.layers, base.image_name().as_ref())
    }

    fn commit_base(&self, point: &BranchPoint) -> Result<CommitBase> {
        match point {
            BranchPoint::Snapshot(id) => {
                let kept = existing(&self.state, id).map_err(unread)?.ok_or_else(|| not_found(id))?;
                Ok(CommitBase { name: kept.made_from.image, lower: kept.lower })
            }
            BranchPoint::Sandbox(id) | BranchPoint::Base(id) => {
                let id = self.id_of(id.as_str())?;
                let record = Record::read(&self.state.sandbox(&id)).map_err(unread)?;
                Ok(CommitBase { name: record.info.spec.image, lower: record.lower })
            }
        }
    }

    /// Makes an image of a snapshot. The lock of the snapshots is not held meanwhile, since packing may take minutes: whoever
    /// removes the snapshot or one below it makes the commit fail.
    pub(crate) fn commit(&self, id: &SnapshotId, image: &NewImage, stop: &AtomicBool) -> Result<ImageInfo> {
        let point = BranchPoint::Snapshot(id.clone());
        self.check_commit(&point, image)?;
        let (name, base) = (ImageName::parse_new(&image.reference)?, self.commit_base(&point)?);
        let tree = self.snapshot_tree(id)?;
        let (below, is_stopped) = (base.image_name(), || stop.load(Ordering::Relaxed));
        let above = LayerAbove {
            name: &name,
            layers: &base.lower.layers,
            base: below.as_ref(),
            max_bytes: image.max_bytes,
            is_stopped: &is_stopped,
        };
        let committed = image_store(self.state.root()).commit(&above, |packer| {
            packed_tree::pack(&tree, packer)?;
            self.refuse_if_removed(id, &base.lower)
        });
        committed.map_err(|error| match error.kind() {
            ErrorKind::Permission => error.with_hint(
                "open it inside, `chmod u+rwX PATH`, and try again; root's sandboxes need no such step",
            ),
            _ => error,
        })
    }

    /// Opens the layers of a snapshot and of those below it.
    fn snapshot_tree(&self, id: &SnapshotId) -> Result<SnapshotTree> {
        let _used = self.state.lock_snapshots(FlockOperation::LockShared).map_err(unread)?;
        let kept = existing(&self.state, id).map_err(unread)?.ok_or_else(|| not_found(id))?;
        let snapshots = kept.lower_with_it(&self.state).map_err(unread)?.snapshots;
        let (folders, ids) = snapshots
            .into_iter()
            .map(|layer| (layer.folder.into(), layer.ids))
            .unzip::<_, _, Vec<_>, Vec<_>>();
        Ok(SnapshotTree { layers: MergedLayers::open(folders).map_err(unread)?, ids })
    }

    /// Refuses what was packed while it was removed. Removers hold the lock alone, so it is all there or none of it.
    fn refuse_if_removed(&self, id: &SnapshotId, lower: &Lower) -> io::Result<()> {
        let _used = self.state.lock_snapshots(FlockOperation::LockShared)?;
        let below = lower.snapshots.iter().map(|layer| &layer.id);
        if std::iter::once(id).chain(below).all(|id| self.state.snapshot_files(id).is_dir()) {
            return Ok(());
        }
        Err(io::Error::new(io::ErrorKind::NotFound, "its files were removed meanwhile"))
    }
}

fn unread(error: io::Error) -> Error {
    Error::new(ErrorKind::Internal, format!("read a snapshot: {}", system_reason(&error))).with_source(error)
}
