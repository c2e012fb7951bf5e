//! Unpacking a layer: a tar stream of any origin becomes a folder that is safe as a read-only layer
//! of an overlay.
//!
//! The stream is hostile. It can't name anything outside of the folder: no absolute path, no `..`,
//! and the kernel looks up the targets of links with the folder as the root. It can't replace what
//! it has made itself. It leaves no device, no FIFO and no set-id bit, and ends at
//! [`UnpackLimits`]. An archive that breaks a rule is refused as a whole. Devices and FIFOs are
//! left out, because tarballs of root file systems have them and a sandbox has its own.
//!
//! Only this code writes the marks that an overlay understands. A removed name (`.wh.name`) becomes
//! the character device 0:0, which an ordinary user can make too. A folder that hides everything
//! below it (`.wh..wh..opq`) gets `user.overlay.opaque`. Extended attributes of that kind in the
//! stream are dropped, and so are all that are not `user.*`, above all capabilities of files.

mod entry;
mod layer_writer;
mod limits;
mod pax;
mod root;
mod stream;

use std::fs;
use std::io::{self, Read};
use std::os::unix::fs::DirBuilderExt;
use std::path::Path;

use tar::Archive;

pub use limits::UnpackLimits;

pub(crate) use entry::{EntryKind, EntryReader};
use layer_writer::LayerWriter;
pub(crate) use layer_writer::{OPAQUE, REMOVED};
pub(crate) use pax::is_kept;
pub(crate) use stream::{BoundedReader, decompressed};

/// The owner of the unpacked files.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Owners {
    /// The owner that the archive names, which only root can set. Ids beyond 65,535 become 65,534
    /// (`nobody`).
    Kept,
    /// The caller's.
    Folded,
}

impl Owners {
    /// Returns `Kept` for root, `Folded` for everybody else.
    pub fn of_caller() -> Self {
        if rustix::process::geteuid().is_root() { Self::Kept } else { Self::Folded }
    }
}

/// The result of unpacking.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct UnpackReport {
    /// Entries of any kind.
    pub entries: u64,
    /// Device nodes and FIFOs, which were left out.
    pub left_out: u64,
}

/// Unpacks a decompressed tar stream into the folder `target`, which must not exist yet, and reads
/// the stream to its end.
///
/// # Errors
/// `InvalidData` for a refusal, which names the entry and is the end of a sentence. Otherwise
/// errors of the kernel. The caller removes the incomplete folder.
pub fn unpack(
    tar: impl Read,
    target: &Path,
    owners: Owners,
    limits: &UnpackLimits,
) -> io::Result<UnpackReport> {
    fs::DirBuilder::new().mode(0o755).create(target)?;
    fill(tar, target, owners, limits)
}

/// Unpacks into an empty folder that exists.
pub(crate) fn fill(
    tar: impl Read,
    target: &Path,
    owners: Owners,
    limits: &UnpackLimits,
) -> io::Result<UnpackReport> {
    let mut archive = Archive::new(BoundedReader::new(tar, limits.max_unpacked_bytes));
    let mut layer = LayerWriter::new(target, owners, limits)?;
    let mut done = UnpackReport::default();
    let mut entries = EntryReader::new(archive.entries()?.raw(true), limits);
    while let Some(mut entry) = entries.next()? {
        done.entries += 1;
        match entry.kind {
            EntryKind::Special => done.left_out += 1,
            _ => layer.add(&mut entry)?,
        }
    }
    layer.finish()?;
    io::copy(&mut archive.into_inner(), &mut io::sink())?;
    Ok(done)
}

/// Unpacks the tarball at `path`, plain or compressed by gzip or zstd, into the folder `target`.
///
/// # Errors
/// Errors of [`unpack`].
pub fn unpack_file(
    path: &Path,
    target: &Path,
    owners: Owners,
    limits: &UnpackLimits,
) -> io::Result<UnpackReport> {
    unpack(decompressed(fs::File::open(path)?)?, target, owners, limits)
}

#[cfg(test)]
mod tests;
