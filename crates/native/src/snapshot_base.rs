//! The beginning of a sandbox that is made from a snapshot: its layers, and what its image wished for.

use std::io;

use eyot::{Error, ErrorKind, ImageDefaults, Result, SnapshotId};
use eyot_image::FileLock;
use rustix::fs::FlockOperation;

use crate::cow_mount::CowMount;
use crate::host::SetupFailure;
use crate::image::{Image, ImageCache};
use crate::kept_snapshot::KeptSnapshot;
use crate::state::StateDir;

/// The parts of a new sandbox that come from its snapshot.
pub(crate) struct SnapshotBase {
    pub image: Image,
    pub defaults: ImageDefaults,
    /// The copies on write that it has something of.
    pub cow: Vec<CowMount>,
    /// Keeps the snapshot until the sandbox's record names it.
    pub held: FileLock,
}

/// Finds the snapshot that a new sandbox begins with.
pub(crate) fn begin_with(
    state: &StateDir,
    images: &ImageCache,
    id: &SnapshotId,
    as_root: bool,
) -> Result<SnapshotBase> {
    let reason = |error| SetupFailure::new("read its snapshot", "", error).into_error();
    let held = state.lock_snapshots(FlockOperation::LockShared).map_err(reason)?;
    let kept = existing(state, id).map_err(reason)?.ok_or_else(|| not_found(id))?;
    if kept.ids.is_some() != as_root {
        let maker = if kept.ids.is_some() { "root" } else { "an ordinary user" };
        let message = format!("create sandbox: snapshot `{id}` was taken by {maker}");
        return Err(Error::new(ErrorKind::Permission, message).with_hint("use it as the user who took it"));
    }
    let lower = kept.lower_with_it(state).map_err(reason)?;
    let mut image = images.resolve_again(state, kept.made_from.image.as_deref(), &lower, as_root)?;
    image.run.env.extend(kept.program_path.map(|path| ("PATH".to_owned(), path)));
    let defaults = ImageDefaults {
        env: kept.made_from.env.into_iter().collect(),
        workdir: kept.made_from.workdir.map(|workdir| workdir.to_string()),
        user: kept.made_from.user,
    };
    Ok(SnapshotBase { image, defaults, cow: kept.cow, held })
}

/// Reads a snapshot that a sandbox can be made from.
pub(crate) fn existing(state: &StateDir, id: &SnapshotId) -> io::Result<Option<KeptSnapshot>> {
    Ok(KeptSnapshot::read(state, id)?.filter(KeptSnapshot::is_usable))
}

/// Makes the error for a snapshot that is not there.
pub(crate) fn not_found(id: &SnapshotId) -> Error {
    Error::new(ErrorKind::NotFound, format!("there is no snapshot `{id}`"))
        .with_hint("`eyot snapshot ls` shows those that are there")
}
