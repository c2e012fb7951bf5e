//! The image `host`: a generated skeleton with the host's `/usr` and `/opt`, read-only. An agent
//! has the tools that the developer has, but none of the host's other files.

use std::fs;
use std::io;
use std::os::unix::fs::{PermissionsExt, chown, symlink};
use std::path::Path;

use eyot::{Error, ErrorKind, Result};
use eyot_image::RunConfig;

use super::programs::MountedBelow;
use super::{Image, Lower, MountPoints, etc, masks};
use crate::plan::USER_ID;
use crate::setup::{HOSTS, device_files};
use crate::state::{StateDir, make_dir};

/// The version of the skeleton's form. Raise it whenever the skeleton changes.
const FORM: u32 = 3;

/// Directories of the skeleton and their permission bits.
const DIRECTORIES: [(&str, u32); 26] = [
    ("dev", 0o755),
    ("dev/pts", 0o755),
    ("dev/shm", 0o755),
    ("etc", 0o755),
    ("etc/pam.d", 0o755),
    // Empty: the host's own may hold anything. Debian's `adduser` wants it.
    ("etc/skel", 0o755),
    ("home", 0o755),
    ("home/user", 0o755),
    ("media", 0o755),
    ("mnt", 0o755),
    ("opt", 0o755),
    ("proc", 0o555),
    ("root", 0o700),
    ("run", 0o755),
    ("srv", 0o755),
    ("sys", 0o555),
    ("tmp", 0o1777),
    ("usr", 0o755),
    ("var", 0o755),
    ("var/cache", 0o755),
    ("var/lib", 0o755),
    ("var/log", 0o755),
    ("var/mail", 0o755),
    ("var/spool", 0o755),
    ("var/tmp", 0o1777),
    ("workspace", 0o755),
];

const LINKS: [(&str, &str); 4] = [
    ("etc/hosts", HOSTS),
    ("etc/mtab", "../proc/self/mounts"),
    ("var/run", "../run"),
    ("var/lock", "../run"),
];

/// Entries at the top of the host's tree that hold programs. They are links into `/usr`, or
/// directories.
const PROGRAM_FOLDERS: [&str; 6] = ["bin", "sbin", "lib", "lib32", "lib64", "libx32"];

/// Opens the image. The skeleton is made anew if the host has changed since the last time.
pub(super) fn image(state: &StateDir, as_root: bool) -> Result<Image> {
    let layer = state.layers().join(format!("host-{FORM}-{:016x}", etc::fingerprint()));
    if !layer.exists() {
        build(&layer, as_root).map_err(failed)?;
    }
    let is_dir = |path: &String| fs::symlink_metadata(path).is_ok_and(|found| found.is_dir());
    let folders = ["usr", "opt"].iter().chain(&PROGRAM_FOLDERS).map(|folder| format!("/{folder}"));
    let programs: Vec<String> = folders.filter(is_dir).collect();
    let masks = if as_root {
        // Nothing inside has the rights of a user or a group of the host.
        Vec::new()
    } else {
        masks::covered(&state.layers(), &programs).map_err(failed)?
    };
    let lower = layer.to_str().ok_or_else(|| Error::invalid("state", "must be a path in UTF-8"))?;
    let (name, lower, run) = (super::DEFAULT.to_owned(), Lower::one(lower), RunConfig::default());
    let rebuilt = Vec::new();
    Ok(Image { name, lower, run, programs, rebuilt, masks, mount_points: MountPoints::Skeleton })
}

/// Adds the mounts below the program folders to an image that was made without them.
pub(super) fn add_mounts(image: &mut Image, as_root: bool) -> Result<()> {
    let below = MountedBelow::find(&image.programs, as_root).map_err(failed)?;
    image.programs.retain(|path| below.rebuilt.iter().all(|folder| folder.path != *path));
    image.programs.extend(below.folders);
    image.rebuilt = below.rebuilt;
    image.masks.extend(below.covered);
    Ok(())
}

fn failed(error: io::Error) -> Error {
    Error::new(ErrorKind::Setup, "create sandbox: make the skeleton of image `host`: failed")
        .with_source(error)
}

/// Builds the skeleton aside and moves it into place. If another process was faster, its skeleton
/// is used.
fn build(layer: &Path, as_root: bool) -> io::Result<()> {
    let aside = super::aside(layer);
    make_dir(&aside, 0o755)?;
    for (name, mode) in DIRECTORIES {
        make_dir(&aside.join(name), 0o755)?;
        fs::set_permissions(aside.join(name), fs::Permissions::from_mode(mode))?;
    }
    for (name, target) in LINKS.iter().chain(&super::DEVICE_LINKS) {
        symlink(target, aside.join(name))?;
    }
    for folder in PROGRAM_FOLDERS {
        match fs::read_link(Path::new("/").join(folder)) {
            Ok(target) => symlink(target, aside.join(folder))?,
            Err(_) if Path::new("/").join(folder).is_dir() => make_dir(&aside.join(folder), 0o755)?,
            Err(_) => {}
        }
    }
    for file in device_files() {
        fs::write(aside.join(file), "")?;
    }
    etc::fill(&aside.join("etc"))?;
    if as_root {
        for home in ["home/user", "workspace"] {
            chown(aside.join(home), Some(USER_ID), Some(USER_ID))?;
        }
    }
    match fs::rename(&aside, layer) {
        Err(_) if layer.exists() => eyot_image::remove_tree(&aside),
        other => other,
    }
}
