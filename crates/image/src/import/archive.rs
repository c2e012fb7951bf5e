//! The files of an archive of images, by name. They lie in a folder, in a tarball, where they are
//! read in place, or in `incoming` after a stream was read.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::fs::FileExt;
use std::path::Path;

use rustix::fs::{CWD, Mode, OFlags, ResolveFlags};
use rustix::io::Errno;
use tar::{Archive, EntryType};

use super::names::{MAX_FILES, missing, resolve_link};
use super::received_archive::ReceivedArchive;
use crate::blob::MAX_DOCUMENT_BYTES;
use crate::config::BlobRef;
use crate::digest::DigestStream;
use crate::failure::refused;
use crate::progress::Progress;
use crate::store::ImageStore;
use crate::unpack::decompressed;

/// An archive of images, by the place of its files.
pub(super) enum ImageArchive {
    Folder(OwnedFd),
    Tarball { file: File, files: BTreeMap<String, TarSection>, links: BTreeMap<String, String> },
    Received(ReceivedArchive),
}

/// The range of a file's content in the tarball.
#[derive(Debug, Clone, Copy)]
pub(super) struct TarSection {
    start: u64,
    bytes: u64,
}

/// Tells whether a file is a tarball, perhaps a compressed one.
pub(super) fn is_tarball(source: &Path, incoming: &Path, max_bytes: u64) -> bool {
    let file = File::open(source).and_then(|file| seekable(file, incoming, max_bytes));
    file.is_ok_and(|file| contents(&file).is_some())
}

impl ImageArchive {
    /// Opens an archive. Returns `None` for a tarball without the files that an archive of images
    /// has. A compressed tarball is decompressed into `incoming` first.
    pub(super) fn open(source: &Path, incoming: &Path, max_bytes: u64) -> io::Result<Option<Self>> {
        let file = File::open(source)?;
        let kind = file.metadata()?;
        if kind.is_dir() {
            let folder = Self::Folder(file.into());
            let is_archive = folder.is_of_images();
            let none = || {
                refused(
                    "the folder is neither an OCI layout nor an unpacked `docker save` archive. If it is a root file system, `eyot create --image DIR` uses it as it is",
                )
            };
            return is_archive.then_some(Some(folder)).ok_or_else(none);
        }
        if !kind.is_file() {
            return Err(refused("it is neither a file nor a folder"));
        }
        let bundle = Self::tarball(seekable(file, incoming, max_bytes)?);
        Ok(bundle.filter(Self::is_of_images))
    }

    /// Returns `None` for a file that can't be read as a tarball; the unpacker reports that fault.
    fn tarball(file: File) -> Option<Self> {
        let (files, links) = contents(&file)?;
        Some(Self::Tarball { file, files, links })
    }

    /// Tells whether the archive has one of the files that list its images.
    pub(super) fn is_of_images(&self) -> bool {
        self.has("index.json") || self.has("manifest.json")
    }

    pub(super) fn has(&self, name: &str) -> bool {
        matches!(self.open_file(name), Ok(Some(_)))
    }

    /// Opens a file; `None` if there is none of that name.
    pub(super) fn open_file(&self, name: &str) -> io::Result<Option<Box<dyn Read + Send + '_>>> {
        match self {
            Self::Folder(folder) => open_below(folder, name).map(|file| file.map(|file| Box::new(file) as _)),
            Self::Received(received) => Ok(received.open(name)?.map(|file| Box::new(file) as _)),
            Self::Tarball { file, files, links } => {
                let linked = links.get(name).map(|target| resolve_link(name, target));
                let section = files.get(name).or_else(|| linked.and_then(|name| files.get(&name)));
                Ok(section.map(|section| {
                    Box::new(TarSectionReader { file, at: section.start, left: section.bytes }) as _
                }))
            }
        }
    }

    /// Returns a file's digest and length.
    pub(super) fn measure(&self, name: &str) -> io::Result<BlobRef> {
        if let Self::Received(received) = self {
            return received.blob(name).ok_or_else(|| missing(name));
        }
        let mut hashing = DigestStream::new(self.open_file(name)?.ok_or_else(|| missing(name))?);
        io::copy(&mut hashing, &mut io::sink())?;
        let (digest, bytes) = hashing.finish();
        Ok(BlobRef { digest, bytes })
    }

    /// Puts a file into the store, as this blob and no other.
    pub(super) fn put(
        &self,
        name: &str,
        blob: &BlobRef,
        store: &ImageStore,
        progress: &dyn Progress,
    ) -> io::Result<()> {
        match self {
            Self::Received(received) if received.blob(name).as_ref() == Some(blob) => {
                progress.advance(&blob.digest, blob.bytes);
                received.give(name, store)
            }
            _ => {
                let input = self.open_file(name)?.ok_or_else(|| missing(name))?;
                store.put_blob(input, Some((&blob.digest, blob.bytes)), progress).map(drop)
            }
        }
    }

    /// Reads a document, of 4 MiB at most.
    pub(super) fn document(&self, name: &str) -> io::Result<Vec<u8>> {
        let file = self.open_file(name)?.ok_or_else(|| missing(name))?;
        let mut bytes = Vec::new();
        file.take(MAX_DOCUMENT_BYTES + 1).read_to_end(&mut bytes)?;
        if bytes.len() as u64 > MAX_DOCUMENT_BYTES {
            Err(refused(format!("`{name}` is longer than 4 MiB")))
        } else {
            Ok(bytes)
        }
    }
}

/// Returns the ranges of the files of a tarball, and the targets of its links. Returns `None` if it
/// is no tarball, or has more files than an archive of images.
fn contents(file: &File) -> Option<(BTreeMap<String, TarSection>, BTreeMap<String, String>)> {
    let (mut files, mut links) = (BTreeMap::new(), BTreeMap::new());
    let mut archive = Archive::new(file);
    for entry in archive.entries_with_seek().ok()? {
        let entry = entry.ok()?;
        let name = String::from_utf8_lossy(&entry.path_bytes()).trim_start_matches("./").to_owned();
        match entry.header().entry_type() {
            EntryType::Regular | EntryType::Continuous => {
                files.insert(name, TarSection { start: entry.raw_file_position(), bytes: entry.size() });
            }
            EntryType::Symlink | EntryType::Link => {
                let target = entry.link_name_bytes().unwrap_or_default();
                links.insert(name, String::from_utf8_lossy(&target).into_owned());
            }
            _ => {}
        }
        if files.len() + links.len() > MAX_FILES {
            return None;
        }
    }
    Some((files, links))
}

/// Returns the same file, or a decompressed copy of it without a name.
fn seekable(mut file: File, incoming: &Path, max_bytes: u64) -> io::Result<File> {
    let mut first = [0; 4];
    let count = file.read(&mut first)?;
    file.seek(SeekFrom::Start(0))?;
    if !matches!(&first[..count], [0x1f, 0x8b, ..] | [0x28, 0xb5, 0x2f, 0xfd]) {
        return Ok(file);
    }
    let mut copy = tempfile::tempfile_in(incoming)?;
    let copied = io::copy(&mut decompressed(file)?.take(max_bytes), &mut copy)?;
    if copied == max_bytes {
        return Err(refused("it unpacks to too many bytes"));
    }
    copy.seek(SeekFrom::Start(0))?;
    Ok(copy)
}

/// Opens a regular file below the folder, through no link that leads out of it.
fn open_below(folder: &OwnedFd, name: &str) -> io::Result<Option<File>> {
    let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_MAGICLINKS;
    // The file is opened for reading only once it is known to be a regular one: opening a FIFO
    // would wait.
    let found =
        match rustix::fs::openat2(folder, name, OFlags::PATH | OFlags::CLOEXEC, Mode::empty(), resolve) {
            Err(Errno::NOENT | Errno::NOTDIR) => return Ok(None),
            found => File::from(found?),
        };
    if !found.metadata()?.is_file() {
        return Err(refused(format!("`{name}` is no regular file")));
    }
    let path = format!("/proc/self/fd/{}", found.as_raw_fd());
    Ok(Some(rustix::fs::openat(CWD, path, OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty())?.into()))
}

/// A reader of one file of the tarball.
struct TarSectionReader<'f> {
    file: &'f File,
    at: u64,
    left: u64,
}

impl Read for TarSectionReader<'_> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let most = usize::try_from(self.left).unwrap_or(usize::MAX).min(into.len());
        let count = self.file.read_at(&mut into[..most], self.at)?;
        self.at += count as u64;
        self.left -= count as u64;
        Ok(count)
    }
}
