//! The layer above all layers of an image of the store: the mount points of sandboxes, the links of
//! `/dev`, and the links `/etc/hosts` and `/etc/hostname`. It is made once, because making and
//! removing these two dozen files with each sandbox would take longer.

use std::fs;
use std::io;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;

use crate::setup::{FILES_OF_SKELETON, device_files};
use crate::state::{StateDir, make_dir};

/// The layer's name beside the other layers, none of which has a dash in its name. Change it
/// whenever the layer's content changes.
pub(crate) const NAME: &str = "mount-points-1";

/// Directories and their permission bits.
const DIRECTORIES: [(&str, u32); 11] = [
    ("dev", 0o755),
    ("dev/pts", 0o755),
    ("dev/shm", 0o755),
    ("etc", 0o755),
    ("home", 0o755),
    ("home/user", 0o755),
    ("proc", 0o755),
    ("run", 0o755),
    ("tmp", 0o1777),
    ("var", 0o755),
    ("var/tmp", 0o1777),
];

/// Makes the layer in the folder of the other layers, unless it exists.
pub(super) fn make(state: &StateDir, layers: &Path) -> io::Result<()> {
    let layer = layers.join(NAME);
    if layer.exists() {
        return Ok(());
    }
    let aside = super::aside(&state.layers().join(NAME));
    make_dir(&aside, 0o755)?;
    for (name, mode) in DIRECTORIES {
        make_dir(&aside.join(name), 0o755)?;
        fs::set_permissions(aside.join(name), fs::Permissions::from_mode(mode))?;
    }
    for (name, target) in FILES_OF_SKELETON.iter().chain(&super::DEVICE_LINKS) {
        symlink(target, aside.join(name))?;
    }
    for file in device_files() {
        fs::write(aside.join(&file), "")?;
        fs::set_permissions(aside.join(file), fs::Permissions::from_mode(0o644))?;
    }
    match fs::rename(&aside, &layer) {
        Err(_) if layer.exists() => eyot_image::remove_tree(&aside),
        other => other,
    }
}
