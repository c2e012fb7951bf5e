//! Packs a state folder into a stream. Sandboxes may have written anything into their files, so
//! directories are entered by descriptor and no link is followed.

use std::collections::{HashMap, HashSet};
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::Path;

use eyot_engine::store::Store;
use rustix::fs::{AtFlags, CWD, FileType, Mode, OFlags, Stat};
use rustix::io::Errno;

use super::header::{EntryMetadata, Kind, records_header};
use super::{BackupManifest, FOLDERS, MANIFEST, STORE, TaskProgress};
use crate::errors::Failure;
use crate::partial::partial_folder;

const BLOCK: usize = 512;
const PIECE_BYTES: usize = 256 << 10;
/// The compression level: zstd's own default.
const LEVEL: i32 = 3;
/// The kernel's limit of a list of extended attributes and of a value, in bytes.
const MAX_ATTRIBUTE_BYTES: usize = 64 << 10;
/// The most characters of a path in an error.
const MAX_SHOWN_CHARS: usize = 200;
const OPEN: OFlags = OFlags::RDONLY.union(OFlags::NOFOLLOW).union(OFlags::NONBLOCK).union(OFlags::CLOEXEC);

/// The prefix of the folder into which the store is copied first. A random part follows.
const ASIDE: &str = "backup-";

/// The parts of a backup.
pub struct Contents<'a> {
    /// The state folder.
    pub state: &'a Path,
    /// The state folder's store.
    pub store: &'a Store,
    /// The description of the backup. Only the sandboxes that it names are packed; nothing uses
    /// them meanwhile.
    pub manifest: &'a BackupManifest,
}

/// Writes a state folder into `out`, and returns `out` when all of it is written.
pub fn pack<W: Write>(contents: &Contents<'_>, out: W, progress: &TaskProgress) -> Result<W, Failure> {
    let failed = |error| Failure::host("write the backup", error);
    let mut out = zstd::Encoder::new(out, LEVEL).map_err(failed)?;
    out.include_checksum(true).map_err(failed)?;
    let mut packer = BackupPacker { out, progress, links: HashMap::new() };
    let manifest = serde_json::to_vec_pretty(contents.manifest).map_err(|error| failed(error.into()))?;
    packer.bytes(MANIFEST, &manifest).map_err(failed)?;
    let (aside, _in_use) = partial_folder(contents.state, ASIDE).map_err(failed)?;
    contents.store.copy_into(&aside.path().join(STORE))?;
    packer.folder(aside.path(), &|path| path == STORE).map_err(failed)?;
    let ids: HashSet<&str> = contents.manifest.sandboxes.iter().map(String::as_str).collect();
    let _unchanged = hold_events(contents.state).map_err(failed)?;
    packer.folder(contents.state, &|path| is_kept(path, &ids, contents.state)).map_err(failed)?;
    packer.end().map_err(failed)
}

/// Locks the event log: nothing is appended to it while the result is held.
fn hold_events(state: &Path) -> io::Result<Option<File>> {
    match File::open(state.join("events/head")) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
        Ok(head) => head.lock_shared().map(|()| Some(head)),
    }
}

/// Tells whether a path below the state folder is part of a backup. It is asked about a folder
/// before its content.
fn is_kept(path: &str, ids: &HashSet<&str>, state: &Path) -> bool {
    let parts: Vec<&str> = path.split('/').collect();
    match parts.as_slice() {
        [folder] => FOLDERS.contains(folder),
        ["sandboxes", id] => ids.contains(id),
        // The overlay's own, made anew at each wake.
        ["sandboxes", _, "work" | "cow-work"] => false,
        // The folder of the host that it tells of is no part of the backup.
        ["sandboxes", _, "apply.json"] => false,
        // Of whoever was killed while they wrote it.
        ["sandboxes", _, "ready.new" | "sandbox.json.new"] => false,
        ["names" | "blocks", _] => {
            let holder = std::fs::read_link(state.join(path));
            holder.is_ok_and(|holder| holder.to_str().is_some_and(|id| ids.contains(id)))
        }
        ["layers", name] => !name.contains(".building-"),
        ["images", name] => !["importing", "incoming", "turn", "using"].contains(name),
        _ => true,
    }
}

struct BackupPacker<'a, W: Write> {
    out: zstd::Encoder<'static, W>,
    progress: &'a TaskProgress,
    /// The first path of each file with several names, by device and inode.
    links: HashMap<(u64, u64), OsString>,
}

/// The most directories that are open at once, whatever the depth of the tree.
const MAX_OPEN: usize = 32;

/// A directory that is being walked.
struct OpenDirectory {
    /// `None`: it was closed because too many were open.
    directory: Option<ReadableFile>,
    /// The device and the number of the directory's inode.
    identity: (u64, u64),
    /// The length of the directory's path, in bytes.
    path_bytes: usize,
    names: Vec<OsString>,
}

impl OpenDirectory {
    fn new(directory: ReadableFile, path_bytes: usize) -> io::Result<Self> {
        let found = rustix::fs::fstat(&directory.file)?;
        let identity = (found.st_dev, found.st_ino);
        Ok(Self { names: names(&directory.file)?, directory: Some(directory), identity, path_bytes })
    }
}

/// The directories from the top to the one that is being read. Only the innermost few are open.
struct DirectoryWalk {
    frames: Vec<OpenDirectory>,
    /// The path of the innermost directory.
    path: Vec<u8>,
}

impl DirectoryWalk {
    fn enter(&mut self, frame: OpenDirectory) {
        self.frames.push(frame);
        if let Some(outer) = self.frames.len().checked_sub(MAX_OPEN + 1) {
            self.frames[outer].directory = None;
        }
    }

    /// Returns to the parent directory. If that was closed, it is opened again through the `..` of
    /// its child.
    fn leave(&mut self) -> io::Result<()> {
        let left = self.frames.pop();
        let Some(outer) = self.frames.last_mut() else { return Ok(()) };
        if outer.directory.is_none()
            && let Some(ReadableFile { file, .. }) = left.as_ref().and_then(|left| left.directory.as_ref())
        {
            let again = ReadableFile::directory(file.as_fd(), OsStr::new(".."))?;
            let found = rustix::fs::fstat(&again.file)?;
            if (found.st_dev, found.st_ino) != outer.identity {
                return Err(changed());
            }
            outer.directory = Some(again);
        }
        self.path.truncate(outer.path_bytes);
        Ok(())
    }

    /// Returns the path of a name in the innermost directory.
    fn below(&self, name: &OsStr) -> OsString {
        let mut path = self.path.clone();
        if !path.is_empty() {
            path.push(b'/');
        }
        path.extend(name.as_bytes());
        OsString::from_vec(path)
    }
}

impl<W: Write> BackupPacker<'_, W> {
    /// Packs a file that this program makes itself.
    fn bytes(&mut self, path: &str, content: &[u8]) -> io::Result<()> {
        let kind = Kind::File { bytes: content.len() as u64 };
        let about = EntryMetadata {
            path: path.into(),
            kind,
            mode: 0o600,
            uid: 0,
            gid: 0,
            modified: (0, 0),
            attributes: Vec::new(),
        };
        self.begin(&about)?;
        self.out.write_all(content)?;
        self.pad(content.len() as u64)
    }

    /// Packs the content of a folder that `keep` accepts, without the folder itself.
    fn folder(&mut self, folder: &Path, keep: &dyn Fn(&str) -> bool) -> io::Result<()> {
        let top = OpenDirectory::new(ReadableFile::directory(CWD, folder.as_os_str())?, 0)?;
        let mut walk = DirectoryWalk { frames: vec![top], path: Vec::new() };
        while let Some(frame) = walk.frames.last_mut() {
            let Some(name) = frame.names.pop() else {
                walk.leave()?;
                continue;
            };
            let path = walk.below(&name);
            if path.to_str().is_some_and(|path| !keep(path)) {
                continue;
            }
            let Some(at) = walk.frames.last().and_then(|frame| frame.directory.as_ref()) else {
                return Err(changed());
            };
            let entered = self.entry(&at.file, &name, path.clone());
            let entered = entered
                .map_err(|error| io::Error::new(error.kind(), format!("`{}`: {error}", shorten(&path))))?;
            if let Some(frame) = entered {
                walk.path = path.into_vec();
                walk.enter(frame);
            }
        }
        Ok(())
    }

    /// Packs one entry. Returns the frame of a directory, to be walked.
    fn entry(&mut self, at: &File, name: &OsStr, path: OsString) -> io::Result<Option<OpenDirectory>> {
        let found = rustix::fs::statat(at, name, AtFlags::SYMLINK_NOFOLLOW)?;
        self.progress.entry()?;
        match FileType::from_raw_mode(found.st_mode) {
            FileType::Directory => {
                let directory = ReadableFile::directory(at.as_fd(), name)?;
                let attributes = attributes(&directory.file)?;
                let path_bytes = path.len();
                self.begin(&about(&found, path, Kind::Directory, attributes))?;
                return OpenDirectory::new(directory, path_bytes).map(Some);
            }
            FileType::RegularFile => self.file(at, name, path, &found)?,
            FileType::Symlink => {
                let target = rustix::fs::readlinkat(at, name, Vec::new())?;
                let kind = Kind::Symlink(OsString::from_vec(target.into_bytes()));
                self.begin(&about(&found, path, kind, Vec::new()))?;
            }
            FileType::Fifo => self.begin(&about(&found, path, Kind::Fifo, Vec::new()))?,
            FileType::CharacterDevice if found.st_rdev == 0 => {
                self.begin(&about(&found, path, Kind::Whiteout, Vec::new()))?;
            }
            // Sockets are of processes that are gone; devices can't be made in a sandbox.
            _ => {}
        }
        Ok(None)
    }

    fn file(&mut self, at: &File, name: &OsStr, path: OsString, found: &Stat) -> io::Result<()> {
        let identity = (found.st_dev, found.st_ino);
        if found.st_nlink > 1 {
            if let Some(first) = self.links.get(&identity) {
                let kind = Kind::HardLink(first.clone());
                return self.begin(&about(found, path, kind, Vec::new()));
            }
            self.links.insert(identity, path.clone());
        }
        let opened = ReadableFile::file(at.as_fd(), name)?;
        let now = rustix::fs::fstat(&opened.file)?;
        if (now.st_dev, now.st_ino) != identity {
            return Err(changed());
        }
        let bytes = u64::try_from(now.st_size).unwrap_or(0);
        let attributes = attributes(&opened.file)?;
        self.begin(&about(found, path, Kind::File { bytes }, attributes))?;
        self.content(&opened.file, bytes)?;
        self.pad(bytes)
    }

    fn content(&mut self, mut file: &File, bytes: u64) -> io::Result<()> {
        let mut piece = vec![0; PIECE_BYTES];
        let mut left = bytes;
        while left > 0 {
            let most = usize::try_from(left).unwrap_or(PIECE_BYTES).min(PIECE_BYTES);
            let read = file.read(&mut piece[..most])?;
            if read == 0 {
                return Err(changed());
            }
            self.out.write_all(&piece[..read])?;
            self.progress.advance(read as u64)?;
            left -= read as u64;
        }
        Ok(())
    }

    fn begin(&mut self, about: &EntryMetadata) -> io::Result<()> {
        let records = about.records();
        self.out.write_all(records_header(records.len() as u64).as_bytes())?;
        self.out.write_all(&records)?;
        self.pad(records.len() as u64)?;
        self.out.write_all(about.header().as_bytes())
    }

    fn pad(&mut self, bytes: u64) -> io::Result<()> {
        let over = usize::try_from(bytes % BLOCK as u64).unwrap_or(0);
        self.out.write_all(&[0; BLOCK][..(BLOCK - over) % BLOCK])
    }

    fn end(mut self) -> io::Result<W> {
        self.out.write_all(&[0; 2 * BLOCK])?;
        self.out.finish()
    }
}

fn changed() -> io::Error {
    io::Error::new(io::ErrorKind::ResourceBusy, "it changed while it was read")
}

/// Returns the beginning of a path, for a message.
fn shorten(path: &OsStr) -> String {
    let text = path.to_string_lossy();
    match text.char_indices().nth(MAX_SHOWN_CHARS) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.into_owned(),
    }
}

fn about(found: &Stat, path: OsString, kind: Kind, attributes: Vec<(OsString, Vec<u8>)>) -> EntryMetadata {
    let modified = (found.st_mtime, u32::try_from(found.st_mtime_nsec).unwrap_or(0));
    EntryMetadata {
        path,
        kind,
        mode: found.st_mode,
        uid: found.st_uid,
        gid: found.st_gid,
        modified,
        attributes,
    }
}

/// Lists a directory, the last name first.
fn names(directory: &File) -> io::Result<Vec<OsString>> {
    let mut names = Vec::new();
    for entry in eyot_archive::entries(directory)? {
        names.push(OsString::from_vec(entry?.file_name().to_bytes().to_vec()));
    }
    names.sort_unstable_by(|one, other| other.cmp(one));
    Ok(names)
}

fn attributes(file: &File) -> io::Result<Vec<(OsString, Vec<u8>)>> {
    let mut list = vec![0_u8; MAX_ATTRIBUTE_BYTES];
    let length = match rustix::fs::flistxattr(file, &mut list[..]) {
        Err(Errno::NOTSUP) => return Ok(Vec::new()),
        other => other?,
    };
    let mut value = vec![0_u8; MAX_ATTRIBUTE_BYTES];
    let mut found = Vec::new();
    for name in list[..length].split(|byte| *byte == 0).filter(|name| !name.is_empty()) {
        let name = OsStr::from_bytes(name);
        // The host's own labels are not the files'.
        if name == "security.selinux" {
            continue;
        }
        match rustix::fs::fgetxattr(file, name, &mut value[..]) {
            Err(Errno::NODATA) => {}
            read => found.push((name.to_owned(), value[..read?].to_vec())),
        }
    }
    Ok(found)
}

/// An open file or directory. The sandbox of an ordinary user can take away that user's permissions
/// on its files, since the user owns them. They are then added for as long as the file is open.
struct ReadableFile {
    file: File,
    /// The permissions to restore.
    mode: Option<Mode>,
}

impl ReadableFile {
    fn file(at: impl AsFd, name: &OsStr) -> io::Result<Self> {
        Self::open(at, name, OPEN, Mode::RUSR)
    }

    fn directory(at: impl AsFd, name: &OsStr) -> io::Result<Self> {
        Self::open(at, name, OPEN | OFlags::DIRECTORY, Mode::RUSR | Mode::XUSR)
    }

    fn open(at: impl AsFd, name: &OsStr, flags: OFlags, wanted: Mode) -> io::Result<Self> {
        match rustix::fs::openat(&at, name, flags, Mode::empty()) {
            Err(Errno::ACCESS) => Self::lent(at, name, flags, wanted),
            opened => {
                let file = File::from(opened?);
                let mode = Mode::from_raw_mode(rustix::fs::fstat(&file)?.st_mode);
                // It can be listed, and nothing in it be looked at.
                if flags.contains(OFlags::DIRECTORY)
                    && !mode.contains(wanted)
                    && !rustix::process::geteuid().is_root()
                {
                    Self::lent(at, name, flags, wanted)
                } else {
                    Ok(Self { file, mode: None })
                }
            }
        }
    }

    fn lent(at: impl AsFd, name: &OsStr, flags: OFlags, wanted: Mode) -> io::Result<Self> {
        let found: OwnedFd =
            rustix::fs::openat(at, name, OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC, Mode::empty())?;
        let mode = Mode::from_raw_mode(rustix::fs::fstat(&found)?.st_mode);
        let itself = format!("/proc/self/fd/{}", found.as_raw_fd());
        rustix::fs::chmod(&itself, mode | wanted)?;
        // Through the link that /proc has; what it leads to is what was found.
        let opened = rustix::fs::open(&itself, flags.difference(OFlags::NOFOLLOW), Mode::empty());
        match opened {
            Ok(opened) => Ok(Self { file: File::from(opened), mode: Some(mode) }),
            Err(error) => {
                rustix::fs::chmod(&itself, mode)?;
                Err(error.into())
            }
        }
    }
}

impl Drop for ReadableFile {
    fn drop(&mut self) {
        if let Some(mode) = self.mode
            && let Err(error) = rustix::fs::fchmod(&self.file, mode)
        {
            tracing::warn!(%error, "a file's permissions can't be given back");
        }
    }
}
