//! A rootfs tarball, unpacked once per content into a layer that sandboxes share. The path, size
//! and time of the tarball tell whether its content is known.

use std::fs;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use eyot::internal::system_reason;
use eyot::{Error, ErrorKind, Result};
use eyot_image::unpack::{Owners, UnpackLimits, unpack_file};

use super::Image;
use crate::state::StateDir;

/// Opens the image in the tarball at `path`.
pub(super) fn image(state: &StateDir, name: &str, path: &Path) -> Result<Image> {
    let failed = |error: io::Error| {
        Error::new(
            ErrorKind::Invalid,
            format!("create sandbox: unpack image `{name}`: {}", system_reason(&error)),
        )
        .with_hint("an image archive has to be imported: eyot image import FILE; a tarball must hold a root file system")
        .with_source(error)
    };
    let found = fs::metadata(path).map_err(failed)?;
    let mut hasher = DefaultHasher::new();
    (path, found.size(), found.mtime(), found.mtime_nsec(), found.ino()).hash(&mut hasher);
    let layer = state.layers().join(format!("tar-{:016x}", hasher.finish()));
    if !layer.exists() {
        unpack(path, &layer).map_err(failed)?;
    }
    super::directory::image(name, &layer)
}

fn unpack(path: &Path, layer: &Path) -> io::Result<()> {
    let aside = super::aside(layer);
    let unpacked = unpack_file(path, &aside, Owners::of_caller(), &UnpackLimits::default());
    let placed = unpacked.and_then(|_| match fs::rename(&aside, layer) {
        Err(_) if layer.exists() => eyot_image::remove_tree(&aside),
        other => other,
    });
    if placed.is_err()
        && let Err(left) = eyot_image::remove_tree(&aside)
    {
        tracing::warn!(error = %left, "remove a half-unpacked image");
    }
    placed
}
