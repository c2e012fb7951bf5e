//! Archives that come as a stream, such as a Docker Engine's. The last files tell the meaning of
//! the others, so each file waits in `incoming/`, already hashed. A blob then moves into the store
//! by a second name: no byte is written twice.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, Read};
use std::path::Path;

use tar::Archive;
use tempfile::{NamedTempFile, TempPath};

use super::names::{MAX_FILES, missing, resolve_link};
use crate::config::BlobRef;
use crate::digest::DigestStream;
use crate::failure::refused;
use crate::store::ImageStore;
use crate::unpack::{BoundedReader, EntryKind, EntryReader, UnpackLimits};

/// The files of a whole archive. Dropping it leaves nothing in `incoming/`.
pub(super) struct ReceivedArchive {
    files: BTreeMap<String, ReceivedFile>,
    links: BTreeMap<String, String>,
}

struct ReceivedFile {
    path: TempPath,
    blob: BlobRef,
}

impl ReceivedArchive {
    /// Reads the stream to its end.
    pub(super) fn read(input: impl Read, incoming: &Path, limits: &UnpackLimits) -> io::Result<Self> {
        let mut archive = Archive::new(BoundedReader::new(input, limits.max_unpacked_bytes));
        let mut entries = EntryReader::new(archive.entries()?.raw(true), limits);
        let mut received = Self { files: BTreeMap::new(), links: BTreeMap::new() };
        while let Some(mut entry) = entries.next()? {
            let name = entry.path.to_string_lossy().into_owned();
            match entry.kind {
                EntryKind::File => {
                    let kept = keep(&mut entry, incoming)?;
                    if kept.blob.bytes != entry.size {
                        return Err(refused("it ends in the middle of a file"));
                    }
                    received.files.insert(name, kept);
                }
                EntryKind::Symlink | EntryKind::HardLink => {
                    received.links.insert(name, String::from_utf8_lossy(&entry.link).into_owned());
                }
                EntryKind::Directory | EntryKind::Special => {}
            }
            if received.files.len() + received.links.len() > MAX_FILES {
                return Err(refused("it has more files than an archive of images"));
            }
        }
        io::copy(&mut archive.into_inner(), &mut io::sink())?;
        Ok(received)
    }

    pub(super) fn open(&self, name: &str) -> io::Result<Option<File>> {
        self.find(name).map(|kept| File::open(&kept.path)).transpose()
    }

    /// Returns a file's digest and length.
    pub(super) fn blob(&self, name: &str) -> Option<BlobRef> {
        self.find(name).map(|kept| kept.blob.clone())
    }

    /// Links a file into the store as a blob.
    pub(super) fn give(&self, name: &str, store: &ImageStore) -> io::Result<()> {
        let kept = self.find(name).ok_or_else(|| missing(name))?;
        match fs::hard_link(&kept.path, store.blob(&kept.blob.digest)) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => Err(error),
            _ => Ok(()),
        }
    }

    fn find(&self, name: &str) -> Option<&ReceivedFile> {
        let linked = || self.files.get(&resolve_link(name, self.links.get(name)?));
        self.files.get(name).or_else(linked)
    }
}

fn keep(content: &mut impl Read, incoming: &Path) -> io::Result<ReceivedFile> {
    let mut file = NamedTempFile::new_in(incoming)?;
    let mut hashing = DigestStream::new(content);
    io::copy(&mut hashing, &mut file)?;
    let (digest, bytes) = hashing.finish();
    // The file is closed, because an archive may have more files than a process may have open.
    Ok(ReceivedFile { path: file.into_temp_path(), blob: BlobRef { digest, bytes } })
}
