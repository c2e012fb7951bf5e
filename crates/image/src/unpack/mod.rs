//! Unpacking a layer: a tar stream from anywhere becomes a folder that is safe to be a read-only layer of an overlay.
//!
//! The stream is hostile. It can't name anything outside of the folder (no absolute path, no `..`; what it links to is
//! looked up by the kernel with the folder as the root), can't replace what it has made itself, leaves no device, no FIFO
//! and no set-id bit, and ends at [`UnpackLimits`]. What breaks a rule is refused as a whole; devices and FIFOs are left
//! out, because tarballs of root file systems have them and a sandbox has its own.
//!
//! What an overlay takes for its own is written here and nowhere else: a removed name (`.wh.name`) becomes the character
//! device 0:0, which an ordinary user can make too, and a folder that hides what is below it (`.wh..wh..opq`) gets
//! `user.overlay.opaque`. Extended attributes of that kind in the stream are dropped, and so are all that are not
//! `user.*`: capabilities of files, above all.

mod entry;
mod fill;
mod limits;
mod pax;
mod place;
mod stream;

use std::fs;
use std::io::{self, Read};
use std::os::unix::fs::DirBuilderExt;
use std::path::Path;

use tar::Archive;

pub use limits::UnpackLimits;

pub(crate) use entry::{Kind, Reader};
use fill::Layer;
pub(crate) use stream::{Bounded, decompressed};

/// Whose the unpacked files are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Owners {
    /// Whoever the archive says, which only root can do. Ids beyond 65,535 become 65,534 (`nobody`).
    Kept,
    /// The caller's.
    Folded,
}

impl Owners {
    /// Kept by root, folded by everybody else.
    pub fn of_caller() -> Self {
        if rustix::process::geteuid().is_root() { Self::Kept } else { Self::Folded }
    }
}

/// What was unpacked.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Unpacked {
    /// Entries of any kind.
    pub entries: u64,
    /// Device nodes and FIFOs, which were left out.
    pub left_out: u64,
}

/// Unpacks a decompressed tar stream into the folder `target`, which must not be there yet, and reads the stream to its
/// end.
///
/// # Errors
/// `InvalidData` with the end of a sentence for what is refused, which names the entry; else the kernel's. What was
/// unpacked until then is left for the caller to remove.
pub fn unpack(tar: impl Read, target: &Path, owners: Owners, limits: &UnpackLimits) -> io::Result<Unpacked> {
    fs::DirBuilder::new().mode(0o755).create(target)?;
    fill(tar, target, owners, limits)
}

/// The same into an empty folder that is there.
pub(crate) fn fill(
    tar: impl Read,
    target: &Path,
    owners: Owners,
    limits: &UnpackLimits,
) -> io::Result<Unpacked> {
    let mut archive = Archive::new(Bounded::new(tar, limits.max_unpacked_bytes));
    let mut layer = Layer::new(target, owners, limits)?;
    let mut done = Unpacked::default();
    let mut entries = Reader::new(archive.entries()?.raw(true), limits);
    while let Some(mut entry) = entries.next()? {
        done.entries += 1;
        match entry.kind {
            Kind::Special => done.left_out += 1,
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
/// As [`unpack`].
pub fn unpack_file(
    path: &Path,
    target: &Path,
    owners: Owners,
    limits: &UnpackLimits,
) -> io::Result<Unpacked> {
    unpack(decompressed(fs::File::open(path)?)?, target, owners, limits)
}

#[cfg(test)]
mod tests;
