//! Packing a layer: directories, files and removed names become a compressed tar stream that [`crate::unpack`] and other
//! programs read. It is written as it comes, to a file of the store, and ends at its limits.

use std::ffi::OsStr;
use std::io::{self, Read, Write};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use tar::{Builder, EntryType, Header};
use tempfile::NamedTempFile;
use zstd::stream::write::Encoder;

use crate::digest::{Digest, DigestStream};
use crate::failure::refused;
use crate::unpack::{OPAQUE, REMOVED, is_kept};

/// The facts of a layer's entry beside its name and content. The ids are those inside.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct EntryFacts {
    /// The permission bits.
    pub mode: u32,
    /// The owner.
    pub uid: u32,
    /// The group.
    pub gid: u32,
    /// The time of the last change, in seconds since 1970.
    pub modified_s: u64,
    /// Names and values of extended attributes. Those that no image keeps are left out.
    pub attributes: Vec<(String, Vec<u8>)>,
}

/// The limits of a layer that is packed.
pub(crate) struct PackLimits<'a> {
    pub max_bytes: u64,
    pub max_entries: u64,
    /// Tells whether nobody waits for the layer any more.
    pub is_stopped: &'a (dyn Fn() -> bool + Sync),
}

/// Writes a layer. Paths are relative to the root, without `.` and `..`.
pub struct LayerPacker<'a> {
    tar: Builder<LayerOutput<'a>>,
    entries_left: u64,
}

/// A layer that was packed.
pub(crate) struct PackedLayer {
    /// The digest of the tar stream, without the compression.
    pub diff: Digest,
    pub blob: Digest,
    pub blob_bytes: u64,
    pub file: NamedTempFile,
}

/// How hard a layer is compressed: fast, since somebody waits.
const LEVEL: i32 = 1;

impl<'a> LayerPacker<'a> {
    pub(crate) fn new(file: NamedTempFile, limits: PackLimits<'a>) -> io::Result<Self> {
        let into = DigestStream::new(Encoder::new(DigestStream::new(file), LEVEL)?);
        let output = LayerOutput {
            into,
            max_bytes: limits.max_bytes,
            left: limits.max_bytes,
            is_stopped: limits.is_stopped,
        };
        Ok(Self { tar: Builder::new(output), entries_left: limits.max_entries })
    }

    pub(crate) fn finish(self) -> io::Result<PackedLayer> {
        let (diff, _, encoder) = self.tar.into_inner()?.into.into_parts();
        let (blob, blob_bytes, file) = encoder.finish()?.into_parts();
        Ok(PackedLayer { diff, blob, blob_bytes, file })
    }

    /// Adds a directory.
    ///
    /// # Errors
    /// Those of all calls here: refusals, beyond a limit, and errors of writing.
    pub fn directory(&mut self, path: &Path, facts: &EntryFacts) -> io::Result<()> {
        self.add(EntryType::Directory, path, facts, 0, &mut io::empty())
    }

    /// Adds a file of this size.
    pub fn file(
        &mut self,
        path: &Path,
        facts: &EntryFacts,
        size: u64,
        content: &mut dyn Read,
    ) -> io::Result<()> {
        self.add(EntryType::Regular, path, facts, size, content)
    }

    /// Adds a symbolic link.
    pub fn symlink(&mut self, path: &Path, target: &OsStr, facts: &EntryFacts) -> io::Result<()> {
        self.begin(path)?;
        let mut header = header(EntryType::Symlink, facts, 0);
        // A header has room for a hundred bytes.
        if header.set_link_name_literal(target.as_bytes()).is_err() {
            self.tar.append_pax_extensions([("linkpath", target.as_bytes())])?;
        }
        self.tar.append_data(&mut header, path, io::empty())
    }

    /// Adds another name for a file that was added.
    pub fn hard_link(&mut self, path: &Path, first: &Path, facts: &EntryFacts) -> io::Result<()> {
        self.begin(path)?;
        self.tar.append_link(&mut header(EntryType::Link, facts, 0), path, first)
    }

    /// Says that what lies below the layer has nothing of this name.
    pub fn removed(&mut self, path: &Path) -> io::Result<()> {
        let name = path.file_name().unwrap_or_default().as_bytes();
        let mark = path.with_file_name(OsStr::from_bytes(&[REMOVED, name].concat()));
        self.mark(&mark)
    }

    /// Says that nothing shows in this directory of what lies below the layer.
    pub fn hides_below(&mut self, directory: &Path) -> io::Result<()> {
        self.mark(&directory.join(OsStr::from_bytes(OPAQUE)))
    }

    fn mark(&mut self, path: &Path) -> io::Result<()> {
        self.count()?;
        self.tar.append_data(&mut header(EntryType::Regular, &EntryFacts::default(), 0), path, io::empty())
    }

    fn add(
        &mut self,
        kind: EntryType,
        path: &Path,
        facts: &EntryFacts,
        size: u64,
        content: &mut dyn Read,
    ) -> io::Result<()> {
        self.begin(path)?;
        let kept = facts.attributes.iter().filter(|(name, _)| is_kept(name.as_bytes()));
        let kept: Vec<_> = kept.map(|(name, value)| (format!("SCHILY.xattr.{name}"), value)).collect();
        if !kept.is_empty() {
            self.tar
                .append_pax_extensions(kept.iter().map(|(name, value)| (name.as_str(), value.as_slice())))?;
        }
        let mut counted = CountedReader { input: content.take(size), bytes: 0 };
        self.tar.append_data(&mut header(kind, facts, size), path, &mut counted)?;
        if counted.bytes == size {
            Ok(())
        } else {
            Err(refused(format!("`/{}` became shorter while it was read", path.display())))
        }
    }

    /// Refuses a name that would be read as the mark of a removed one.
    fn begin(&mut self, path: &Path) -> io::Result<()> {
        let name = path.file_name().unwrap_or_default().as_bytes();
        if name.starts_with(REMOVED) {
            let path = path.display();
            return Err(refused(format!("`/{path}` has a name that images keep for removed files: `.wh.…`")));
        }
        self.count()
    }

    fn count(&mut self) -> io::Result<()> {
        let left = self.entries_left.checked_sub(1);
        self.entries_left = left.ok_or_else(|| refused("it has too many files"))?;
        Ok(())
    }
}

fn header(kind: EntryType, facts: &EntryFacts, size: u64) -> Header {
    let mut header = Header::new_gnu();
    header.set_entry_type(kind);
    header.set_mode(facts.mode & 0o7777);
    header.set_uid(facts.uid.into());
    header.set_gid(facts.gid.into());
    header.set_mtime(facts.modified_s);
    header.set_size(size);
    header
}

/// A reader that counts.
struct CountedReader<R> {
    input: R,
    bytes: u64,
}

impl<R: Read> Read for CountedReader<R> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let count = self.input.read(into)?;
        self.bytes += count as u64;
        Ok(count)
    }
}

/// The stream of a layer, compressed into its file.
struct LayerOutput<'a> {
    into: DigestStream<Encoder<'static, DigestStream<NamedTempFile>>>,
    max_bytes: u64,
    left: u64,
    is_stopped: &'a (dyn Fn() -> bool + Sync),
}

impl Write for LayerOutput<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if (self.is_stopped)() {
            return Err(io::Error::other("nobody waits for it any more"));
        }
        let left = self.left.checked_sub(bytes.len() as u64);
        self.left = left.ok_or_else(|| {
            let message = format!("the layer has more than {} bytes", self.max_bytes);
            io::Error::new(io::ErrorKind::FileTooLarge, message)
        })?;
        self.into.write_all(bytes)?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.into.flush()
    }
}
