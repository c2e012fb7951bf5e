//! Facts about the files of a folder of the host at one moment, by which a later look tells whether somebody has changed them since.
//!
//! The kernel sets a file's change time at every change of its content, permissions or owner, and nobody can set it. It counts in
//! ticks of some milliseconds, though. So of a file that had just been changed when it was looked at, a digest of the content is
//! kept besides, as git does with its index.

use std::collections::BTreeMap;
use std::ffi::{CString, OsStr};
use std::fs;
use std::io::{self, Read, Write};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use minicbor::{Decode, Encode};
use rustix::fs::{FileType, Stat};
use sha2::{Digest, Sha256};

use crate::merged_layers::{MAX_NAMES, MergedLayers, ShownName, joined};

/// The most files of a folder.
const MAX_FILES: usize = 1_000_000;
/// The most bytes of which digests are made.
const MAX_DIGEST_BYTES: u64 = 256 << 20;
/// The time after a change within which another one may have the same change time.
const TICK_NS: i128 = 100_000_000;
/// The same where a file system counts whole seconds.
const COARSE_TICK_NS: i128 = 2_000_000_000;

/// The facts about a file.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub(crate) struct FileFacts {
    /// The kind and the permission bits.
    #[n(0)]
    mode: u32,
    #[n(1)]
    size: u64,
    #[n(2)]
    inode: u64,
    #[n(3)]
    modified_ns: i64,
    #[n(4)]
    changed_ns: i64,
    /// It had just been changed: then only the content tells.
    #[n(5)]
    is_young: bool,
    /// The digest of the content of a young one, if it could be made.
    #[n(6)]
    digest: Option<[u8; 32]>,
}

/// The difference of a file of now and then.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum HostDifference {
    None,
    Changed,
    /// It had just been changed then, and it is not known to what.
    Unknown,
}

/// The facts about all files of a folder, by path relative to it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct HostFiles {
    files: BTreeMap<PathBuf, FileFacts>,
    /// The files that the sandbox had at the paths that it applied, when it applied them. `None`: nothing.
    applied: BTreeMap<PathBuf, Option<FileFacts>>,
}

/// All of them, as they are written.
#[derive(Encode, Decode)]
struct WrittenFiles {
    #[n(0)]
    files: Vec<WrittenFile>,
    #[n(1)]
    applied: Vec<WrittenFile>,
}

/// One of them, as it is written.
#[derive(Encode, Decode)]
struct WrittenFile {
    #[cbor(n(0), with = "minicbor::bytes")]
    path: Vec<u8>,
    #[n(1)]
    file: Option<FileFacts>,
}

impl WrittenFile {
    fn new(path: &Path, file: Option<&FileFacts>) -> Self {
        Self { path: path.as_os_str().as_bytes().to_vec(), file: file.cloned() }
    }

    fn read(self) -> (PathBuf, Option<FileFacts>) {
        (PathBuf::from(OsStr::from_bytes(&self.path)), self.file)
    }
}

impl FileFacts {
    pub(crate) fn new(stat: &Stat) -> Self {
        let ns = |seconds: i64, ns: u64| seconds.saturating_mul(1_000_000_000).saturating_add_unsigned(ns);
        Self {
            mode: stat.st_mode,
            size: stat.st_size.unsigned_abs(),
            inode: stat.st_ino,
            modified_ns: ns(stat.st_mtime, stat.st_mtime_nsec),
            changed_ns: ns(stat.st_ctime, stat.st_ctime_nsec),
            is_young: false,
            digest: None,
        }
    }

    fn kind(&self) -> FileType {
        FileType::from_raw_mode(self.mode)
    }

    /// Tells whether these are facts about one file that nobody has touched in between, but for what one tick hides.
    pub(crate) fn has_same_facts(&self, other: &Self) -> bool {
        match (self.kind(), other.kind()) {
            // What is in a directory is looked at by itself.
            (FileType::Directory, FileType::Directory) => self.mode == other.mode,
            _ => {
                let facts =
                    |file: &Self| (file.mode, file.size, file.inode, file.modified_ns, file.changed_ns);
                facts(self) == facts(other)
            }
        }
    }

    /// Tells the same of a file that was given another name in between, which sets its change time.
    pub(crate) fn has_same_content_facts(&self, other: &Self) -> bool {
        let facts = |file: &Self| (file.mode, file.size, file.inode, file.modified_ns);
        facts(self) == facts(other) || (self.kind() == FileType::Directory && self.mode == other.mode)
    }

    fn was_changed_just_now(&self) -> bool {
        let now = rustix::time::clock_gettime(rustix::time::ClockId::Realtime);
        let now_ns = i128::from(now.tv_sec) * 1_000_000_000 + i128::from(now.tv_nsec);
        let is_coarse = self.changed_ns % 1_000_000_000 == 0;
        i128::from(self.changed_ns) + if is_coarse { COARSE_TICK_NS } else { TICK_NS } >= now_ns
    }
}

/// A look at a folder of the host.
pub(crate) struct HostFolder {
    layers: MergedLayers,
    /// The bytes of which digests may still be made.
    digest_bytes: u64,
}

impl HostFolder {
    pub(crate) fn open(folder: &Path) -> io::Result<Self> {
        Ok(Self { layers: MergedLayers::open(vec![folder.to_owned()])?, digest_bytes: MAX_DIGEST_BYTES })
    }

    /// Returns what is known of a file now; `None` if there is none.
    pub(crate) fn look(&mut self, path: &Path) -> io::Result<Option<FileFacts>> {
        Ok(self.layers.find(path)?.stat().map(FileFacts::new))
    }

    /// Does the same for a later comparison.
    pub(crate) fn note(&mut self, path: &Path) -> io::Result<Option<FileFacts>> {
        match self.layers.find(path)?.stat() {
            None => Ok(None),
            Some(stat) => self.noted(path, stat).map(Some),
        }
    }

    fn noted(&mut self, path: &Path, stat: &Stat) -> io::Result<FileFacts> {
        let mut file = FileFacts::new(stat);
        file.is_young = file.kind() == FileType::RegularFile && file.was_changed_just_now();
        if file.is_young && file.size <= self.digest_bytes {
            self.digest_bytes -= file.size;
            file.digest = self.digest(path, &file)?;
        }
        Ok(file)
    }

    /// Returns the digest of a file that is as it was before and after; `None` if it can't be read, or somebody writes it.
    fn digest(&mut self, path: &Path, file: &FileFacts) -> io::Result<Option<[u8; 32]>> {
        let Some(mut opened) = self.layers.file(0, path)? else { return Ok(None) };
        let (mut digest, mut piece) = (Sha256::new(), vec![0; 64 << 10]);
        let mut left = file.size;
        while left > 0 {
            let read = Read::by_ref(&mut opened).take(left).read(&mut piece)?;
            if read == 0 {
                return Ok(None);
            }
            digest.update(&piece[..read]);
            left -= read as u64;
        }
        let is_same = self.look(path)?.is_some_and(|now| now.has_same_facts(file));
        Ok(is_same.then(|| digest.finalize().into()))
    }

    /// Compares what was noted of a file with the file of now, of which `now` is known.
    pub(crate) fn difference(
        &mut self,
        path: &Path,
        noted: &FileFacts,
        now: &FileFacts,
    ) -> io::Result<HostDifference> {
        if !noted.has_same_facts(now) {
            return Ok(HostDifference::Changed);
        }
        if !noted.is_young {
            return Ok(HostDifference::None);
        }
        let Some(digest) = noted.digest else { return Ok(HostDifference::Unknown) };
        let is_same = self.digest(path, now)? == Some(digest);
        Ok(if is_same { HostDifference::None } else { HostDifference::Changed })
    }
}

impl HostFiles {
    /// Looks at all files of a folder. A directory that can't be looked into has none.
    pub(crate) fn of(folder: &Path) -> io::Result<Self> {
        let (mut host, mut files) = (HostFolder::open(folder)?, BTreeMap::new());
        let mut left = vec![PathBuf::new()];
        while let Some(directory) = left.pop() {
            for (path, stat) in host.entries(&directory)? {
                if FileType::from_raw_mode(stat.st_mode) == FileType::Directory {
                    left.push(path.clone());
                }
                let file = host.noted(&path, &stat)?;
                files.insert(path, file);
            }
            if files.len() > MAX_FILES {
                return Err(io::Error::other(format!("has more than {MAX_FILES} files")));
            }
        }
        Ok(Self { files, applied: BTreeMap::new() })
    }

    pub(crate) fn get(&self, path: &Path) -> Option<&FileFacts> {
        self.files.get(path)
    }

    /// Replaces what is known of a file; `None`: there is none.
    pub(crate) fn set(&mut self, path: PathBuf, file: Option<FileFacts>) {
        match file {
            Some(file) => self.files.insert(path, file),
            None => self.files.remove(&path),
        };
    }

    /// Notes what the sandbox has at a path that is applied; `None`: nothing.
    pub(crate) fn set_applied(&mut self, path: PathBuf, own: Option<FileFacts>) {
        self.applied.insert(path, own);
    }

    /// Tells whether the sandbox has at a path what it had when it applied it.
    pub(crate) fn is_applied(&self, path: &Path, own: Option<&FileFacts>) -> bool {
        match (self.applied.get(path), own) {
            (Some(Some(then)), Some(now)) => then.has_same_facts(now),
            (Some(None), None) => true,
            _ => false,
        }
    }

    /// Takes the present facts of files that were given other names and back, which sets their change time.
    pub(crate) fn renew<'p>(
        &mut self,
        folder: &Path,
        paths: impl Iterator<Item = &'p str>,
    ) -> io::Result<()> {
        let mut host = HostFolder::open(folder)?;
        for path in paths.map(Path::new) {
            if let (Some(then), Some(now)) = (self.files.get(path), host.note(path)?)
                && then.has_same_content_facts(&now)
                && (!then.is_young || (then.digest.is_some() && then.digest == now.digest))
            {
                self.files.insert(path.to_owned(), now);
            }
        }
        Ok(())
    }

    /// Writes them to a new file.
    pub(crate) fn write(&self, path: &Path) -> io::Result<()> {
        let mut file =
            fs::OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(path)?;
        let files = self.files.iter().map(|(path, file)| WrittenFile::new(path, Some(file))).collect();
        let applied = self.applied.iter().map(|(path, own)| WrittenFile::new(path, own.as_ref())).collect();
        file.write_all(&minicbor::to_vec(WrittenFiles { files, applied }).map_err(io::Error::other)?)?;
        // A journal will say that these are the facts.
        file.sync_all()
    }

    pub(crate) fn read(path: &Path) -> io::Result<Self> {
        let WrittenFiles { files, applied } = minicbor::decode(&fs::read(path)?).map_err(io::Error::other)?;
        let there = |written: WrittenFile| {
            let (path, file) = written.read();
            file.map(|file| (path, file))
        };
        let applied = applied.into_iter().map(WrittenFile::read).collect();
        Ok(Self { files: files.into_iter().filter_map(there).collect(), applied })
    }
}

impl HostFolder {
    /// Lists what is in a directory.
    fn entries(&self, directory: &Path) -> io::Result<Vec<(PathBuf, Stat)>> {
        let opened = match self.layers.directory(directory, &[0]) {
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => return Ok(Vec::new()),
            opened => opened?,
        };
        let mut names: Vec<CString> = Vec::new();
        if !opened.add_names(usize::MAX, &mut names, MAX_NAMES)? {
            return Err(io::Error::other(format!("has more than {MAX_FILES} files")));
        }
        let mut entries = Vec::new();
        for name in names {
            if let ShownName::Leaf { stat, .. } | ShownName::Directory { stat, .. } = opened.look(&name)? {
                entries.push((joined(directory, &name), stat));
            }
        }
        Ok(entries)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn difference(folder: &Path, noted: &HostFiles, path: &str) -> HostDifference {
        let mut host = HostFolder::open(folder).unwrap();
        let now = host.look(path.as_ref()).unwrap().unwrap();
        host.difference(path.as_ref(), noted.get(path.as_ref()).unwrap(), &now).unwrap()
    }

    #[test]
    fn a_change_is_seen_though_time_and_size_are_the_same_and_none_is_seen_where_there_is_none() {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir(folder.path().join("d")).unwrap();
        fs::write(folder.path().join("d/kept"), "one").unwrap();
        fs::write(folder.path().join("d/changed"), "one").unwrap();
        let noted = HostFiles::of(folder.path()).unwrap();
        assert_eq!(noted.files.len(), 3);
        // In the same tick, perhaps.
        fs::write(folder.path().join("d/changed"), "two").unwrap();
        assert_eq!(difference(folder.path(), &noted, "d/kept"), HostDifference::None);
        assert_eq!(difference(folder.path(), &noted, "d/changed"), HostDifference::Changed);
        assert_eq!(difference(folder.path(), &noted, "d"), HostDifference::None);
    }

    #[test]
    fn what_was_written_is_read_again_and_names_may_be_any_bytes() {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join(std::ffi::OsStr::from_bytes(b"\xff\n")), "x").unwrap();
        std::os::unix::fs::symlink("/etc", folder.path().join("link")).unwrap();
        let mut noted = HostFiles::of(folder.path()).unwrap();
        let link = noted.get("link".as_ref()).cloned();
        noted.set_applied("link".into(), link.clone());
        noted.set_applied("gone".into(), None);
        assert!(noted.is_applied("link".as_ref(), link.as_ref()) && noted.is_applied("gone".as_ref(), None));
        assert!(!noted.is_applied("link".as_ref(), None) && !noted.is_applied("other".as_ref(), None));
        let kept = tempfile::tempdir().unwrap();
        noted.write(&kept.path().join("base")).unwrap();
        assert_eq!(HostFiles::read(&kept.path().join("base")).unwrap(), noted);
        assert_eq!(noted.files.len(), 2, "a link is not followed");
    }
}
