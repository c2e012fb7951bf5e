//! The files that snapshots of a sandbox show, packed as one layer for an image. Of the image below nothing is read: what the
//! snapshots removed or hide of it becomes a mark.

use std::collections::HashMap;
use std::ffi::{CString, OsStr};
use std::fs::File;
use std::io;
use std::os::fd::AsFd;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use eyot_image::{EntryFacts, LayerPacker};
use rustix::fs::{FileType, Stat};
use rustix::io::Errno;

use crate::compared::OWN;
use crate::merged_layers::{MAX_NAMES, MergedLayers, ShownName, joined};
use crate::plan::USER_ID;
use crate::state::IdBlock;

/// The most bytes of names of files with several of them, which are kept in memory. Of a file beyond, each name gets a copy.
const MAX_LINK_BYTES: usize = 64 << 20;
/// The most bytes of the paths of directories that are still to be packed.
const MAX_LEFT_BYTES: usize = 256 << 20;
/// The most bytes of the attributes of one file.
const MAX_ATTRIBUTES_BYTES: usize = 1 << 20;
/// The id of a file of nobody's.
const NOBODY: u32 = 65_534;
/// The most bytes of the value of an extended attribute. The kernel gives no more.
const MAX_ATTRIBUTE_BYTES: usize = 1 << 16;

/// The layers of snapshots, topmost first, each with the host ids of those who wrote it.
pub(crate) struct SnapshotTree {
    pub layers: MergedLayers,
    pub ids: Vec<Option<IdBlock>>,
}

/// A directory whose content is to be packed.
struct QueuedDirectory {
    path: PathBuf,
    places: Vec<usize>,
    /// Nothing of the image shows in it.
    is_whole: bool,
}

/// Packs a tree.
struct SnapshotPacker<'a, 'p> {
    tree: &'a SnapshotTree,
    packer: &'a mut LayerPacker<'p>,
    /// The first name of each file with several, by its layer and number there.
    first_names: HashMap<(usize, u64), PathBuf>,
    link_bytes: usize,
    left: Vec<QueuedDirectory>,
    /// The bytes of their paths.
    left_bytes: usize,
}

/// Packs everything that the tree shows but what each sandbox has of its own.
pub(crate) fn pack(tree: &SnapshotTree, packer: &mut LayerPacker<'_>) -> io::Result<()> {
    let root = QueuedDirectory { path: PathBuf::new(), places: tree.layers.places(), is_whole: false };
    let first_names = HashMap::new();
    let mut packing =
        SnapshotPacker { tree, packer, first_names, link_bytes: 0, left: vec![root], left_bytes: 0 };
    while let Some(directory) = packing.left.pop() {
        packing.left_bytes -= directory.path.as_os_str().len();
        packing.content(&directory)?;
    }
    Ok(())
}

impl SnapshotPacker<'_, '_> {
    fn content(&mut self, directory: &QueuedDirectory) -> io::Result<()> {
        let named = |error| at(&directory.path, error);
        let opened = self.tree.layers.directory(&directory.path, &directory.places).map_err(named)?;
        let mut names: Vec<CString> = Vec::new();
        if !opened.add_names(usize::MAX, &mut names, MAX_NAMES).map_err(named)? {
            let path = directory.path.display();
            return Err(io::Error::new(
                io::ErrorKind::InvalidData,
                format!("`/{path}` has more than {MAX_NAMES} names"),
            ));
        }
        names.sort_unstable();
        names.dedup();
        for name in names {
            let path = joined(&directory.path, &name);
            if OWN.iter().any(|own| path == Path::new(own)) {
                continue;
            }
            let shown = opened.look(&name).map_err(|error| at(&path, error))?;
            self.entry(directory, path, shown)?;
        }
        Ok(())
    }

    fn entry(&mut self, parent: &QueuedDirectory, path: PathBuf, shown: ShownName) -> io::Result<()> {
        match shown {
            ShownName::Directory { places, stat, hidden_by } => {
                let is_whole = parent.is_whole || hidden_by.is_some();
                self.directory(&path, &places, &stat)?;
                if is_whole && !parent.is_whole {
                    self.packer.hides_below(&path)?;
                }
                self.left_bytes += path.as_os_str().len();
                if self.left_bytes > MAX_LEFT_BYTES {
                    return Err(at(
                        &path,
                        io::Error::new(io::ErrorKind::InvalidData, "too many deep directories"),
                    ));
                }
                self.left.push(QueuedDirectory { path, places, is_whole });
                Ok(())
            }
            ShownName::Leaf { place, stat } => match FileType::from_raw_mode(stat.st_mode) {
                FileType::RegularFile => self.file(&path, place, &stat),
                FileType::Symlink => self.symlink(&path, place, &stat),
                // Images have no sockets, pipes and devices. What the image has of that name is gone nevertheless.
                _ => self.removed(parent, &path),
            },
            ShownName::Nothing => self.removed(parent, &path),
        }
    }

    fn removed(&mut self, parent: &QueuedDirectory, path: &Path) -> io::Result<()> {
        if parent.is_whole { Ok(()) } else { self.packer.removed(path) }
    }

    fn directory(&mut self, path: &Path, places: &[usize], stat: &Stat) -> io::Result<()> {
        let Some(topmost) = places.first() else { return Err(io::ErrorKind::NotFound.into()) };
        let opened = self.tree.layers.opened(*topmost, path).map_err(|error| at(path, error))?;
        let attributes = attributes(&opened).map_err(|error| at(path, error))?;
        self.packer.directory(path, &self.facts(*topmost, stat, attributes))
    }

    fn file(&mut self, path: &Path, place: usize, stat: &Stat) -> io::Result<()> {
        let key = (place, stat.st_ino);
        if let Some(first) = self.first_names.get(&key) {
            return self.packer.hard_link(path, first, &self.facts(place, stat, Vec::new()));
        }
        let opened = self.tree.layers.file(place, path).map_err(|error| at(path, error))?;
        let mut file: File = opened.ok_or_else(|| at(path, io::ErrorKind::PermissionDenied.into()))?;
        let attributes = attributes(&file).map_err(|error| at(path, error))?;
        let facts = self.facts(place, stat, attributes);
        self.packer.file(path, &facts, stat.st_size.unsigned_abs(), &mut file)?;
        if stat.st_nlink > 1 && self.link_bytes < MAX_LINK_BYTES {
            self.link_bytes += path.as_os_str().len();
            self.first_names.insert(key, path.to_owned());
        }
        Ok(())
    }

    fn symlink(&mut self, path: &Path, place: usize, stat: &Stat) -> io::Result<()> {
        let target = self.tree.layers.target(place, path).map_err(|error| at(path, error))?;
        let target = target.ok_or_else(|| at(path, io::ErrorKind::NotFound.into()))?;
        let facts = self.facts(place, stat, Vec::new());
        self.packer.symlink(path, OsStr::from_bytes(target.as_bytes()), &facts)
    }

    fn facts(&self, place: usize, stat: &Stat, attributes: Vec<(String, Vec<u8>)>) -> EntryFacts {
        let ids = self.tree.ids.get(place).copied().flatten();
        EntryFacts {
            mode: stat.st_mode & 0o7777,
            uid: inner_id(ids, stat.st_uid, rustix::process::geteuid().as_raw()),
            gid: inner_id(ids, stat.st_gid, rustix::process::getegid().as_raw()),
            modified_s: u64::try_from(stat.st_mtime).unwrap_or(0),
            attributes,
        }
    }
}

/// Returns the id inside of a host id. Without a range, the caller's own is that of the inner user.
fn inner_id(ids: Option<IdBlock>, host: u32, own: u32) -> u32 {
    match ids {
        Some(ids) => ids.range().inner_id(host).unwrap_or(NOBODY),
        None if host == own => USER_ID,
        None => NOBODY,
    }
}

/// Reads the attributes of an open file that images keep. Those that are gone meanwhile, or whose name is no text, are left
/// out.
fn attributes(file: impl AsFd) -> io::Result<Vec<(String, Vec<u8>)>> {
    // Nearly no file has any.
    let bytes = match rustix::fs::flistxattr(&file, &mut [0_u8; 0][..]) {
        Err(Errno::NOTSUP) | Ok(0) => return Ok(Vec::new()),
        bytes => bytes?,
    };
    let mut listed = vec![0_u8; bytes];
    let count = rustix::fs::flistxattr(&file, &mut listed[..])?;
    let names = listed[..count].split(|byte| *byte == 0).filter_map(|name| std::str::from_utf8(name).ok());
    let (mut found, mut bytes) = (Vec::new(), 0);
    // Those of an ordinary user's overlay say how layers lie above each other here.
    let is_kept = |name: &&str| name.starts_with("user.") && !name.starts_with("user.overlay.");
    for name in names.filter(is_kept) {
        let mut value = vec![0_u8; MAX_ATTRIBUTE_BYTES];
        match rustix::fs::fgetxattr(&file, name, &mut value[..]) {
            Err(Errno::NODATA) => {}
            count => {
                value.truncate(count?);
                value.shrink_to_fit();
                bytes += name.len() + value.len();
                if bytes > MAX_ATTRIBUTES_BYTES {
                    return Err(io::Error::new(io::ErrorKind::InvalidData, "too many attributes"));
                }
                found.push((name.to_owned(), value));
            }
        }
    }
    Ok(found)
}

/// Says which file an error is about, by its path inside.
fn at(path: &Path, error: io::Error) -> io::Error {
    let reason = match error.kind() {
        io::ErrorKind::PermissionDenied => "is closed to its owner".to_owned(),
        _ => format!("can't be read: {}", eyot::internal::system_reason(&error)),
    };
    io::Error::new(error.kind(), format!("`/{}` {reason}", path.display()))
}
