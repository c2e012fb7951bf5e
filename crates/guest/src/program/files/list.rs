//! Listing a directory: in its own order, sent in pieces that are each a whole message. Callers
//! sort it.

use std::ffi::CString;

use eyot_archive::entries;
use rustix::fd::{AsFd, BorrowedFd};
use rustix::fs::{AtFlags, FileType};
use rustix::io::Errno;

use super::failure::{FileError, FileErrorKind};
use super::locate::{Target, file_type};
use super::{regular, stat};
use crate::program::call_io::CallIo;
use crate::protocol::{Event, FileEntry, Location, Reply, encode};

/// The most names in one listing.
pub const MAX_ENTRIES: usize = 1_000_000;
/// The largest encoded piece.
const MAX_PIECE_BYTES: usize = 60_000;
/// More than what an entry's encoding takes besides its name.
const ENTRY_OVERHEAD_BYTES: usize = 24;

/// One name in a directory, as the directory itself tells it.
pub struct ListedName {
    /// The name.
    pub name: CString,
    /// The type; `Unknown` if the file system does not tell.
    pub kind: FileType,
}

/// Sends a directory's entries. Entries that vanish meanwhile are left out.
pub fn list(location: &Location, io: &mut dyn CallIo) -> Result<Reply, FileError> {
    let directory = Target::new(location)?.open_directory()?;
    let names = names(directory.as_fd(), MAX_ENTRIES, io)?;
    io.event(Event::Opened(None))?;
    let mut piece = Vec::new();
    let mut piece_bytes = 0;
    for named in names {
        let Some(entry) = entry(directory.as_fd(), named)? else {
            continue;
        };
        let bytes = entry.name.len() + ENTRY_OVERHEAD_BYTES;
        if piece_bytes + bytes > MAX_PIECE_BYTES {
            io.send(&encode(&std::mem::take(&mut piece)))?;
            piece_bytes = 0;
        }
        piece_bytes += bytes;
        piece.push(entry);
    }
    if !piece.is_empty() {
        io.send(&encode(&piece))?;
    }
    Ok(Reply::Done)
}

/// Every name in a directory but `.` and `..`, in the directory's order; more than `most` are
/// `too_large`.
pub fn names(directory: BorrowedFd<'_>, most: usize, io: &dyn CallIo) -> Result<Vec<ListedName>, FileError> {
    let mut names = Vec::new();
    for entry in entries(directory)? {
        let entry = entry?;
        if names.len() == most {
            return Err(FileError::new(FileErrorKind::TooLarge, format!("has more than {most} entries")));
        }
        if names.len() % 1024 == 0 && io.stopped() {
            return Err(crate::program::call_io::Stopped.into());
        }
        names.push(ListedName { name: entry.file_name().to_owned(), kind: entry.file_type() });
    }
    Ok(names)
}

fn entry(directory: BorrowedFd<'_>, named: ListedName) -> Result<Option<FileEntry>, FileError> {
    match rustix::fs::statat(directory, &named.name, AtFlags::SYMLINK_NOFOLLOW) {
        Ok(found) => Ok(Some(FileEntry {
            name: named.name.into_bytes(),
            kind: stat::kind(file_type(&found)),
            size: regular::size(&found),
        })),
        Err(Errno::NOENT) => Ok(None),
        // A directory that may be read but not searched tells names and types, no more.
        Err(Errno::ACCESS) => {
            Ok(Some(FileEntry { name: named.name.into_bytes(), kind: stat::kind(named.kind), size: 0 }))
        }
        Err(errno) => Err(errno.into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::program::files::fake_io::{FakeIo, at, beneath};
    use crate::protocol::{FileKind, decode};
    use std::ffi::OsStr;
    use std::os::unix::ffi::OsStrExt;
    use std::os::unix::fs::symlink;

    fn entries(location: &Location) -> Vec<FileEntry> {
        let mut found = in_its_order(location);
        found.sort_unstable_by(|a, b| a.name.cmp(&b.name));
        found
    }

    fn in_its_order(location: &Location) -> Vec<FileEntry> {
        let mut io = FakeIo::default();
        list(location, &mut io).unwrap();
        assert_eq!(io.events, [Event::Opened(None)]);
        assert!(io.sent.iter().all(|piece| piece.len() <= MAX_PIECE_BYTES));
        io.sent.iter().flat_map(|piece| decode::<Vec<FileEntry>>(piece).unwrap()).collect()
    }

    #[test]
    fn f3_every_entry_comes_once_whatever_its_name_is() {
        let dir = tempfile::tempdir().unwrap();
        for name in
            [&b"b"[..], b"B", b"\xff\xfe", b"new\nline 'quote\"", "é".as_bytes(), ".hidden".as_bytes()]
        {
            std::fs::write(dir.path().join(OsStr::from_bytes(name)), name).unwrap();
        }
        std::fs::create_dir(dir.path().join("dir")).unwrap();
        symlink("nowhere", dir.path().join("link")).unwrap();
        let found = entries(&beneath(dir.path(), ""));
        let names: Vec<&[u8]> = found.iter().map(|entry| &entry.name[..]).collect();
        let expected: [&[u8]; 8] =
            [b".hidden", b"B", b"b", b"dir", b"link", b"new\nline 'quote\"", "é".as_bytes(), b"\xff\xfe"];
        assert_eq!(names, expected);
        assert_eq!((found[3].kind, found[4].kind), (FileKind::Directory, FileKind::Symlink));
        assert_eq!((found[0].kind, found[0].size), (FileKind::File, 7));
    }

    #[test]
    fn a_large_directory_comes_in_several_pieces() {
        let dir = tempfile::tempdir().unwrap();
        for number in 0..1000 {
            std::fs::write(dir.path().join(format!("{number:0>200}")), "").unwrap();
        }
        let found = entries(&at(dir.path()));
        assert!(found.len() == 1000 && found.is_sorted_by(|a, b| a.name < b.name));
        let shell = std::process::Command::new("ls").arg("-U").arg(dir.path()).output().unwrap();
        let told: Vec<Vec<u8>> = in_its_order(&at(dir.path())).into_iter().map(|entry| entry.name).collect();
        assert_eq!(told.join(&b'\n'), shell.stdout.trim_ascii_end());
    }

    #[test]
    fn what_is_no_directory_or_has_too_many_names_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("a"), "").unwrap();
        std::fs::write(dir.path().join("b"), "").unwrap();
        let problem = list(&at(dir.path().join("a")), &mut FakeIo::default()).unwrap_err();
        assert_eq!(problem.kind, FileErrorKind::NotDirectory);
        let opened = Target::new(&at(dir.path())).unwrap().open_directory().unwrap();
        assert_eq!(names(opened.as_fd(), 1, &FakeIo::default()).err().unwrap().kind, FileErrorKind::TooLarge);
    }
}
