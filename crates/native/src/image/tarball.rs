//! A rootfs tarball, unpacked once per content (by path, size and time) into a layer that sandboxes share.

use std::fs::{self, File};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io::{self, Read};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Component, Path, PathBuf};

use eyot::{Error, ErrorKind, Result};
use tar::{Archive, Entry, EntryType};

use super::Image;
use crate::state::{StateDir, make_dir};

/// The most bytes that a tarball may unpack to.
const MAX_TOTAL_BYTES: u64 = 64 << 30;

/// The image in the tarball at `path`.
pub(super) fn image(state: &StateDir, name: &str, path: &Path, as_root: bool) -> Result<Image> {
    let failed = |error: io::Error| {
        Error::new(
            ErrorKind::Invalid,
            format!("create sandbox: unpack image `{name}`: {}", crate::sentence(&error)),
        )
        .with_hint("an image is `host`, a directory, or a rootfs tarball (.tar, .tar.gz, .tgz)")
        .with_source(error)
    };
    let found = fs::metadata(path).map_err(failed)?;
    let mut hasher = DefaultHasher::new();
    (path, found.size(), found.mtime(), found.mtime_nsec(), found.ino()).hash(&mut hasher);
    let layer = state.layers().join(format!("tar-{:016x}", hasher.finish()));
    if !layer.exists() {
        let aside = super::aside(&layer);
        let unpacked = unpack(path, &aside, as_root).and_then(|()| match fs::rename(&aside, &layer) {
            Err(_) if layer.exists() => crate::remove::remove_tree(&aside),
            other => other,
        });
        if let Err(error) = unpacked {
            if let Err(left) = crate::remove::remove_tree(&aside) {
                tracing::warn!(error = %left, "remove a half-unpacked image");
            }
            return Err(failed(error));
        }
    }
    super::directory::image(name, &layer)
}

fn unpack(path: &Path, target: &Path, as_root: bool) -> io::Result<()> {
    make_dir(target, 0o755)?;
    let mut archive = Archive::new(decompressed(path)?);
    archive.set_preserve_permissions(true);
    archive.set_preserve_ownerships(as_root);
    let mut directories = Vec::new();
    let mut total = 0;
    for entry in archive.entries()? {
        let mut entry = entry?;
        total += entry.size();
        if total > MAX_TOTAL_BYTES {
            return Err(io::Error::other("it unpacks to more than 64 GiB"));
        }
        check(&entry)?;
        if !is_content(entry.header().entry_type()) {
            continue;
        }
        let mode = entry.header().mode()? & 0o1777;
        let is_directory = entry.header().entry_type().is_dir();
        let place = target.join(relative(&entry.path()?));
        if !entry.unpack_in(target)? {
            continue;
        }
        // Permissions of directories come last, so that a read-only one can still be filled.
        match is_directory {
            true => {
                fs::set_permissions(&place, fs::Permissions::from_mode(0o700 | mode))?;
                directories.push((place, mode));
            }
            false if entry.header().entry_type().is_file() => {
                fs::set_permissions(&place, fs::Permissions::from_mode(mode))?;
            }
            false => {}
        }
    }
    for (place, mode) in directories.into_iter().rev() {
        fs::set_permissions(place, fs::Permissions::from_mode(mode))?;
    }
    Ok(())
}

fn decompressed(path: &Path) -> io::Result<Box<dyn Read>> {
    let mut magic = [0; 2];
    let read = File::open(path)?.read(&mut magic)?;
    let file = io::BufReader::with_capacity(1 << 16, File::open(path)?);
    match &magic[..read] {
        [0x1f, 0x8b] => Ok(Box::new(flate2::read::MultiGzDecoder::new(file))),
        _ => Ok(Box::new(file)),
    }
}

/// Device nodes and FIFOs are left out: a sandbox has devices of its own.
fn is_content(kind: EntryType) -> bool {
    kind.is_file()
        || kind.is_dir()
        || kind.is_symlink()
        || kind.is_hard_link()
        || kind.is_contiguous()
        || kind.is_gnu_sparse()
}

fn relative(path: &Path) -> PathBuf {
    path.components().filter(|part| matches!(part, Component::Normal(_))).collect()
}

/// Refuses what only an attack has; `unpack_in` holds the rest (links on the way) below the target.
fn check(entry: &Entry<'_, impl Read>) -> io::Result<()> {
    let path = entry.path()?;
    match path.components().any(|part| part == Component::ParentDir) {
        true => Err(io::Error::other(format!("entry `{}` leaves the image", path.display()))),
        false => Ok(()),
    }
}
