//! The folder that a backup is unpacked into. No entry leads out of it: every directory on the way
//! is opened by its name alone and must exist, no link is followed, and nothing that exists is
//! replaced. Later work in the folder cannot be led out either: among the state's own files only
//! regular files and directories are allowed.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use rustix::fs::{
    AtFlags, CWD, FileType, Gid, Mode, OFlags, Timespec, Timestamps, UTIME_OMIT, Uid, XattrFlags,
};

use super::header::{EntryMetadata, Kind, damaged};
use super::{FOLDERS, MANIFEST, STORE, TaskProgress};

const DIRECTORY: OFlags =
    OFlags::PATH.union(OFlags::DIRECTORY).union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);
const PIECE_BYTES: usize = 64 << 10;

/// The folder that a backup is unpacked into.
pub(super) struct RestoreFolder {
    root: OwnedFd,
    /// The directory of the last entry.
    last: Option<(OsString, OwnedFd)>,
    /// The metadata that directories get when all their content is written.
    directories: Vec<EntryMetadata>,
    as_root: bool,
}

impl RestoreFolder {
    /// Opens an empty folder.
    pub fn new(folder: &Path) -> io::Result<Self> {
        let root = rustix::fs::open(folder, DIRECTORY, Mode::empty())?;
        let as_root = rustix::process::geteuid().is_root();
        Ok(Self { root, last: None, directories: Vec::new(), as_root })
    }

    /// Makes an entry; `content` is a file's.
    pub fn make(
        &mut self,
        about: EntryMetadata,
        content: &mut impl Read,
        progress: &TaskProgress,
    ) -> io::Result<()> {
        if !may_be_there(&about.path, &about.kind) {
            return Err(damaged(format!(
                "at `{}` there can only be a file or a directory",
                about.path.display()
            )));
        }
        let (parent, name) = self.find(&about.path)?;
        match &about.kind {
            Kind::File { bytes } => {
                let flags =
                    OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
                let file = File::from(rustix::fs::openat(&parent, &name, flags, Mode::RUSR | Mode::WUSR)?);
                fill(&file, *bytes, content, progress)?;
                self.dress(&parent, &name, &about)
            }
            Kind::Directory => {
                rustix::fs::mkdirat(&parent, &name, Mode::RWXU)?;
                self.directories.push(about);
                Ok(())
            }
            Kind::Symlink(target) => {
                rustix::fs::symlinkat(target.as_os_str(), &parent, &name)?;
                self.own_and_date(&parent, &name, &about)
            }
            Kind::HardLink(first) => {
                let (folder, first) = self.find(first)?;
                let found = rustix::fs::statat(&folder, &first, AtFlags::SYMLINK_NOFOLLOW)?;
                if FileType::from_raw_mode(found.st_mode) != FileType::RegularFile {
                    return Err(damaged("a hard link to what is no file"));
                }
                Ok(rustix::fs::linkat(&folder, &first, &parent, &name, AtFlags::empty())?)
            }
            Kind::Fifo | Kind::Whiteout => {
                let kind = match about.kind {
                    Kind::Fifo => FileType::Fifo,
                    _ => FileType::CharacterDevice,
                };
                rustix::fs::mknodat(&parent, &name, kind, Mode::RUSR | Mode::WUSR, 0)?;
                self.dress(&parent, &name, &about)
            }
        }
    }

    /// Sets the metadata of directories, the innermost first.
    pub fn finish(mut self) -> io::Result<()> {
        while let Some(about) = self.directories.pop() {
            let (parent, name) = self.find(&about.path)?;
            self.dress(&parent, &name, &about)?;
        }
        Ok(())
    }

    /// Returns the directory of an entry, and the entry's name in it.
    fn find(&mut self, path: &OsStr) -> io::Result<(OwnedFd, OsString)> {
        let (folder, name) = split(path)?;
        if let Some((last, open)) = &self.last
            && *last == folder
        {
            return Ok((open.try_clone()?, name.to_owned()));
        }
        let at = self.walk(folder)?;
        self.last = Some((folder.to_owned(), at.try_clone()?));
        Ok((at, name.to_owned()))
    }

    /// Opens a directory, from the last one if that is nearer than the root: a tree may be
    /// thousands of folders deep. Going up by `..` is safe, since nothing else changes this folder.
    fn walk(&self, folder: &OsStr) -> io::Result<OwnedFd> {
        let to = names(folder);
        let (from, last) = match &self.last {
            Some((from, open)) => (names(from), open),
            None => (Vec::new(), &self.root),
        };
        let shared = from.iter().zip(&to).take_while(|(one, other)| one == other).count();
        let up = from.len() - shared;
        let (mut at, to_go) =
            if up < shared { (last.try_clone()?, shared) } else { (self.root.try_clone()?, 0) };
        let up = if to_go > 0 { up } else { 0 };
        let steps = std::iter::repeat_n(&b".."[..], up).chain(to[to_go..].iter().copied());
        for name in steps {
            at = rustix::fs::openat(&at, OsStr::from_bytes(name), DIRECTORY, Mode::empty())?;
        }
        Ok(at)
    }

    /// Sets owner, attributes, permissions and time of an entry that is not a link. The order
    /// matters: each step may undo a part of the later ones.
    fn dress(&self, parent: &OwnedFd, name: &OsStr, about: &EntryMetadata) -> io::Result<()> {
        let found = rustix::fs::openat(
            parent,
            name,
            OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC,
            Mode::empty(),
        )?;
        let itself = format!("/proc/self/fd/{}", found.as_raw_fd());
        if self.as_root {
            rustix::fs::chown(&itself, Some(Uid::from_raw(about.uid)), Some(Gid::from_raw(about.gid)))?;
        }
        // Attributes of one's own files can be set only where they can be written.
        for (name, value) in &about.attributes {
            rustix::fs::setxattr(&itself, name.as_os_str(), value, XattrFlags::empty())?;
        }
        rustix::fs::chmod(&itself, Mode::from_raw_mode(about.mode & 0o7777))?;
        Ok(rustix::fs::utimensat(CWD, &itself, &times(about), AtFlags::empty())?)
    }

    fn own_and_date(&self, parent: &OwnedFd, name: &OsStr, about: &EntryMetadata) -> io::Result<()> {
        if self.as_root {
            let (uid, gid) = (Uid::from_raw(about.uid), Gid::from_raw(about.gid));
            rustix::fs::chownat(parent, name, Some(uid), Some(gid), AtFlags::SYMLINK_NOFOLLOW)?;
        }
        Ok(rustix::fs::utimensat(parent, name, &times(about), AtFlags::SYMLINK_NOFOLLOW)?)
    }
}

/// Splits a path into its names; none for the empty path.
fn names(path: &OsStr) -> Vec<&[u8]> {
    path.as_bytes().split(|byte| *byte == b'/').filter(|part| !part.is_empty()).collect()
}

fn times(about: &EntryMetadata) -> Timestamps {
    let (seconds, nanoseconds) = about.modified;
    Timestamps {
        last_access: Timespec { tv_sec: 0, tv_nsec: UTIME_OMIT },
        last_modification: Timespec { tv_sec: seconds, tv_nsec: nanoseconds.into() },
    }
}

/// Tells whether an entry of this type is allowed at a path. Links and pipes may be in the files of
/// guests and images; apart from those, only the few links are allowed that the state uses as
/// marks, whose text is read and never followed.
fn may_be_there(path: &OsStr, kind: &Kind) -> bool {
    let parts: Vec<&[u8]> = path.as_bytes().split(|byte| *byte == b'/').collect();
    let is_guests = matches!(
        parts.as_slice(),
        [b"sandboxes", _, b"upper", _, ..]
            | [b"sandboxes" | b"snapshots", _, b"cow", _, _, ..]
            | [b"workspaces", _, _, ..]
            | [b"layers", _, _, ..]
            | [b"snapshots", _, b"files", _, ..]
            | [b"images", b"layers", _, _, ..]
    );
    let is_mark = matches!(
        parts.as_slice(),
        [b"names" | b"blocks", _] | [b"images", b"diffs", _] | [b"sandboxes", _, b"ready" | b"ready.new"]
    );
    match kind {
        Kind::File { .. } | Kind::Directory | Kind::HardLink(_) => true,
        Kind::Symlink(text) => is_guests || is_mark && !text.as_bytes().contains(&b'/') && *text != *"..",
        Kind::Fifo | Kind::Whiteout => is_guests,
    }
}

/// Splits a path below the folder into its directory and its name there.
fn split(path: &OsStr) -> io::Result<(&OsStr, &OsStr)> {
    let bytes = path.as_bytes();
    let mut parts = bytes.split(|byte| *byte == b'/');
    let is_plain = |part: &[u8]| !matches!(part, b"" | b"." | b"..") && !part.contains(&0);
    if !parts.clone().all(is_plain) {
        return Err(damaged(format!("the path `{}` leads elsewhere", path.display())));
    }
    let top = parts.next().unwrap_or_default();
    let is_ours = |known: &&str| known.as_bytes() == top;
    if !FOLDERS.iter().chain(&[MANIFEST, STORE]).any(is_ours) {
        return Err(damaged(format!("`{}` is no part of a state folder", path.display())));
    }
    let end = bytes.iter().rposition(|byte| *byte == b'/');
    let (folder, name) = end.map_or((&b""[..], bytes), |end| (&bytes[..end], &bytes[end + 1..]));
    Ok((OsStr::from_bytes(folder), OsStr::from_bytes(name)))
}

/// Writes a file's content. Blocks of zeros take no space on the disk: disk images are mostly
/// zeros.
fn fill(mut file: &File, bytes: u64, content: &mut impl Read, progress: &TaskProgress) -> io::Result<()> {
    let mut piece = vec![0; PIECE_BYTES];
    let mut left = bytes;
    while left > 0 {
        let most = usize::try_from(left).unwrap_or(PIECE_BYTES).min(PIECE_BYTES);
        content.read_exact(&mut piece[..most])?;
        if piece[..most].iter().all(|byte| *byte == 0) {
            file.seek(SeekFrom::Current(i64::try_from(most).unwrap_or(0)))?;
        } else {
            file.write_all(&piece[..most])?;
        }
        left -= most as u64;
        progress.advance(most as u64)?;
    }
    file.set_len(bytes)
}
