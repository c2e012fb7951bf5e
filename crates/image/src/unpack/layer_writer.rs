//! Writing entries into a folder that no other process is in. Nothing is ever replaced: an existing
//! name refuses the archive, unless both are directories. Directories get their permissions and
//! times last, so that a closed one can be filled.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, Read};
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, FileType, Gid, Mode, OFlags, Timespec, Timestamps, Uid, XattrFlags};
use rustix::io::Errno;

use super::entry::{EntryKind, LayerEntry, relative};
use super::root::{UnpackRoot, handle};
use super::{Owners, UnpackLimits};
use crate::failure::refused;

/// The final attributes of a directory.
struct DirectoryAttributes {
    mode: u32,
    modified: (i64, u32),
}

/// A folder that is being filled.
pub(super) struct LayerWriter {
    root: UnpackRoot,
    owners: Owners,
    kept_path_bytes_left: u64,
    directories: BTreeMap<PathBuf, DirectoryAttributes>,
    /// Names that hide what lower layers have there.
    removed: Vec<PathBuf>,
}

/// The beginning of a name that hides what lower layers have by the rest of it.
pub(crate) const REMOVED: &[u8] = b".wh.";
/// The name that hides everything that lower layers have in its directory.
pub(crate) const OPAQUE: &[u8] = b".wh..wh..opq";
/// A prefix of names from a file system that is no longer in use.
const AUFS: &[u8] = b".wh..wh.";
/// The number of ids in a sandbox; those beyond become `nobody`.
const IDS: u64 = 65_536;
const NOBODY: u32 = 65_534;

impl LayerWriter {
    pub(super) fn new(target: &Path, owners: Owners, limits: &UnpackLimits) -> io::Result<Self> {
        Ok(Self {
            root: UnpackRoot::open(target)?,
            owners,
            kept_path_bytes_left: limits.max_kept_path_bytes,
            directories: BTreeMap::new(),
            removed: Vec::new(),
        })
    }

    pub(super) fn add<R: Read>(&mut self, entry: &mut LayerEntry<'_, R>) -> io::Result<()> {
        let name = entry.path.file_name().unwrap_or_default().as_bytes().to_vec();
        if let Some(hidden) = name.strip_prefix(REMOVED) {
            return self.hide(&entry.path, &name, hidden);
        }
        match entry.kind {
            EntryKind::Directory => self.add_directory(entry),
            EntryKind::File => self.add_file(entry),
            EntryKind::Symlink => self.add_symlink(entry),
            EntryKind::HardLink => self.add_hard_link(entry),
            EntryKind::Special => Ok(()),
        }
    }

    fn hide(&mut self, path: &Path, name: &[u8], hidden: &[u8]) -> io::Result<()> {
        let parent = path.parent().unwrap_or(Path::new(""));
        if name == OPAQUE {
            let directory = self.root.directory(parent)?;
            return rustix::fs::setxattr(handle(directory), "user.overlay.opaque", b"y", XattrFlags::empty())
                .map_err(io::Error::from);
        }
        if name.starts_with(AUFS) {
            return Ok(());
        }
        if matches!(hidden, b"" | b"." | b"..") {
            return Err(refused(format!("entry `{}` removes nothing that can be", path.display())));
        }
        let hidden = parent.join(OsStr::from_bytes(hidden));
        self.keep_path(&hidden)?;
        self.removed.push(hidden);
        Ok(())
    }

    fn keep_path(&mut self, path: &Path) -> io::Result<()> {
        // And the memory for keeping one.
        let bytes = path.as_os_str().len() as u64 + 64;
        let left = self.kept_path_bytes_left.checked_sub(bytes);
        self.kept_path_bytes_left = left.ok_or_else(|| refused("it has too many directories"))?;
        Ok(())
    }

    fn add_directory<R: Read>(&mut self, entry: &LayerEntry<'_, R>) -> io::Result<()> {
        let made = match entry.path.file_name() {
            None => self.root.itself().try_clone()?,
            Some(_) => {
                let (parent, name) = self.root.parent(&entry.path)?;
                match rustix::fs::mkdirat(parent, name, Mode::RWXU) {
                    Err(Errno::EXIST) => {}
                    made => made?,
                }
                let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
                let made = rustix::fs::openat(parent, name, flags, Mode::empty());
                made.map_err(|error| conflict_or(error, &entry.path))?
            }
        };
        self.keep_path(&entry.path)?;
        own(&made, OsStr::new(""), self.owners, entry)?;
        set_attributes(&made, entry)?;
        let dress = DirectoryAttributes { mode: entry.mode, modified: entry.modified };
        self.directories.insert(entry.path.clone(), dress);
        Ok(())
    }

    fn add_file<R: Read>(&mut self, entry: &mut LayerEntry<'_, R>) -> io::Result<()> {
        let (parent, name) = self.root.parent(&entry.path)?;
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let made = rustix::fs::openat(parent, name, flags, Mode::RUSR | Mode::WUSR);
        let mut file = File::from(made.map_err(|error| conflict_or(error, &entry.path))?);
        let written = io::copy(entry, &mut file)?;
        if written != entry.size {
            return Err(refused("it ends in the middle of a file"));
        }
        let file = OwnedFd::from(file);
        own(&file, OsStr::new(""), self.owners, entry)?;
        set_attributes(&file, entry)?;
        rustix::fs::fchmod(&file, Mode::from_raw_mode(entry.mode & 0o777))?;
        Ok(rustix::fs::futimens(&file, &times(entry.modified))?)
    }

    fn add_symlink<R: Read>(&mut self, entry: &LayerEntry<'_, R>) -> io::Result<()> {
        if entry.link.is_empty() || entry.link.contains(&0) {
            return Err(refused(format!("entry `{}` links to nothing", entry.path.display())));
        }
        let (parent, name) = self.root.parent(&entry.path)?;
        rustix::fs::symlinkat(OsStr::from_bytes(&entry.link), parent, name)
            .map_err(|error| conflict_or(error, &entry.path))?;
        own(parent, name, self.owners, entry)?;
        let times = times(entry.modified);
        Ok(rustix::fs::utimensat(parent, name, &times, AtFlags::SYMLINK_NOFOLLOW)?)
    }

    /// Links to a file of this archive: files of lower layers can't be linked to.
    fn add_hard_link<R: Read>(&mut self, entry: &LayerEntry<'_, R>) -> io::Result<()> {
        let refusal = |what: &str| refused(format!("entry `{}` is a hard link {what}", entry.path.display()));
        let source = relative(&entry.link).map_err(|_| refusal("that leaves the image"))?;
        let found = self.root.find(&source, OFlags::PATH | OFlags::NOFOLLOW);
        let found = found.map_err(|_| refusal("to what is not in the archive before it"))?;
        let kind = FileType::from_raw_mode(rustix::fs::fstat(&found)?.st_mode);
        if kind == FileType::Directory {
            return Err(refusal("to a directory"));
        }
        let above = source.parent().unwrap_or(Path::new(""));
        let from = self.root.find(above, OFlags::PATH | OFlags::DIRECTORY)?;
        let from_name = source.file_name().unwrap_or_default();
        let (parent, name) = self.root.parent(&entry.path)?;
        rustix::fs::linkat(&from, from_name, parent, name, AtFlags::empty())
            .map_err(|error| conflict_or(error, &entry.path))
    }

    /// Hides the removed names, and gives the directories their attributes.
    pub(super) fn finish(mut self) -> io::Result<()> {
        for path in std::mem::take(&mut self.removed) {
            self.remove_below(&path)?;
        }
        // The deepest first: those above stay open meanwhile.
        for (path, dress) in self.directories.iter().rev() {
            let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW;
            let directory = self.root.find(path, flags)?;
            rustix::fs::chmod(handle(&directory), Mode::from_raw_mode(dress.mode))?;
            let times = times(dress.modified);
            rustix::fs::utimensat(rustix::fs::CWD, handle(&directory), &times, AtFlags::empty())?;
        }
        Ok(())
    }

    /// Hides a name of lower layers. If the archive has that name itself, it stays; a directory
    /// then hides the content of the lower ones.
    fn remove_below(&mut self, path: &Path) -> io::Result<()> {
        let (parent, name) = self.root.parent(path)?;
        match rustix::fs::statat(parent, name, AtFlags::SYMLINK_NOFOLLOW) {
            Err(Errno::NOENT) => {
                let none = rustix::fs::makedev(0, 0);
                Ok(rustix::fs::mknodat(parent, name, FileType::CharacterDevice, Mode::empty(), none)?)
            }
            Err(error) => Err(error.into()),
            Ok(found) if FileType::from_raw_mode(found.st_mode) == FileType::Directory => {
                let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
                let directory = rustix::fs::openat(parent, name, flags, Mode::empty())?;
                let (path, value) = (handle(&directory), b"y");
                Ok(rustix::fs::setxattr(path, "user.overlay.opaque", value, XattrFlags::empty())?)
            }
            Ok(_) => Ok(()),
        }
    }
}

/// Sets the owner of the file at `name` in `at` (of `at` itself, for an empty name).
fn own<R: Read>(at: &OwnedFd, name: &OsStr, owners: Owners, entry: &LayerEntry<'_, R>) -> io::Result<()> {
    if owners == Owners::Folded {
        return Ok(());
    }
    let id = |id: u64| u32::try_from(id).ok().filter(|id| u64::from(*id) < IDS).unwrap_or(NOBODY);
    let (uid, gid) = (Uid::from_raw(id(entry.uid)), Gid::from_raw(id(entry.gid)));
    let flags = AtFlags::SYMLINK_NOFOLLOW | AtFlags::EMPTY_PATH;
    Ok(rustix::fs::chownat(at, name, Some(uid), Some(gid), flags)?)
}

fn set_attributes<R: Read>(file: &OwnedFd, entry: &LayerEntry<'_, R>) -> io::Result<()> {
    for (name, value) in &entry.attributes {
        match rustix::fs::setxattr(handle(file), OsStr::from_bytes(name), value, XattrFlags::empty()) {
            // Some file systems have no extended attributes.
            Ok(()) | Err(Errno::OPNOTSUPP) => {}
            Err(Errno::NOSPC | Errno::TOOBIG | Errno::RANGE) => {
                let path = entry.path.display();
                return Err(refused(format!(
                    "entry `{path}` has larger attributes than the file system takes"
                )));
            }
            Err(error) => return Err(error.into()),
        }
    }
    Ok(())
}

fn times((seconds, nanoseconds): (i64, u32)) -> Timestamps {
    let time = Timespec { tv_sec: seconds, tv_nsec: i64::from(nanoseconds) };
    Timestamps { last_access: time, last_modification: time }
}

/// Blames the archive for a name that exists already.
fn conflict_or(error: Errno, path: &Path) -> io::Error {
    match error {
        Errno::EXIST | Errno::NOTDIR | Errno::LOOP => {
            refused(format!("entry `{}` is there twice", path.display()))
        }
        Errno::NAMETOOLONG => refused(format!("entry `{}` has too long a name", path.display())),
        error => error.into(),
    }
}
