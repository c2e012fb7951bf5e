//! A file or a tree as a tar stream (GNU format). Links below the root are packed as links. FIFOs,
//! sockets and devices are left out. Owners are always 1000 and have no names. A file's size stands
//! before its content, so a file that shrinks meanwhile is filled up with zeros, and one that grows
//! is cut.

use rustix::fd::OwnedFd;
use rustix::fs::{AtFlags, FileType, Mode, OFlags, Stat};
use rustix::io::Errno;
use tar::{EntryType, Header};

use super::failure::{FileError, FileErrorKind};
use super::locate::{Target, file_type};
use super::regular;
use super::walk::Walk;
use crate::program::call_io::{CallIo, Stopped};
use crate::protocol::{Event, Location, MAX_PAYLOAD_BYTES, Reply};

const OWNER: u64 = 1000;
const BLOCK_BYTES: usize = 512;
/// The longest name that fits into a header. A longer one needs an entry of its own before it.
const SHORT_NAME_BYTES: usize = 100;

/// Sends the tar stream. Entry names begin with the path's last segment; a link at the path itself
/// is followed.
pub fn tar_out(root: &Location, io: &mut dyn CallIo) -> Result<Reply, FileError> {
    let target = Target::new(root)?;
    let name = root.path.rsplit('/').next().unwrap_or_default().as_bytes();
    match target.open_directory() {
        Ok(directory) => {
            let stat = rustix::fs::fstat(&directory)?;
            let walk = Walk::new(directory, io)?;
            pack(io, |packer| packer.tree(name, &stat, walk))
        }
        Err(problem) if problem.kind == FileErrorKind::NotDirectory => {
            let (file, stat) = regular::open(&target)?;
            pack(io, |packer| packer.file(name, file.into(), &stat))
        }
        Err(problem) => Err(problem),
    }
}

fn pack(
    io: &mut dyn CallIo,
    work: impl FnOnce(&mut Packer<'_>) -> Result<(), FileError>,
) -> Result<Reply, FileError> {
    io.event(Event::Opened(None))?;
    let mut packer = Packer { io, out: vec![0; MAX_PAYLOAD_BYTES], filled: 0 };
    work(&mut packer)?;
    // Two empty blocks mark the end.
    packer.bytes(&[0; 2 * BLOCK_BYTES])?;
    packer.flush()?;
    Ok(Reply::Done)
}

/// Puts the stream together in frames, which files are read into.
struct Packer<'i> {
    io: &'i mut dyn CallIo,
    out: Vec<u8>,
    filled: usize,
}

impl Packer<'_> {
    fn tree(&mut self, root: &[u8], stat: &Stat, mut walk: Walk) -> Result<(), FileError> {
        if !root.is_empty() {
            self.directory(root, stat)?;
        }
        while let Some(kind) = walk.next(&*self.io)? {
            let name =
                if root.is_empty() { walk.path().to_vec() } else { [root, b"/", walk.path()].concat() };
            match self.entry(&name, kind, &mut walk) {
                // Gone or swapped since it was listed: a tree that changes is packed as it is met.
                Err(problem)
                    if matches!(problem.kind, FileErrorKind::NotFound | FileErrorKind::NotDirectory) => {}
                result => result.map_err(|problem| match problem.kind {
                    FileErrorKind::Cancelled => problem,
                    _ => problem.at(walk.path()),
                })?,
            }
        }
        Ok(())
    }

    fn entry(&mut self, name: &[u8], kind: FileType, walk: &mut Walk) -> Result<(), FileError> {
        match kind {
            FileType::Directory => {
                walk.enter(&*self.io)?;
                self.directory(name, &rustix::fs::fstat(walk.directory())?)
            }
            FileType::RegularFile => match open(walk)? {
                Some((file, stat)) => self.file(name, file, &stat),
                None => Ok(()),
            },
            FileType::Symlink => self.link(name, walk),
            _ => Ok(()),
        }
    }

    fn directory(&mut self, name: &[u8], stat: &Stat) -> Result<(), FileError> {
        let name = [name, b"/"].concat();
        self.append(header(EntryType::Directory, stat), &name)
    }

    fn file(&mut self, name: &[u8], file: OwnedFd, stat: &Stat) -> Result<(), FileError> {
        let size = regular::size(stat);
        let mut header = header(EntryType::Regular, stat);
        header.set_size(size);
        self.append(header, name)?;
        self.content(&file, size)
    }

    fn link(&mut self, name: &[u8], walk: &Walk) -> Result<(), FileError> {
        let stat = rustix::fs::statat(walk.directory(), walk.name(), AtFlags::SYMLINK_NOFOLLOW)?;
        let to = match rustix::fs::readlinkat(walk.directory(), walk.name(), Vec::new()) {
            // No link any more.
            Err(Errno::INVAL) => return Ok(()),
            to => to?.into_bytes(),
        };
        let mut header = header(EntryType::Symlink, &stat);
        if to.len() > SHORT_NAME_BYTES {
            self.long_name(EntryType::GNULongLink, &to)?;
        }
        fill(&mut header.as_old_mut().linkname, &to);
        self.append(header, name)
    }

    fn append(&mut self, mut header: Header, name: &[u8]) -> Result<(), FileError> {
        if name.len() > SHORT_NAME_BYTES {
            self.long_name(EntryType::GNULongName, name)?;
        }
        fill(&mut header.as_old_mut().name, name);
        header.set_cksum();
        Ok(self.bytes(header.as_bytes())?)
    }

    /// The entry that says the whole name, or link target, of the next one.
    fn long_name(&mut self, what: EntryType, name: &[u8]) -> Result<(), FileError> {
        let mut header = Header::new_gnu();
        header.set_entry_type(what);
        header.set_size(name.len() as u64 + 1);
        fill(&mut header.as_old_mut().name, b"././@LongLink");
        header.set_cksum();
        self.bytes(header.as_bytes())?;
        self.bytes(name)?;
        self.bytes(&[0])?;
        Ok(self.pad(name.len() as u64 + 1)?)
    }

    fn bytes(&mut self, mut bytes: &[u8]) -> Result<(), Stopped> {
        while !bytes.is_empty() {
            let count = self.room(bytes.len() as u64)?;
            self.out[self.filled..self.filled + count].copy_from_slice(&bytes[..count]);
            self.filled += count;
            bytes = &bytes[count..];
        }
        Ok(())
    }

    /// As many bytes of a file as its header says, and what fills up the last block.
    fn content(&mut self, file: &OwnedFd, size: u64) -> Result<(), FileError> {
        let mut left = size;
        while left > 0 {
            let wanted = self.room(left)?;
            let into = &mut self.out[self.filled..self.filled + wanted];
            let count = match rustix::io::retry_on_intr(|| rustix::io::read(file, &mut *into))? {
                0 => {
                    into.fill(0);
                    wanted
                }
                count => count,
            };
            self.filled += count;
            left -= count as u64;
        }
        Ok(self.pad(size)?)
    }

    fn pad(&mut self, size: u64) -> Result<(), Stopped> {
        let over = (size % BLOCK_BYTES as u64) as usize;
        self.bytes(&[0; BLOCK_BYTES][..(BLOCK_BYTES - over) % BLOCK_BYTES])
    }

    /// Makes room for some of so many bytes; at least for one.
    fn room(&mut self, wanted: u64) -> Result<usize, Stopped> {
        if self.filled == self.out.len() {
            self.flush()?;
        }
        Ok((self.out.len() - self.filled).min(usize::try_from(wanted).unwrap_or(usize::MAX)))
    }

    fn flush(&mut self) -> Result<(), Stopped> {
        self.io.send(&self.out[..self.filled])?;
        self.filled = 0;
        Ok(())
    }
}

/// Opens the regular file that the walk came upon; `None` when it is one no more.
fn open(walk: &Walk) -> Result<Option<(OwnedFd, Stat)>, FileError> {
    let flags = regular::READ | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let file = match rustix::fs::openat(walk.directory(), walk.name(), flags, Mode::empty()) {
        Err(Errno::LOOP | Errno::NXIO) => return Ok(None),
        file => file?,
    };
    let stat = rustix::fs::fstat(&file)?;
    let is_regular = file_type(&stat) == FileType::RegularFile;
    Ok(is_regular.then_some((file, stat)))
}

fn header(kind: EntryType, stat: &Stat) -> Header {
    let mut header = Header::new_gnu();
    header.set_entry_type(kind);
    header.set_mode(stat.st_mode & 0o7777);
    header.set_mtime(u64::try_from(stat.st_mtime).unwrap_or(0));
    header.set_uid(OWNER);
    header.set_gid(OWNER);
    header.set_size(0);
    header
}

/// Copies as much of a name as fits; the rest is in the entry before. The bytes go in as they are,
/// with no regard to their meaning.
fn fill(field: &mut [u8; SHORT_NAME_BYTES], name: &[u8]) {
    let length = name.len().min(SHORT_NAME_BYTES);
    field[..length].copy_from_slice(&name[..length]);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::program::files::fake_io::{FakeIo, at, beneath};
    use std::collections::BTreeMap;
    use std::ffi::OsStr;
    use std::fs::File;
    use std::io::Read;
    use std::os::unix::ffi::OsStrExt;
    use std::os::unix::fs::{PermissionsExt, symlink};

    type Unpacked = BTreeMap<Vec<u8>, (EntryType, u32, Vec<u8>)>;

    fn packed(root: &Location) -> Result<Unpacked, FileError> {
        let mut io = FakeIo::default();
        tar_out(root, &mut io)?;
        assert_eq!(io.events, [Event::Opened(None)]);
        assert!(io.sent.iter().all(|piece| piece.len() <= MAX_PAYLOAD_BYTES));
        let bytes = io.sent.concat();
        let mut archive = tar::Archive::new(&bytes[..]);
        let mut entries = Unpacked::new();
        for entry in archive.entries().unwrap() {
            let mut entry = entry.unwrap();
            assert_eq!((entry.header().uid().unwrap(), entry.header().gid().unwrap()), (1000, 1000));
            let mut content = entry.link_name_bytes().map(|to| to.into_owned()).unwrap_or_default();
            entry.read_to_end(&mut content).unwrap();
            let facts = (entry.header().entry_type(), entry.header().mode().unwrap(), content);
            entries.insert(entry.path_bytes().into_owned(), facts);
        }
        Ok(entries)
    }

    #[test]
    fn a_tree_is_packed_with_modes_links_and_strange_names() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().join("root");
        let long = "n".repeat(200);
        std::fs::create_dir_all(root.join(&long).join(&long)).unwrap();
        std::fs::write(root.join(&long).join(&long).join("deep"), "deep").unwrap();
        std::fs::write(root.join(OsStr::from_bytes(b"\xff\xfe")), "bytes").unwrap();
        std::fs::write(root.join("run"), vec![7; 100_000]).unwrap();
        std::fs::set_permissions(root.join("run"), PermissionsExt::from_mode(0o750)).unwrap();
        symlink("../..//x/", root.join("link")).unwrap();
        symlink(&long, root.join("longlink")).unwrap();
        rustix::fs::mkfifoat(rustix::fs::CWD, root.join("fifo"), Mode::RWXU).unwrap();
        let entries = packed(&beneath(dir.path(), "root")).unwrap();
        assert_eq!(entries.len(), 8);
        assert_eq!(entries[&b"root/"[..]].0, EntryType::Directory);
        assert_eq!(entries[&b"root/run"[..]], (EntryType::Regular, 0o750, vec![7; 100_000]));
        assert_eq!(entries[&b"root/\xff\xfe"[..]].2, b"bytes");
        assert_eq!(entries[&b"root/link"[..]].2, b"../..//x/");
        assert_eq!(entries[&b"root/longlink"[..]].2, long.as_bytes());
        assert_eq!(entries[format!("root/{long}/{long}/deep").as_bytes()].2, b"deep");
    }

    #[test]
    fn a_file_is_one_entry_and_anything_else_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("f"), "x").unwrap();
        rustix::fs::mkfifoat(rustix::fs::CWD, dir.path().join("fifo"), Mode::RWXU).unwrap();
        symlink("/etc", dir.path().join("out")).unwrap();
        assert_eq!(packed(&at(dir.path().join("f"))).unwrap().into_keys().collect::<Vec<_>>(), [b"f"]);
        assert_eq!(packed(&beneath(dir.path(), "fifo")).unwrap_err().kind, FileErrorKind::Invalid);
        assert_eq!(packed(&beneath(dir.path(), "gone")).unwrap_err().kind, FileErrorKind::NotFound);
        assert_eq!(packed(&beneath(dir.path(), "out")).unwrap_err().kind, FileErrorKind::Permission);
    }

    #[test]
    fn a_file_that_shrinks_or_grows_keeps_the_size_that_was_announced() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("f"), "12345").unwrap();
        for (size, expected) in [(8, &b"12345\0\0\0"[..]), (3, b"123")] {
            let mut io = FakeIo::default();
            let mut packer = Packer { io: &mut io, out: vec![0; 100], filled: 0 };
            packer.content(&File::open(dir.path().join("f")).unwrap().into(), size).unwrap();
            packer.flush().unwrap();
            let sent = io.sent.concat();
            assert_eq!((&sent[..size as usize], sent.len()), (expected, BLOCK_BYTES));
        }
    }

    #[test]
    fn entries_are_whole_wherever_a_frame_ends() {
        let dir = tempfile::tempdir().unwrap();
        let sizes =
            [0, 1, 511, 512, 513, MAX_PAYLOAD_BYTES - 512, MAX_PAYLOAD_BYTES, 3 * MAX_PAYLOAD_BYTES + 7];
        for size in sizes {
            let content: Vec<u8> = (0..size).map(|index| (index % 251) as u8).collect();
            std::fs::write(dir.path().join(format!("f{size}")), content).unwrap();
        }
        let entries = packed(&at(dir.path())).unwrap();
        for size in sizes {
            let (_, (_, _, content)) =
                entries.iter().find(|(name, _)| name.ends_with(format!("/f{size}").as_bytes())).unwrap();
            assert!(
                content.len() == size
                    && content.iter().enumerate().all(|(at, byte)| *byte == (at % 251) as u8)
            );
        }
    }

    #[test]
    fn packing_ends_when_nobody_waits() {
        let dir = tempfile::tempdir().unwrap();
        File::create(dir.path().join("sparse")).unwrap().set_len(100 << 30).unwrap();
        let mut io = FakeIo { stop_after_sends: Some(2), ..FakeIo::default() };
        assert_eq!(tar_out(&at(dir.path()), &mut io).unwrap_err().kind, FileErrorKind::Cancelled);
    }
}
