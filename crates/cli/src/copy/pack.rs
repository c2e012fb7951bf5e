//! Packs a tree of the host into a tar stream. Symbolic links are packed as links. Sockets, FIFOs
//! and devices are left out and reported. Owners are not packed: inside, everything belongs to the
//! sandbox's user.

use std::fs::{self, File, Metadata};
use std::io::{self, Read, Write};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileTypeExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use eyot_archive::link_stays_inside;
use rustix::fs::OFlags;
use tar::{Builder, EntryType, Header};

use super::{ByteMeter, CopyResult};
use crate::errors::Failure;

/// The id of the sandbox's default user.
const USER_ID: u64 = 1000;

/// Writes everything below `root` as a tar stream with names relative to it.
pub fn pack(root: &Path, stream: impl Write, meter: &ByteMeter) -> Result<CopyResult, Failure> {
    let mut packer = TreePacker { tar: Builder::new(stream), copied: CopyResult::default(), meter };
    let mut folders = vec![PathBuf::new()];
    while let Some(folder) = folders.pop() {
        for path in children(root, &folder)? {
            let failed = |error: io::Error| match error.kind() {
                // Of the stream: the sandbox takes no more, and says why.
                io::ErrorKind::BrokenPipe => Failure::OutputClosed,
                _ => Failure::host(format!("read `{}`", root.join(&path).display()), error),
            };
            let is_folder = packer.add(root, &path).map_err(failed)?;
            if is_folder {
                folders.push(path);
            }
        }
    }
    packer.tar.finish()?;
    Ok(packer.copied)
}

/// Returns the paths in a folder, relative to the root, sorted.
fn children(root: &Path, folder: &Path) -> Result<Vec<PathBuf>, Failure> {
    let read = || -> io::Result<Vec<PathBuf>> {
        let entries = fs::read_dir(root.join(folder))?;
        let mut children =
            entries.map(|entry| Ok(folder.join(entry?.file_name()))).collect::<io::Result<Vec<_>>>()?;
        children.sort();
        Ok(children)
    };
    read().map_err(|error| {
        Failure::host(format!("read the directory `{}`", root.join(folder).display()), error)
    })
}

struct TreePacker<'a, W: Write> {
    tar: Builder<W>,
    copied: CopyResult,
    meter: &'a ByteMeter,
}

impl<W: Write> TreePacker<'_, W> {
    /// Adds one path, and tells whether it is a folder.
    fn add(&mut self, root: &Path, path: &Path) -> io::Result<bool> {
        let full = root.join(path);
        let metadata = fs::symlink_metadata(&full)?;
        let kind = metadata.file_type();
        if kind.is_dir() {
            let mut header = header(&metadata, EntryType::Directory, 0);
            self.tar.append_data(&mut header, path, io::empty())?;
        } else if kind.is_symlink() && !stays_inside(path, &fs::read_link(&full)?) {
            self.copied
                .skipped
                .push(format!("{}: a symbolic link that leads out of the tree", path.display()));
        } else if kind.is_symlink() {
            let mut header = header(&metadata, EntryType::Symlink, 0);
            self.tar.append_link(&mut header, path, fs::read_link(&full)?)?;
            self.copied.files += 1;
        } else if kind.is_file() {
            self.add_file(&full, path)?;
        } else {
            let what = if kind.is_socket() || kind.is_fifo() { "a socket or a FIFO" } else { "a device" };
            self.copied.skipped.push(format!("{}: {what}", path.display()));
        }
        Ok(kind.is_dir())
    }

    fn add_file(&mut self, full: &Path, path: &Path) -> io::Result<()> {
        // It may have become a link or a FIFO since it was looked at.
        let flags = (OFlags::NOFOLLOW | OFlags::NONBLOCK).bits() as i32;
        let file = File::options().read(true).custom_flags(flags).open(full)?;
        let metadata = file.metadata()?;
        if !metadata.is_file() {
            return Err(io::Error::other("it changed while it was copied"));
        }
        let mut header = header(&metadata, EntryType::Regular, metadata.len());
        let content = Exactly { file, left: metadata.len(), meter: self.meter };
        self.tar.append_data(&mut header, path, content)?;
        self.copied.files += 1;
        self.copied.bytes += metadata.len();
        Ok(())
    }
}

/// Tells whether a link stays inside the tree. One that leads out would mean something else on the
/// other side, and the guest refuses it.
fn stays_inside(path: &Path, target: &Path) -> bool {
    link_stays_inside(target.as_os_str().as_bytes(), path.components().count() - 1)
}

fn header(metadata: &Metadata, kind: EntryType, size: u64) -> Header {
    let mut header = Header::new_gnu();
    header.set_entry_type(kind);
    header.set_mode(metadata.mode() & 0o777);
    header.set_mtime(u64::try_from(metadata.mtime()).unwrap_or_default());
    header.set_uid(USER_ID);
    header.set_gid(USER_ID);
    header.set_size(size);
    header
}

/// Reads exactly as many bytes as the header promised: a file that grows is cut, and one that
/// shrinks is an error.
struct Exactly<'a> {
    file: File,
    left: u64,
    meter: &'a ByteMeter,
}

impl Read for Exactly<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let wanted = usize::try_from(self.left).unwrap_or(usize::MAX).min(buffer.len());
        let count = self.file.read(&mut buffer[..wanted])?;
        if count == 0 && wanted > 0 {
            return Err(io::Error::other("it became shorter while it was copied"));
        }
        self.left -= count as u64;
        self.meter.add(count as u64);
        Ok(count)
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;
    use crate::copy::tree::{Kind, read_tree};

    #[test]
    fn a_tree_is_packed_with_its_links_as_links_and_neither_sockets_nor_links_that_lead_out() {
        let tree = tempfile::tempdir().unwrap();
        let root = tree.path().join("root");
        fs::create_dir_all(root.join("a/empty")).unwrap();
        fs::write(root.join("a").join("n".repeat(150)), "hi").unwrap();
        symlink("a/empty", root.join("link")).unwrap();
        symlink("/etc/passwd", root.join("out")).unwrap();
        let socket = std::os::unix::net::UnixListener::bind(root.join("socket")).unwrap();

        let (mut bytes, meter) = (Vec::new(), ByteMeter::default());
        let copied = pack(&root, &mut bytes, &meter).unwrap();
        drop(socket);
        assert_eq!((copied.bytes, copied.files, meter.bytes()), (2, 2, 2));
        assert_eq!(
            copied.skipped,
            ["out: a symbolic link that leads out of the tree", "socket: a socket or a FIFO"]
        );

        let mut seen = Vec::new();
        let visit = |entry: crate::copy::tree::TreeEntry, _: &mut dyn Read| {
            seen.push((entry.path_text(), entry.kind));
            Ok(())
        };
        // Names are relative to the root, so that the first one is what the reader takes for its root.
        read_tree(&bytes[..], "a", 1000, visit).unwrap_err();
        assert_eq!(seen[0], (String::new(), Kind::Directory));
    }

    #[test]
    fn a_missing_root_is_named() {
        let missing = Path::new("/nowhere/at/all");
        let Err(Failure::Error { error, .. }) = pack(missing, io::sink(), &ByteMeter::default()) else {
            panic!("refused")
        };
        assert!(error.to_string().contains("/nowhere/at/all"), "{error}");
    }
}
