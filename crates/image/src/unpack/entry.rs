//! The entries of a tar stream, one after the other, each with its long names and extended headers.
//! The tar reader gives raw headers only: its own reading of extended headers goes by lines, see
//! [`super::pax`].

use std::ffi::OsStr;
use std::io::{self, Read};
use std::os::unix::ffi::OsStrExt;
use std::path::{Component, Path, PathBuf};

use tar::{Entries, Entry as RawEntry, EntryType, Header};

use super::UnpackLimits;
use super::pax::PaxHeader;
use crate::failure::refused;

/// The kind of file that an entry makes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum EntryKind {
    File,
    Directory,
    Symlink,
    HardLink,
    /// A device node or a FIFO, or something unknown: left out.
    Special,
}

/// An entry whose path has been checked.
pub(crate) struct LayerEntry<'a, R: Read> {
    pub(crate) kind: EntryKind,
    /// Relative, without `.` and `..`; empty for the root itself.
    pub(crate) path: PathBuf,
    /// The link's target as it is written; empty if the entry is no link.
    pub(crate) link: Vec<u8>,
    /// Permission bits, without setuid and setgid.
    pub(crate) mode: u32,
    pub(crate) uid: u64,
    pub(crate) gid: u64,
    /// Seconds and nanoseconds.
    pub(crate) modified: (i64, u32),
    pub(crate) attributes: Vec<(Vec<u8>, Vec<u8>)>,
    pub(crate) size: u64,
    content: RawEntry<'a, R>,
}

impl<R: Read> Read for LayerEntry<'_, R> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        self.content.read(into)
    }
}

/// Reads entries.
pub(crate) struct EntryReader<'a, R: Read> {
    raw: Entries<'a, R>,
    left: u64,
    max_header_bytes: u64,
}

/// The headers that came before an entry's own and belong to it.
#[derive(Default)]
struct PendingHeaders {
    name: Option<Vec<u8>>,
    link: Option<Vec<u8>>,
    pax: Option<PaxHeader>,
    bytes: u64,
}

impl<'a, R: Read> EntryReader<'a, R> {
    pub(crate) fn new(raw: Entries<'a, R>, limits: &UnpackLimits) -> Self {
        Self { raw, left: limits.max_entries, max_header_bytes: limits.max_header_bytes }
    }

    pub(crate) fn next(&mut self) -> io::Result<Option<LayerEntry<'a, R>>> {
        let mut ahead = PendingHeaders::default();
        while let Some(raw) = self.raw.next() {
            let mut raw = raw.map_err(as_refusal)?;
            self.left = self.left.checked_sub(1).ok_or_else(|| refused("it has too many entries"))?;
            let kind = raw.header().entry_type();
            match kind {
                EntryType::GNULongName => ahead.name = Some(self.text(&mut raw, &mut ahead.bytes)?),
                EntryType::GNULongLink => ahead.link = Some(self.text(&mut raw, &mut ahead.bytes)?),
                EntryType::XHeader => {
                    ahead.pax = Some(PaxHeader::parse(&self.bytes(&mut raw, &mut ahead.bytes)?)?);
                }
                // These are comments; nothing else in them applies here.
                EntryType::XGlobalHeader => {}
                EntryType::GNUSparse => {
                    return Err(refused("it has sparse entries; make it without `--sparse`"));
                }
                _ => return ahead.complete(raw).map(Some),
            }
        }
        Ok(None)
    }

    fn bytes(&self, raw: &mut RawEntry<'_, R>, counted: &mut u64) -> io::Result<Vec<u8>> {
        *counted = counted.saturating_add(raw.size());
        if *counted > self.max_header_bytes {
            return Err(refused(format!(
                "it has an entry with more than {} bytes of headers",
                self.max_header_bytes
            )));
        }
        let mut bytes = Vec::new();
        raw.read_to_end(&mut bytes)?;
        if bytes.len() as u64 == raw.size() {
            Ok(bytes)
        } else {
            Err(refused("it ends in the middle of a header"))
        }
    }

    /// Reads a long name, without the null byte at its end.
    fn text(&self, raw: &mut RawEntry<'_, R>, counted: &mut u64) -> io::Result<Vec<u8>> {
        let mut bytes = self.bytes(raw, counted)?;
        if bytes.last() == Some(&0) {
            bytes.pop();
        }
        Ok(bytes)
    }
}

/// Blames the archive for a header that can't be read. Errors of the stream itself keep their kind.
/// The reader's words are left out: they quote the file, which may be another's secret.
fn as_refusal(error: io::Error) -> io::Error {
    match error.kind() {
        io::ErrorKind::Other => refused("it is damaged or not a tar archive"),
        _ => error,
    }
}

impl PendingHeaders {
    fn complete<'a, R: Read>(self, raw: RawEntry<'a, R>) -> io::Result<LayerEntry<'a, R>> {
        let header = raw.header();
        let pax = self.pax.unwrap_or_default();
        let name = pax.path.or(self.name).unwrap_or_else(|| header.path_bytes().into_owned());
        let path = relative(&name)?;
        let size = header.entry_size().map_err(as_refusal)?;
        if pax.size.is_some_and(|told| told != size) {
            return Err(refused(format!("entry `{}` has two sizes", path.display())));
        }
        let link = pax.link.or(self.link);
        let link = link.or_else(|| header.link_name_bytes().map(std::borrow::Cow::into_owned));
        let modified = match pax.modified {
            Some(modified) => modified,
            None => (i64::try_from(header.mtime().map_err(as_refusal)?).unwrap_or(0), 0),
        };
        Ok(LayerEntry {
            kind: kind(header, &name),
            path,
            link: link.unwrap_or_default(),
            mode: header.mode().map_err(as_refusal)? & 0o1777,
            uid: pax.uid.map_or_else(|| header.uid(), Ok).map_err(as_refusal)?,
            gid: pax.gid.map_or_else(|| header.gid(), Ok).map_err(as_refusal)?,
            modified,
            attributes: pax.attributes,
            size,
            content: raw,
        })
    }
}

fn kind(header: &Header, name: &[u8]) -> EntryKind {
    match header.entry_type() {
        // In the oldest format a directory is a file whose name ends in a slash.
        EntryType::Regular | EntryType::Continuous if name.ends_with(b"/") => EntryKind::Directory,
        EntryType::Regular | EntryType::Continuous => EntryKind::File,
        EntryType::Directory => EntryKind::Directory,
        EntryType::Symlink => EntryKind::Symlink,
        EntryType::Link => EntryKind::HardLink,
        _ => EntryKind::Special,
    }
}

/// Returns a path of the archive as one below the folder.
///
/// # Errors
/// `InvalidData`: one that is absolute, leaves the folder, or holds a null byte.
pub(crate) fn relative(written: &[u8]) -> io::Result<PathBuf> {
    let path = Path::new(OsStr::from_bytes(written));
    let named = |what: &str| refused(format!("entry `{}` {what}", path.display()));
    if written.contains(&0) {
        return Err(named("has a null byte in its path"));
    }
    if written.len() > MAX_PATH_BYTES {
        return Err(refused("it has a path of more than 4096 bytes"));
    }
    let mut below = PathBuf::new();
    for part in path.components() {
        match part {
            Component::Normal(name) => below.push(name),
            Component::CurDir => {}
            Component::ParentDir => return Err(named("leaves the image")),
            Component::RootDir | Component::Prefix(_) => return Err(named("has an absolute path")),
        }
    }
    Ok(below)
}

/// The limit of Linux.
const MAX_PATH_BYTES: usize = 4096;
