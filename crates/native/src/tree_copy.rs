//! A copy of a layer's files on another file system: contents with their holes, owners, modes, times, attributes, hard links, and
//! the marks of the overlay. Nobody changes the tree meanwhile. Its depth does not matter: only the directory that is being copied
//! is open.

use std::collections::HashSet;
use std::ffi::{CStr, CString, OsStr, OsString};
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use eyot::internal::system_reason;
use rustix::fs::{
    AtFlags, CWD, Dir, FileType, Gid, Mode, OFlags, Stat, Timespec, Timestamps, Uid, XattrFlags,
};
use rustix::io::Errno;

use crate::attributes::{XATTR_MAX, attribute_names};
use crate::sparse_copy::{BLOCK_BYTES, copy_sparse};
use crate::state::make_child;

const DIRECTORY: OFlags =
    OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);
const PRIVATE: Mode = Mode::RWXU;

/// The least that a name costs, in bytes: a file system has a number for every 16 KiB, whatever the file has in it.
const LEAST_COST: u64 = 16 << 10;
/// Copies trees. What they take on the disk is bounded.
pub(crate) struct TreeCopy {
    /// A directory with one more name of each file that has several, by the file's number.
    links: OwnedFd,
    links_folder: PathBuf,
    linked: HashSet<u64>,
    most_cost: u64,
    taken: TakenBytes,
}

/// The room that copies take.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct TakenBytes {
    /// The bytes on the disk.
    pub bytes: u64,
    /// The bytes for a quota: a file without content costs something, too.
    pub cost: u64,
}

/// A directory that is being copied.
struct CopiedFolder {
    /// The directories in it that are left. Everything else in it was copied.
    folders: Vec<CString>,
    stat: Stat,
}

impl TreeCopy {
    /// Begins. `links_folder` is on the file system of the copies, does not exist, and is removed at the end.
    pub(crate) fn new(links_folder: PathBuf, most_cost: u64) -> io::Result<Self> {
        make_child(&links_folder, 0o700)?;
        let links = rustix::fs::open(&links_folder, DIRECTORY, Mode::empty())?;
        Ok(Self { links, links_folder, linked: HashSet::new(), most_cost, taken: TakenBytes::default() })
    }

    /// Removes what only the copying needed.
    pub(crate) fn finish(self) -> io::Result<TakenBytes> {
        eyot_image::remove_tree(&self.links_folder)?;
        Ok(self.taken)
    }

    /// Copies the directory `from` to `to`, which does not exist.
    ///
    /// # Errors
    /// `QuotaExceeded` once the copies cost more than they may. Other errors name the file.
    pub(crate) fn copy(&mut self, from: &Path, to: &Path) -> io::Result<()> {
        let opened = |path: &Path| rustix::fs::open(path, DIRECTORY, Mode::empty());
        rustix::fs::mkdir(to, PRIVATE)?;
        let (mut from, mut to) = (opened(from)?, opened(to)?);
        self.count(&rustix::fs::fstat(&from)?)?;
        let mut levels = vec![self.enter(&from, &to)?];
        while let Some(level) = levels.last_mut() {
            if let Some(name) = level.folders.pop() {
                rustix::fs::mkdirat(&to, &name, PRIVATE)?;
                (from, to) = (open_at(&from, &name)?, open_at(&to, &name)?);
                levels.push(self.enter(&from, &to)?);
                continue;
            }
            copy_facts(&own_path(&from), &own_path(&to), &level.stat)?;
            levels.pop();
            if !levels.is_empty() {
                (from, to) = (open_at(&from, c"..")?, open_at(&to, c"..")?);
            }
        }
        Ok(())
    }

    /// Copies what a directory has in it, but for its directories.
    fn enter(&mut self, from: &OwnedFd, to: &OwnedFd) -> io::Result<CopiedFolder> {
        let stat = rustix::fs::fstat(from)?;
        let mut folders = Vec::new();
        for entry in Dir::read_from(from)? {
            let entry = entry?;
            let name = entry.file_name();
            if matches!(name.to_bytes(), b"." | b"..") {
                continue;
            }
            let stat = rustix::fs::statat(from, name, AtFlags::SYMLINK_NOFOLLOW)?;
            if FileType::from_raw_mode(stat.st_mode) == FileType::Directory {
                self.count(&stat)?;
                folders.push(name.to_owned());
            } else {
                self.copy_name((from, to), name, &stat).map_err(|error| named(name, error))?;
            }
        }
        Ok(CopiedFolder { folders, stat })
    }

    fn count(&mut self, stat: &Stat) -> io::Result<()> {
        let bytes = u64::try_from(stat.st_blocks).unwrap_or(0) * BLOCK_BYTES;
        self.taken.bytes += bytes;
        self.taken.cost += bytes.max(LEAST_COST);
        if self.taken.cost > self.most_cost { Err(io::ErrorKind::QuotaExceeded.into()) } else { Ok(()) }
    }

    /// Copies what is no directory.
    fn copy_name(&mut self, (from, to): (&OwnedFd, &OwnedFd), name: &CStr, stat: &Stat) -> io::Result<()> {
        let number = CString::new(stat.st_ino.to_string())?;
        let has_more_names = stat.st_nlink > 1;
        if has_more_names && self.linked.contains(&stat.st_ino) {
            match rustix::fs::linkat(&self.links, &number, to, name, AtFlags::empty()) {
                // There is one name more than the file had. The last one becomes a file of its own, and costs as much.
                Err(Errno::MLINK) => {}
                linked => return Ok(linked?),
            }
        }
        self.count(stat)?;
        copy_content((from, to), name, stat)?;
        copy_facts(&path_at(from.as_fd(), name), &path_at(to.as_fd(), name), stat)?;
        if has_more_names && self.linked.insert(stat.st_ino) {
            rustix::fs::linkat(to, name, &self.links, &number, AtFlags::empty())?;
        }
        Ok(())
    }
}

/// Names the file in an error. What is beyond the bound is no file's fault.
fn named(name: &CStr, error: io::Error) -> io::Error {
    const MOST_SHOWN: usize = 80;
    if error.kind() == io::ErrorKind::QuotaExceeded {
        return error;
    }
    let name: String = name.to_string_lossy().escape_debug().take(MOST_SHOWN).collect();
    io::Error::new(error.kind(), format!("`{name}`: {}", system_reason(&error)))
}

fn open_at(directory: &OwnedFd, name: &CStr) -> io::Result<OwnedFd> {
    Ok(rustix::fs::openat(directory, name, DIRECTORY, Mode::empty())?)
}

/// Makes a file, link or mark with the content of another one.
fn copy_content((from, to): (&OwnedFd, &OwnedFd), name: &CStr, stat: &Stat) -> io::Result<()> {
    match FileType::from_raw_mode(stat.st_mode) {
        FileType::RegularFile => {
            let how = OFlags::NOFOLLOW | OFlags::CLOEXEC;
            let content = rustix::fs::openat(from, name, OFlags::RDONLY | how, Mode::empty())?;
            let new = OFlags::RDWR | OFlags::CREATE | OFlags::EXCL | how;
            let made = rustix::fs::openat(to, name, new, Mode::RUSR | Mode::WUSR)?;
            copy_sparse(&File::from(content), &File::from(made))
        }
        FileType::Symlink => {
            let target = rustix::fs::readlinkat(from, name, Vec::new())?;
            Ok(rustix::fs::symlinkat(&target, to, name)?)
        }
        // A character device 0:0 is the overlay's mark of a name that was removed. No sandbox can make another device.
        FileType::CharacterDevice if stat.st_rdev != 0 => Err(io::ErrorKind::InvalidData.into()),
        kind @ (FileType::Fifo | FileType::Socket | FileType::CharacterDevice) => {
            Ok(rustix::fs::mknodat(to, name, kind, Mode::RUSR | Mode::WUSR, 0)?)
        }
        _ => Err(io::ErrorKind::InvalidData.into()),
    }
}

/// Gives a copy the owner, the mode, the attributes and the times of the original, in the order in which none of them undoes
/// another one.
fn copy_facts(from: &Path, to: &Path, stat: &Stat) -> io::Result<()> {
    let (uid, gid) = (Uid::from_raw(stat.st_uid), Gid::from_raw(stat.st_gid));
    rustix::fs::chownat(CWD, to, Some(uid), Some(gid), AtFlags::SYMLINK_NOFOLLOW)?;
    if FileType::from_raw_mode(stat.st_mode) != FileType::Symlink {
        rustix::fs::chmodat(CWD, to, Mode::from_raw_mode(stat.st_mode), AtFlags::empty())?;
    }
    copy_attributes(from, to)?;
    let time = |tv_sec, tv_nsec| Timespec { tv_sec, tv_nsec };
    let times = Timestamps {
        last_access: time(stat.st_atime, stat.st_atime_nsec as _),
        last_modification: time(stat.st_mtime, stat.st_mtime_nsec as _),
    };
    Ok(rustix::fs::utimensat(CWD, to, &times, AtFlags::SYMLINK_NOFOLLOW)?)
}

/// Copies the attributes, access lists and the overlay's marks among them.
fn copy_attributes(from: &Path, to: &Path) -> io::Result<()> {
    // The host's own security modules give and check the others.
    let is_hosts = |name: &[u8]| name.starts_with(b"security.") && name != b"security.capability";
    let names = attribute_names(from)?;
    let kept = names.iter().filter(|name| !is_hosts(name.as_bytes()));
    let mut value = Vec::new();
    kept.map(OsString::as_os_str).try_for_each(|name| {
        value.resize(XATTR_MAX, 0);
        let length = rustix::fs::lgetxattr(from, name, &mut value[..])?;
        Ok(rustix::fs::lsetxattr(to, name, &value[..length], XattrFlags::empty())?)
    })
}

/// A path to an open directory, in this process.
fn own_path(directory: &OwnedFd) -> PathBuf {
    // With a dot: the operations do not follow a link at the end, and the path to a descriptor is one.
    format!("/proc/self/fd/{}/.", directory.as_raw_fd()).into()
}

fn path_at(directory: BorrowedFd<'_>, name: &CStr) -> PathBuf {
    let mut path = PathBuf::from(format!("/proc/self/fd/{}", directory.as_raw_fd()));
    path.push(OsStr::from_bytes(name.to_bytes()));
    path
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::{FileTypeExt, MetadataExt, PermissionsExt, symlink};
    use std::time::{Duration, SystemTime};

    use super::*;

    fn copied(from: &Path, most_cost: u64) -> (tempfile::TempDir, io::Result<TakenBytes>) {
        let folder = tempfile::tempdir().unwrap();
        let mut copy = TreeCopy::new(folder.path().join("links"), most_cost).unwrap();
        let done = copy.copy(from, &folder.path().join("to"));
        let bytes = done.and_then(|()| copy.finish());
        (folder, bytes)
    }

    #[test]
    fn a_copy_has_the_contents_modes_times_links_and_attributes_of_the_tree() {
        let tree = tempfile::tempdir().unwrap();
        let at = |name: &str| tree.path().join(name);
        fs::create_dir_all(at("a/b")).unwrap();
        fs::write(at("a/b/file"), "text").unwrap();
        fs::set_permissions(at("a/b/file"), fs::Permissions::from_mode(0o4750)).unwrap();
        fs::hard_link(at("a/b/file"), at("second")).unwrap();
        symlink("/nowhere", at("link")).unwrap();
        rustix::fs::mknodat(CWD, at("pipe"), FileType::Fifo, Mode::RUSR, 0).unwrap();
        rustix::fs::lsetxattr(at("a"), "user.mark", b"y", XattrFlags::empty()).unwrap();
        let then = SystemTime::UNIX_EPOCH + Duration::new(1_000_000_000, 7);
        File::open(at("a/b/file")).unwrap().set_modified(then).unwrap();
        File::open(at("a")).unwrap().set_modified(then).unwrap();
        fs::set_permissions(at("a/b"), fs::Permissions::from_mode(0o555)).unwrap();

        let (folder, bytes) = copied(tree.path(), u64::MAX);
        assert!(bytes.unwrap().bytes >= 4096);
        let to = |name: &str| folder.path().join("to").join(name);
        assert_eq!(fs::read_to_string(to("second")).unwrap(), "text");
        let facts = |path: PathBuf| {
            let found = fs::symlink_metadata(path).unwrap();
            (found.mode(), found.nlink(), found.mtime(), found.mtime_nsec(), found.uid())
        };
        for name in ["a", "a/b", "a/b/file", "second", "link", "pipe"] {
            assert_eq!(facts(to(name)), facts(at(name)), "{name}");
        }
        assert_eq!(fs::metadata(to("second")).unwrap().ino(), fs::metadata(to("a/b/file")).unwrap().ino());
        assert_eq!(fs::read_link(to("link")).unwrap(), Path::new("/nowhere"));
        assert!(fs::symlink_metadata(to("pipe")).unwrap().file_type().is_fifo());
        let mut value = [0_u8; 4];
        assert_eq!(rustix::fs::lgetxattr(to("a"), "user.mark", &mut value[..]).unwrap(), 1);
        assert!(!folder.path().join("links").exists());
    }

    #[test]
    fn a_tree_deeper_than_any_path_is_copied() {
        let tree = tempfile::tempdir().unwrap();
        let name = CString::new("n".repeat(200)).unwrap();
        let mut at = rustix::fs::open(tree.path(), DIRECTORY, Mode::empty()).unwrap();
        for _ in 0..100 {
            rustix::fs::mkdirat(&at, &name, PRIVATE).unwrap();
            at = open_at(&at, &name).unwrap();
        }
        let (folder, bytes) = copied(tree.path(), u64::MAX);
        bytes.unwrap();
        let mut at = rustix::fs::open(folder.path().join("to"), DIRECTORY, Mode::empty()).unwrap();
        for _ in 0..100 {
            at = open_at(&at, &name).unwrap();
        }
        // The standard library's removal can't.
        eyot_image::remove_tree(&folder.path().join("to")).unwrap();
        eyot_image::remove_tree(&tree.path().join(name.to_str().unwrap())).unwrap();
    }

    #[test]
    fn more_bytes_than_may_be_taken_are_refused() {
        let tree = tempfile::tempdir().unwrap();
        fs::write(tree.path().join("large"), vec![1; 1 << 20]).unwrap();
        let error = copied(tree.path(), (1 << 20) - 1).1.unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::QuotaExceeded);
        let again = copied(tree.path(), 2 << 20).1;
        assert!(again.unwrap().bytes >= 1 << 20);
        fs::remove_file(tree.path().join("large")).unwrap();
        (0..64).for_each(|number| fs::write(tree.path().join(number.to_string()), "").unwrap());
        let error = copied(tree.path(), (1 << 20) - 1).1.unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::QuotaExceeded, "files without content cost something, too");
    }
}
