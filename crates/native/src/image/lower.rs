//! The read-only layers of an image, looked into from the host as an overlay shows them: the
//! topmost layer that has a name counts, a name that a layer removes does not exist, and
//! directories are merged until one hides those below.
//!
//! The links in the layers are hostile. The kernel follows none of them; they are followed here, by
//! name, and lead only to places inside.

use std::collections::VecDeque;
use std::ffi::{OsStr, OsString};
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Component, Path, PathBuf};

use eyot::SnapshotId;
use rustix::fs::{CWD, FileType, Mode, OFlags};
use rustix::io::Errno;
use serde::{Deserialize, Serialize};

use super::read::handle;
use crate::state::IdBlock;

/// The read-only layers of an image on the host.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Lower {
    /// A folder of the host.
    #[serde(rename = "lower", default)]
    pub folder: String,
    /// The names of the layers in the folder, topmost first. If there are none, the folder is the
    /// only layer.
    #[serde(default)]
    pub layers: Vec<String>,
    /// The snapshots above the image, topmost first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub snapshots: Vec<SnapshotLayer>,
}

/// The files of a snapshot, as a layer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct SnapshotLayer {
    /// The snapshot.
    pub id: SnapshotId,
    /// The folder of its files on the host.
    pub folder: String,
    /// The host ids of the sandbox that wrote them; `None`: it had none of its own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ids: Option<IdBlock>,
}

impl SnapshotLayer {
    /// Returns the folder of the snapshot, which has its files and its copies of folders.
    pub(crate) fn snapshot_folder(&self) -> &Path {
        let files = Path::new(&self.folder);
        files.parent().unwrap_or(files)
    }
}

/// The owner and the permission bits of a directory in a layer. The ids are those inside.
#[derive(Debug, Clone, Copy)]
pub(crate) struct DirectoryFacts {
    pub mode: u32,
    pub uid: u32,
    pub gid: u32,
}

/// The number of links that the kernel follows.
const MAX_LINKS: usize = 40;
const LOOK: OFlags = OFlags::PATH.union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);

/// The result of looking a path up in one layer.
enum LayerLookup {
    There(OwnedFd, FileType),
    /// Nothing is there, and the layer hides what the layers below have there.
    Hidden,
    /// Nothing is there; the next layer decides.
    Absent,
}

impl Lower {
    /// Makes an image of one layer.
    pub(crate) fn one(folder: &str) -> Self {
        Self { folder: folder.to_owned(), ..Self::default() }
    }

    /// Returns the folders of the layers, topmost first, each with the host ids of its files' owners; `None`: they have
    /// the ids of inside.
    pub(crate) fn folders(&self) -> Vec<(PathBuf, Option<IdBlock>)> {
        let folder = Path::new(&self.folder);
        let mut folders: Vec<_> =
            self.snapshots.iter().map(|snapshot| (PathBuf::from(&snapshot.folder), snapshot.ids)).collect();
        if self.layers.is_empty() {
            folders.push((folder.to_owned(), None));
        } else {
            folders.extend(self.layers.iter().map(|name| (folder.join(name), None)));
        }
        folders
    }

    /// Moves the folders that lie below one state folder to another one.
    pub(crate) fn move_below(&mut self, state: &Path, was: &Path) -> io::Result<()> {
        for folder in self.snapshots.iter_mut().map(|snapshot| &mut snapshot.folder).chain([&mut self.folder])
        {
            if let Ok(below) = Path::new(&*folder).strip_prefix(was) {
                let moved = state.join(below).into_os_string().into_string();
                *folder = moved.map_err(|_| io::ErrorKind::InvalidFilename)?;
            }
        }
        Ok(())
    }

    /// Tells whether every layer exists.
    pub(crate) fn is_there(&self) -> bool {
        self.folders().iter().all(|(layer, _)| layer.is_dir())
    }

    /// Opens the file at `path` (relative to the root) to inspect it, after following links inside
    /// the image. `NOENT` if there is none.
    pub(crate) fn find(&self, path: &str) -> Result<OwnedFd, Errno> {
        let mut to_go: VecDeque<OsString> = parts(Path::new(path)).collect();
        let (mut reached, mut links) = (PathBuf::new(), 0);
        let mut found = None;
        while let Some(part) = to_go.pop_front() {
            if part == ".." {
                reached.pop();
                continue;
            }
            let next = reached.join(&part);
            let (file, kind, _) = self.look(&next)?;
            match kind {
                FileType::Symlink => {
                    links += 1;
                    if links > MAX_LINKS {
                        return Err(Errno::LOOP);
                    }
                    let target = rustix::fs::readlinkat(&file, "", Vec::new())?;
                    let target = PathBuf::from(OsString::from_vec(target.into_bytes()));
                    if target.is_absolute() {
                        reached = PathBuf::new();
                    }
                    parts(&target).rev().for_each(|part| to_go.push_front(part));
                    continue;
                }
                FileType::Directory => {}
                _ if !to_go.is_empty() => return Err(Errno::NOTDIR),
                _ => {}
            }
            reached = next;
            found = Some(file);
        }
        found.ok_or(Errno::ISDIR)
    }

    /// Returns what is known of the directory at `path` (relative to the root), unless a part of the path is a link or there is
    /// no directory.
    pub(crate) fn directory(&self, path: &Path) -> Result<Option<DirectoryFacts>, Errno> {
        match self.look(path) {
            Ok((file, FileType::Directory, ids)) => {
                let stat = rustix::fs::fstat(&file)?;
                let inside = |id: u32| ids.map_or(id, |ids| ids.range().inner_id(id).unwrap_or(0));
                let (uid, gid) = (inside(stat.st_uid), inside(stat.st_gid));
                Ok(Some(DirectoryFacts { mode: stat.st_mode & 0o7777, uid, gid }))
            }
            // Where this user can't enter, its sandboxes can't either.
            Ok(_) | Err(Errno::NOENT | Errno::ACCESS) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Looks up a path whose folders are no links, in all layers.
    fn look(&self, path: &Path) -> Result<(OwnedFd, FileType, Option<IdBlock>), Errno> {
        for (layer, ids) in self.folders() {
            match look_in(&layer, path)? {
                LayerLookup::There(file, kind) => return Ok((file, kind, ids)),
                LayerLookup::Hidden => return Err(Errno::NOENT),
                LayerLookup::Absent => {}
            }
        }
        Err(Errno::NOENT)
    }
}

/// Lists the names and `..` in a path, in order.
fn parts(path: &Path) -> impl DoubleEndedIterator<Item = OsString> {
    path.components().filter_map(|part| match part {
        Component::Normal(name) => Some(name.to_owned()),
        Component::ParentDir => Some(OsString::from("..")),
        _ => None,
    })
}

fn look_in(layer: &Path, path: &Path) -> Result<LayerLookup, Errno> {
    let mut at = rustix::fs::openat(CWD, layer, LOOK | OFlags::DIRECTORY, Mode::empty())?;
    let mut hides = false;
    let mut names = path.iter().peekable();
    while let Some(name) = names.next() {
        at = match open_name(&at, name)? {
            None if hides => return Ok(LayerLookup::Hidden),
            None => return Ok(LayerLookup::Absent),
            Some(file) => file,
        };
        let stat = rustix::fs::fstat(&at)?;
        let kind = FileType::from_raw_mode(stat.st_mode);
        if kind == FileType::CharacterDevice && stat.st_rdev == 0 {
            return Ok(LayerLookup::Hidden);
        }
        if names.peek().is_none() {
            return Ok(LayerLookup::There(at, kind));
        }
        if kind != FileType::Directory {
            return Ok(LayerLookup::Hidden);
        }
        hides |= is_opaque(&at);
    }
    Ok(LayerLookup::Absent)
}

fn open_name(at: &OwnedFd, name: &OsStr) -> Result<Option<OwnedFd>, Errno> {
    match rustix::fs::openat(at, name.as_bytes(), LOOK, Mode::empty()) {
        Err(Errno::NOENT) => Ok(None),
        found => found.map(Some),
    }
}

fn is_opaque(directory: &OwnedFd) -> bool {
    rustix::fs::getxattr(handle(directory), "user.overlay.opaque", &mut [0_u8; 1][..]).is_ok()
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use super::super::read::read_of_image;
    use super::*;

    /// Makes layers, topmost first, from pairs of `layer/path` and content.
    fn layers(folder: &Path, names: &[&str], files: &[(&str, &str)]) -> Lower {
        for name in names {
            fs::create_dir_all(folder.join(name)).unwrap();
        }
        for (path, text) in files {
            fs::create_dir_all(folder.join(path).parent().unwrap()).unwrap();
            fs::write(folder.join(path), text).unwrap();
        }
        let layers = names.iter().map(|name| (*name).to_owned()).collect();
        Lower { folder: folder.to_str().unwrap().to_owned(), layers, snapshots: Vec::new() }
    }

    fn read(lower: &Lower, path: &str) -> String {
        read_of_image(lower, path).unwrap()
    }

    #[test]
    fn the_topmost_layer_that_has_a_name_counts_and_directories_are_merged() {
        let folder = tempfile::tempdir().unwrap();
        let files = [("top/etc/a", "new"), ("low/etc/a", "old"), ("low/etc/b", "kept")];
        let lower = layers(folder.path(), &["top", "low"], &files);
        assert_eq!((read(&lower, "etc/a"), read(&lower, "etc/b")), ("new".into(), "kept".into()));
        assert_eq!(read(&lower, "etc/none"), "");
    }

    #[test]
    fn what_a_layer_removes_hides_or_replaces_is_not_read_from_below() {
        let folder = tempfile::tempdir().unwrap();
        let files = [
            ("low/etc/gone", "x"),
            ("low/opaque/f", "x"),
            ("low/file/f", "x"),
            ("top/file", ""),
            ("top/opaque/g", "y"),
        ];
        let lower = layers(folder.path(), &["top", "low"], &files);
        fs::create_dir_all(folder.path().join("top/etc")).unwrap();
        let removed = folder.path().join("top/etc/gone");
        rustix::fs::mknodat(CWD, &removed, FileType::CharacterDevice, Mode::empty(), 0).unwrap();
        let flags = rustix::fs::XattrFlags::empty();
        rustix::fs::setxattr(folder.path().join("top/opaque"), "user.overlay.opaque", b"y", flags).unwrap();
        for path in ["etc/gone", "opaque/f"] {
            assert_eq!(read(&lower, path), "", "{path}");
        }
        assert!(read_of_image(&lower, "file/f").is_err());
        assert_eq!(read(&lower, "opaque/g"), "y");
    }

    #[test]
    fn a_link_of_one_layer_leads_into_another_and_never_out() {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("secret"), "host").unwrap();
        let lower = layers(folder.path(), &["top", "low"], &[("low/usr/etc/passwd", "inside")]);
        symlink("usr/etc", folder.path().join("top/etc")).unwrap();
        assert_eq!(read(&lower, "etc/passwd"), "inside");
        for (name, target) in [("up", "../../secret"), ("absolute", "/secret"), ("loop", "loop")] {
            symlink(target, folder.path().join("top").join(name)).unwrap();
        }
        assert_eq!((read(&lower, "up"), read(&lower, "absolute")), (String::new(), String::new()));
        assert!(read_of_image(&lower, "loop").is_err());
        symlink(folder.path().join("secret"), folder.path().join("top/host")).unwrap();
        assert_eq!(read(&lower, "host"), "");
    }
}
