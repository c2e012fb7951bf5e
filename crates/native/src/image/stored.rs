//! Images of the store, by name.

use std::path::Path;

use eyot::{Error, ErrorKind, Result};
use eyot_image::{Generation, ImageName, ImageStore, UseGuard};

use super::{Image, Lower, points};
use crate::state::StateDir;

/// The image of the store that was used last: reading its parts takes some dozen system calls.
#[derive(Debug)]
pub(super) struct Remembered {
    name: String,
    generation: Generation,
    image: Image,
}

/// Opens the image of this name with a guard that keeps its layers; `None` if the store has none,
/// or the name can't be an image's.
pub(super) fn image(
    state: &StateDir,
    name: &str,
    last: &mut Option<Remembered>,
) -> Result<Option<(Image, UseGuard)>> {
    let Ok(parsed) = ImageName::parse(name) else { return Ok(None) };
    let store = ImageStore::new(state.images());
    if store.generation().is_none() {
        return Ok(None);
    }
    let held = store.hold()?;
    let Some(generation) = store.generation() else { return Ok(None) };
    if let Some(known) = last.as_ref().filter(|known| known.name == name && known.generation == generation) {
        return Ok(Some((known.image.clone(), held)));
    }
    let Some(found) = store.resolve(&parsed).map_err(|error| error.context("create sandbox"))? else {
        return Ok(None);
    };
    let folder = found.folder.to_str().ok_or_else(|| Error::invalid("state", "must be a path in UTF-8"))?;
    make_mount_points(state, &found.folder)?;
    let lower = Lower { folder: folder.to_owned(), layers: found.layers, snapshots: Vec::new() };
    let image = Image::of_layers(name, lower, found.run);
    *last = Some(Remembered { name: name.to_owned(), generation, image: image.clone() });
    Ok(Some((image, held)))
}

/// Makes the layer of mount points above the image's own layers.
pub(super) fn make_mount_points(state: &StateDir, layers: &Path) -> Result<()> {
    points::make(state, layers).map_err(|error| {
        Error::new(ErrorKind::Setup, "create sandbox: make the mount points of images: failed")
            .with_source(error)
    })
}
