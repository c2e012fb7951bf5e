//! The sandboxes that are made over images of the store. Code that removes images has to know them.

use std::io;
use std::path::Path;

use eyot::internal::system_reason;
use eyot::{Error, ErrorKind, Result, SandboxId};
use eyot_image::{ImageStore, ImageUse};

use crate::kept_snapshot::KeptSnapshot;
use crate::record::Record;
use crate::state::StateDir;

/// Opens the image store of a state folder.
pub fn image_store(state: &Path) -> ImageStore {
    ImageStore::new(state.join("images"))
}

/// Lists every sandbox of a state folder that is made over an image of its store, whether it runs,
/// sleeps or is being removed. [`ImageStore::remove`] and [`ImageStore::prune`] call this while no
/// sandbox can begin to use an image. `names` returns the name by which users know a sandbox, if it is
/// not the record's.
///
/// # Errors
/// If the state folder or a record can't be read. Nothing may be removed in that case.
pub fn image_uses(state: &Path, names: &dyn Fn(&SandboxId) -> Option<String>) -> Result<Vec<ImageUse>> {
    let state = StateDir::open(state, None)?;
    let unreadable = |error: io::Error| {
        let message = format!("find out which images are in use: {}", system_reason(&error));
        Error::new(ErrorKind::Unavailable, message).with_source(error)
    };
    let mut uses = Vec::new();
    for id in state.ids("sandboxes").map_err(unreadable)? {
        // One that is being removed may have moved since it was listed.
        let record = match Record::read(&state.sandbox(&id)) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Record::read(&state.trash(&id)),
            other => other,
        };
        match record {
            // In the making over something else, or gone.
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            record => uses.extend(use_of(record.map_err(unreadable)?, names)),
        }
    }
    for snapshot in KeptSnapshot::all(&state).map_err(unreadable)? {
        let layers = snapshot.lower.layers;
        if !layers.is_empty() {
            uses.push(ImageUse { sandbox: format!("snapshot {}", snapshot.id), layers });
        }
    }
    Ok(uses)
}

fn use_of(record: Record, names: &dyn Fn(&SandboxId) -> Option<String>) -> Option<ImageUse> {
    let sandbox = names(&record.info.id).unwrap_or_else(|| record.info.name.to_string());
    let layers = record.lower.layers;
    (!layers.is_empty()).then_some(ImageUse { sandbox, layers })
}
