//! Which sandboxes are made over images of the store: what whoever removes images has to know.

use std::io;
use std::path::Path;

use eyot::{Error, ErrorKind, Result};
use eyot_image::{ImageStore, ImageUse};

use crate::record::Record;
use crate::state::StateDir;

/// The images of a state folder.
pub fn image_store(state: &Path) -> ImageStore {
    ImageStore::new(state.join("images"))
}

/// Every sandbox of a state folder that is made over an image of its store, whether it runs, sleeps or is being removed. To
/// be asked by [`ImageStore::remove`] and [`ImageStore::prune`], which make sure that none is in the making meanwhile.
///
/// # Errors
/// A state folder or a sandbox's record that can't be read: then nothing is to be removed.
pub fn image_uses(state: &Path) -> Result<Vec<ImageUse>> {
    let state = StateDir::open(state, None)?;
    let unreadable = |error: io::Error| {
        let message = format!("find out which images are in use: {}", crate::sentence(&error));
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
            record => uses.extend(use_of(record.map_err(unreadable)?)),
        }
    }
    Ok(uses)
}

fn use_of(record: Record) -> Option<ImageUse> {
    let (sandbox, layers) = (record.info.name.to_string(), record.lower.layers);
    (!layers.is_empty()).then_some(ImageUse { sandbox, layers })
}
