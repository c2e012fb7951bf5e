//! A rootfs tarball, unpacked once per content (by path, size and time) into a layer that sandboxes share.

use std::fs;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io::{self, Read};
use std::os::fd::OwnedFd;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Component, Path, PathBuf};

use eyot::{Error, ErrorKind, Result};
use rustix::fs::{Mode, OFlags, ResolveFlags};
use rustix::io::Errno;
use tar::{Archive, Entry, EntryType};

use super::Image;
use super::read::{handle, open_within};
use super::stream::Stream;
use crate::state::{StateDir, make_dir};

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
        let unpacked =
            unpack(path, &aside, as_root, LIMITS).and_then(|()| match fs::rename(&aside, &layer) {
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

/// How much a tarball may hold.
#[derive(Debug, Clone, Copy)]
struct Limits {
    /// Of the decompressed stream, and of the files' sizes as the entries tell them.
    bytes: u64,
    /// Of any kind, those that are left out as well.
    entries: u64,
    /// Of the directories' paths, which are kept in memory until the end.
    directory_path_bytes: usize,
}

const LIMITS: Limits = Limits { bytes: 64 << 30, entries: 4_000_000, directory_path_bytes: 64 << 20 };

/// Unpacks as little as a fuzzer needs, with nobody's ids.
#[cfg(feature = "fuzzing")]
pub(super) fn unpack_a_little(path: &Path, target: &Path) -> io::Result<()> {
    unpack(path, target, false, Limits { bytes: 1 << 20, entries: 200, directory_path_bytes: 64 << 10 })
}

fn unpack(path: &Path, target: &Path, as_root: bool, limits: Limits) -> io::Result<()> {
    make_dir(target, 0o755)?;
    let stream = Stream::open(path, limits.bytes)?;
    let allowance = stream.allowance();
    let mut archive = Archive::new(stream);
    archive.set_preserve_permissions(true);
    // Neither setuid nor setgid, whatever the kind of the entry: the layer lies on the host.
    archive.set_mask(SET_ID);
    archive.set_preserve_ownerships(as_root);
    let mut layer = Layer::new(target, limits)?;
    let mut entries = archive.entries()?;
    loop {
        allowance.header();
        let Some(entry) = entries.next() else { break };
        let mut entry = entry?;
        allowance.content();
        layer.count(&entry)?;
        layer.add(&mut entry)?;
        // What was not unpacked is read here; the reader would take it for a part of the next header.
        io::copy(&mut entry, &mut io::sink())?;
    }
    layer.dress_directories()
}

const SET_ID: u32 = 0o6000;

/// A layer that is being filled.
struct Layer<'a> {
    target: &'a Path,
    root: OwnedFd,
    /// What may still come.
    left: Limits,
    /// Paths below the target and permissions: set last, so that a read-only directory can still be filled.
    directories: Vec<(PathBuf, u32)>,
}

impl<'a> Layer<'a> {
    fn new(target: &'a Path, limits: Limits) -> io::Result<Self> {
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let root = rustix::fs::open(target, flags, Mode::empty())?;
        Ok(Self { target, root, left: limits, directories: Vec::new() })
    }

    /// Counts an entry against the limits.
    fn count(&mut self, entry: &Entry<'_, impl Read>) -> io::Result<()> {
        let too_many = || io::Error::other("it has too many entries");
        let too_large = || io::Error::other("it unpacks to too many bytes");
        self.left.entries = self.left.entries.checked_sub(1).ok_or_else(too_many)?;
        self.left.bytes = self.left.bytes.checked_sub(entry.size()).ok_or_else(too_large)?;
        Ok(())
    }

    fn add(&mut self, entry: &mut Entry<'_, impl Read>) -> io::Result<()> {
        check(entry)?;
        if !is_content(entry.header().entry_type()) {
            return Ok(());
        }
        let mode = entry.header().mode()? & 0o1777;
        let place = relative(&entry.path()?);
        let is_directory = is_directory(entry);
        if entry.unpack_in(self.target)? && is_directory {
            let too_many = || io::Error::other("it has too many directories");
            let bytes = place.as_os_str().len();
            let left = self.left.directory_path_bytes.checked_sub(bytes).ok_or_else(too_many)?;
            self.left.directory_path_bytes = left;
            self.dress(&place, 0o700 | mode)?;
            self.directories.push((place, mode));
        }
        Ok(())
    }

    fn dress_directories(&mut self) -> io::Result<()> {
        while let Some((place, mode)) = self.directories.pop() {
            self.dress(&place, mode)?;
        }
        Ok(())
    }

    /// Sets a directory's permissions, reached through no link: a later entry may have put one in its place or on the
    /// way, and it would lead anywhere on the host. Such a directory is passed over.
    fn dress(&self, place: &Path, mode: u32) -> io::Result<()> {
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW;
        let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS;
        match open_within(&self.root, place, flags, resolve) {
            Err(Errno::LOOP | Errno::NOTDIR | Errno::NOENT) => Ok(()),
            // By its handle: fchmod(2) refuses a descriptor that was opened without a right to read.
            found => fs::set_permissions(handle(&found?), fs::Permissions::from_mode(mode)),
        }
    }
}

/// As the tar reader sees it: in the oldest format a directory is a file whose name ends in a slash.
fn is_directory(entry: &Entry<'_, impl Read>) -> bool {
    let header = entry.header();
    let is_old = header.as_ustar().is_none() && entry.path_bytes().ends_with(b"/");
    header.entry_type().is_dir() || (is_old && is_regular(header.entry_type()))
}

fn is_regular(kind: EntryType) -> bool {
    kind.is_file() || kind.is_contiguous() || kind.is_gnu_sparse()
}

/// Device nodes and FIFOs are left out: a sandbox has devices of its own.
fn is_content(kind: EntryType) -> bool {
    is_regular(kind) || kind.is_dir() || kind.is_symlink() || kind.is_hard_link()
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

#[cfg(test)]
mod tests {
    use tar::{Builder, Header};

    use super::*;

    const SMALL: Limits = Limits { bytes: 8 << 20, entries: 100, directory_path_bytes: 1 << 20 };

    fn entry(tar: &mut Builder<Vec<u8>>, kind: EntryType, path: &str, link: &str, mode: u32) {
        let mut header = Header::new_gnu();
        header.set_entry_type(kind);
        header.set_mode(mode);
        header.set_size(0);
        header.set_uid(u64::from(rustix::process::geteuid().as_raw()));
        header.set_gid(u64::from(rustix::process::getegid().as_raw()));
        header.as_gnu_mut().unwrap().realsize = *b"00000000000\0";
        match kind {
            EntryType::Symlink => tar.append_link(&mut header, path, link).unwrap(),
            _ => tar.append_data(&mut header, path, &b""[..]).unwrap(),
        }
    }

    /// Unpacks into `layer` in the folder.
    fn unpack_bytes(folder: &Path, bytes: &[u8], limits: Limits) -> io::Result<PathBuf> {
        let (tar, layer) = (folder.join("image.tar"), folder.join("layer"));
        fs::write(&tar, bytes).unwrap();
        unpack(&tar, &layer, false, limits).map(|()| layer)
    }

    fn mode(path: &Path) -> u32 {
        fs::symlink_metadata(path).unwrap().mode() & 0o7777
    }

    #[test]
    fn a_link_that_takes_a_directorys_place_does_not_pass_its_permissions_on() {
        let folder = tempfile::tempdir().unwrap();
        let victim = folder.path().join("victim");
        make_dir(&victim.join("secret"), 0o700).unwrap();
        let mut tar = Builder::new(Vec::new());
        entry(&mut tar, EntryType::Directory, "real", "", 0o755);
        entry(&mut tar, EntryType::Symlink, "x", "real", 0o777);
        entry(&mut tar, EntryType::Directory, "x/secret", "", 0o777);
        entry(&mut tar, EntryType::Symlink, "x", victim.to_str().unwrap(), 0o777);
        unpack_bytes(folder.path(), &tar.into_inner().unwrap(), SMALL).unwrap();
        assert_eq!(mode(&victim.join("secret")), 0o700);
    }

    #[test]
    fn set_id_bits_are_dropped_from_every_kind_of_file_and_a_closed_directory_is_filled_first() {
        let folder = tempfile::tempdir().unwrap();
        let mut tar = Builder::new(Vec::new());
        entry(&mut tar, EntryType::Directory, "d", "", 0o6555);
        entry(&mut tar, EntryType::Regular, "d/regular", "", 0o6755);
        entry(&mut tar, EntryType::Continuous, "d/contiguous", "", 0o6755);
        entry(&mut tar, EntryType::GNUSparse, "d/sparse", "", 0o6755);
        let layer = unpack_bytes(folder.path(), &tar.into_inner().unwrap(), SMALL).unwrap();
        for name in ["regular", "contiguous", "sparse"] {
            assert_eq!(mode(&layer.join("d").join(name)), 0o755, "{name}");
        }
        assert_eq!(mode(&layer.join("d")), 0o555);
    }

    #[test]
    fn bombs_stop_at_the_limits() {
        let folder = || tempfile::tempdir().unwrap();
        let many = |count: usize| {
            let mut tar = Builder::new(Vec::new());
            (0..count).for_each(|n| entry(&mut tar, EntryType::Fifo, &format!("f{n}"), "", 0o644));
            tar.into_inner().unwrap()
        };
        unpack_bytes(folder().path(), &many(100), SMALL).unwrap();
        let error = unpack_bytes(folder().path(), &many(101), SMALL).unwrap_err();
        assert!(error.to_string().contains("too many entries"), "{error}");

        let error = unpack_bytes(folder().path(), &many(100), Limits { bytes: 512 * 50, ..SMALL });
        assert!(error.unwrap_err().to_string().contains("too many bytes"));

        let mut huge = Header::new_gnu();
        huge.set_path("f").unwrap();
        huge.set_size(u64::MAX >> 1);
        huge.set_cksum();
        let error = unpack_bytes(folder().path(), &huge.as_bytes().repeat(2), SMALL).unwrap_err();
        assert!(error.to_string().contains("too many bytes"), "{error}");

        let mut tar = Builder::new(Vec::new());
        let mut header = Header::new_gnu();
        header.set_size(0);
        tar.append_data(&mut header, "n".repeat(2 << 20), &b""[..]).unwrap();
        let error = unpack_bytes(folder().path(), &tar.into_inner().unwrap(), SMALL).unwrap_err();
        assert!(error.to_string().contains("mebibyte of headers"), "{error}");
    }

    #[test]
    fn what_is_left_out_may_be_larger_than_a_header() {
        let folder = tempfile::tempdir().unwrap();
        let mut tar = Builder::new(Vec::new());
        let mut header = Header::new_gnu();
        header.set_entry_type(EntryType::new(b'V'));
        header.set_size(3 << 20);
        tar.append_data(&mut header, "label", &vec![1; 3 << 20][..]).unwrap();
        entry(&mut tar, EntryType::Regular, "f", "", 0o644);
        let layer = unpack_bytes(folder.path(), &tar.into_inner().unwrap(), SMALL).unwrap();
        assert!(layer.join("f").exists() && !layer.join("label").exists());
    }
}
