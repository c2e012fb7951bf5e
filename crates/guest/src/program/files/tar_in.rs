//! Unpacking a tar stream below a directory. Every directory on the way to an entry is opened by
//! the kernel without following any link, so that neither the archive's own links nor ones that
//! were there lead anywhere; an entry replaces what has its name and never writes through it. What
//! fails midway leaves the entries that were complete.

use std::cell::Cell;
use std::fmt;
use std::io::{self, Read};
use std::rc::Rc;

use rustix::fd::OwnedFd;
use rustix::fs::{AtFlags, FileType, Mode, OFlags, ResolveFlags, Timespec, Timestamps};
use rustix::io::Errno;
use tar::{Archive, Entry};

use super::failure::{FileError, FileErrorKind};
use super::locate::{Name, Target, file_type, open_beneath};
use super::write::write_all;
use crate::program::call_io::{CallIo, Stopped};
use crate::protocol::{Location, Reply};
use crate::tar_entry::{TarAction, TarPlan, plan};

/// The most bytes between one entry's content and the next one's: headers, long names, extensions.
const MAX_HEADER_BYTES: u64 = 1 << 20;
/// The most bytes of directories' paths, which are kept until the end.
const MAX_DIRECTORY_BYTES: usize = 64 << 20;
const COPY_BYTES: usize = 64 * 1024;

/// Unpacks the archive of the main channel. Answers with the number of entries made.
///
/// # Errors
/// `invalid` names the refused entry (see [`plan`]) or the fault of the stream. `too_large` for
/// more than `max_bytes` of content or `max_entries` entries. `unsupported` without `openat2`.
pub fn tar_in(
    directory: &Location,
    max_bytes: u64,
    max_entries: u64,
    io: &mut dyn CallIo,
) -> Result<Reply, FileError> {
    let root = Target::new(directory)?.open(OFlags::PATH | OFlags::DIRECTORY)?;
    let mut unpacking = Unpacker {
        root,
        confined: directory.beneath.is_some(),
        max_bytes,
        max_entries,
        bytes: 0,
        entries: 0,
        directories: Vec::new(),
        kept: 0,
        piece: vec![0; COPY_BYTES],
    };
    let allowance = Rc::new(Cell::new(MAX_HEADER_BYTES));
    let input = Input { io, piece: Vec::new(), start: 0, allowance: Rc::clone(&allowance) };
    let mut archive = Archive::new(input);
    unpacking.unpack_all(&mut archive, &allowance)?;
    unpacking.dress_directories()?;
    // The sender may go on after the archive's end mark, because blocks are padded.
    let input = archive.into_inner();
    while input.io.receive()?.is_some() {}
    Ok(Reply::Size(unpacking.entries))
}

struct Unpacker {
    root: OwnedFd,
    /// No symbolic link may be made that leads out of `root`.
    confined: bool,
    max_bytes: u64,
    max_entries: u64,
    bytes: u64,
    entries: u64,
    /// Path, mode and time of every directory: set at the end, since what is made inside needs and
    /// changes them.
    directories: Vec<(Vec<u8>, u32, i64)>,
    kept: usize,
    /// The buffer through which files are copied.
    piece: Vec<u8>,
}

impl Unpacker {
    fn unpack_all(
        &mut self,
        archive: &mut Archive<Input<'_>>,
        allowance: &Cell<u64>,
    ) -> Result<(), FileError> {
        let mut entries = archive.entries().map_err(read_error)?;
        loop {
            allowance.set(MAX_HEADER_BYTES);
            let Some(entry) = entries.next() else {
                return Ok(());
            };
            let mut entry = entry.map_err(read_error)?;
            let plan = plan(&mut entry, self.confined)?;
            allowance.set(u64::MAX);
            self.unpack_entry(&plan, &mut entry).map_err(|problem| match problem.kind {
                FileErrorKind::Cancelled => problem,
                _ => problem.at(&plan.path),
            })?;
            io::copy(&mut entry, &mut io::sink()).map_err(read_error)?;
        }
    }

    fn unpack_entry<R: Read>(&mut self, plan: &TarPlan, entry: &mut Entry<'_, R>) -> Result<(), FileError> {
        if plan.make == TarAction::Nothing || plan.path.is_empty() {
            return Ok(());
        }
        self.entries += 1;
        if self.entries > self.max_entries {
            return Err(FileError::new(
                FileErrorKind::TooLarge,
                format!("more than the limit of {} entries", self.max_entries),
            ));
        }
        let place = self.place(&plan.path)?;
        match &plan.make {
            TarAction::File => self.file(&place, plan, entry),
            TarAction::Directory => self.directory(&place, plan),
            TarAction::Symlink(target) => {
                clear(&place)?;
                Ok(rustix::fs::symlinkat(&target[..], &place.parent, &place.name)?)
            }
            TarAction::HardLink(source) => self.hard_link(&place, plan, source),
            TarAction::Nothing => Ok(()),
        }
    }

    fn file<R: Read>(
        &mut self,
        place: &Name,
        plan: &TarPlan,
        entry: &mut Entry<'_, R>,
    ) -> Result<(), FileError> {
        self.bytes = self.bytes.saturating_add(entry.size());
        if self.bytes > self.max_bytes {
            let reason = format!("more than the limit of {} bytes in all", self.max_bytes);
            return Err(FileError::new(FileErrorKind::TooLarge, reason));
        }
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL;
        let file = match place.open(flags, Mode::RUSR | Mode::WUSR) {
            Err(Errno::EXIST) => {
                clear(place)?;
                place.open(flags, Mode::RUSR | Mode::WUSR)?
            }
            file => file?,
        };
        let filled =
            fill(&file, entry, &mut self.piece).and_then(|()| Ok(dress(&file, plan.mode, plan.modified)?));
        if filled.is_err() {
            // Half a file is worse than none; the first failure is the one to tell.
            rustix::fs::unlinkat(&place.parent, &place.name, AtFlags::empty()).unwrap_or_default();
        }
        filled
    }

    fn directory(&mut self, place: &Name, plan: &TarPlan) -> Result<(), FileError> {
        self.kept += plan.path.len();
        if self.kept > MAX_DIRECTORY_BYTES {
            return Err(FileError::new(FileErrorKind::TooLarge, "too many directories in one archive"));
        }
        let is_there = place.stat()?.is_some_and(|stat| file_type(&stat) == FileType::Directory);
        if !is_there {
            clear(place)?;
            rustix::fs::mkdirat(&place.parent, &place.name, Mode::RWXU)?;
        }
        self.directories.push((plan.path.clone(), plan.mode, plan.modified));
        Ok(())
    }

    fn hard_link(&self, place: &Name, plan: &TarPlan, source: &[u8]) -> Result<(), FileError> {
        if source == plan.path {
            return Ok(());
        }
        let source = self.existing(source).map_err(|problem| problem.at(source))?;
        let is_file = source.stat()?.is_some_and(|stat| file_type(&stat) == FileType::RegularFile);
        if !is_file {
            return Err(FileError::invalid("is a hard link to what is no regular file in the directory"));
        }
        clear(place)?;
        let flags = AtFlags::empty();
        Ok(rustix::fs::linkat(&source.parent, &source.name, &place.parent, &place.name, flags)?)
    }

    /// The name at a path, its directories made where they are missing.
    fn place(&self, path: &[u8]) -> Result<Name, FileError> {
        match self.existing(path) {
            Err(problem) if problem.kind == FileErrorKind::NotFound => self.make_parents(path),
            place => place,
        }
    }

    fn existing(&self, path: &[u8]) -> Result<Name, FileError> {
        let (parent, name) = match path.iter().rposition(|byte| *byte == b'/') {
            Some(index) => (&path[..index], &path[index + 1..]),
            None => (&b"."[..], path),
        };
        Ok(Name { parent: open_inside(&self.root, parent)?, name: name.to_vec() })
    }

    fn make_parents(&self, path: &[u8]) -> Result<Name, FileError> {
        let mut segments: Vec<&[u8]> = path.split(|byte| *byte == b'/').collect();
        let name = segments.pop().unwrap_or_default().to_vec();
        let mut parent = open_inside(&self.root, b".")?;
        for segment in segments {
            match rustix::fs::mkdirat(&parent, segment, Mode::from_raw_mode(0o755)) {
                Ok(()) | Err(Errno::EXIST) => parent = open_inside(&parent, segment)?,
                Err(errno) => return Err(errno.into()),
            }
        }
        Ok(Name { parent, name })
    }

    /// Sets the attributes of the directories. A directory that was replaced later in the archive
    /// is skipped, and one that was there before and belongs to another user stays as it was.
    fn dress_directories(&mut self) -> Result<(), FileError> {
        while let Some((path, mode, modified)) = self.directories.pop() {
            let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW;
            let directory = match open_beneath(&self.root, &path, flags, ResolveFlags::NO_SYMLINKS) {
                Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP | Errno::ACCESS) => continue,
                directory => directory.map_err(|errno| FileError::from(errno).at(&path))?,
            };
            match dress(&directory, mode, modified) {
                Ok(()) | Err(Errno::PERM) => {}
                Err(errno) => return Err(FileError::from(errno).at(&path)),
            }
        }
        Ok(())
    }
}

/// Opens a directory below `root`, through no link at all.
fn open_inside(root: &OwnedFd, path: &[u8]) -> Result<OwnedFd, FileError> {
    // Without O_NOFOLLOW: with it, a link at the end would only be "not a directory".
    let flags = OFlags::PATH | OFlags::DIRECTORY;
    open_beneath(root, path, flags, ResolveFlags::NO_SYMLINKS).map_err(|errno| match errno {
        Errno::LOOP => FileError::invalid("its path leads through a symbolic link"),
        other => other.into(),
    })
}

/// Takes away what has the name. A directory must be empty.
fn clear(place: &Name) -> Result<(), FileError> {
    match rustix::fs::unlinkat(&place.parent, &place.name, AtFlags::empty()) {
        Ok(()) | Err(Errno::NOENT) => Ok(()),
        Err(Errno::ISDIR) => match rustix::fs::unlinkat(&place.parent, &place.name, AtFlags::REMOVEDIR) {
            Err(Errno::NOTEMPTY | Errno::EXIST) => {
                Err(FileError::new(FileErrorKind::IsDirectory, "a directory that is not empty is in the way"))
            }
            result => Ok(result?),
        },
        Err(errno) => Err(errno.into()),
    }
}

fn fill<R: Read>(file: &OwnedFd, entry: &mut Entry<'_, R>, piece: &mut [u8]) -> Result<(), FileError> {
    let mut left = entry.size();
    while left > 0 {
        let count = match entry.read(piece).map_err(read_error)? {
            0 => return Err(read_error(io::ErrorKind::UnexpectedEof.into())),
            count => count,
        };
        write_all(file, &piece[..count])?;
        left = left.saturating_sub(count as u64);
    }
    Ok(())
}

fn dress(file: &OwnedFd, mode: u32, modified: i64) -> Result<(), Errno> {
    rustix::fs::fchmod(file, Mode::from_raw_mode(mode))?;
    let time = Timespec { tv_sec: modified, tv_nsec: 0 };
    rustix::fs::futimens(file, &Timestamps { last_access: time, last_modification: time })
}

/// The main channel as a reader that gives so many bytes and then refuses, for what would be kept
/// in memory.
struct Input<'i> {
    io: &'i mut dyn CallIo,
    piece: Vec<u8>,
    start: usize,
    allowance: Rc<Cell<u64>>,
}

impl Read for Input<'_> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        while self.start == self.piece.len() {
            match self.io.receive() {
                Ok(Some(piece)) => (self.piece, self.start) = (piece, 0),
                Ok(None) => return Ok(0),
                Err(Stopped) => return Err(io::Error::other(Halt::Stopped)),
            }
        }
        let allowed = usize::try_from(self.allowance.get()).unwrap_or(usize::MAX);
        if allowed == 0 {
            return Err(io::Error::other(Halt::Headers));
        }
        let rest = &self.piece[self.start..];
        let count = rest.len().min(into.len()).min(allowed);
        into[..count].copy_from_slice(&rest[..count]);
        self.start += count;
        self.allowance.set(self.allowance.get() - count as u64);
        Ok(count)
    }
}

/// Why the input ended early, on its way through the tar reader.
#[derive(Debug, Clone, Copy)]
enum Halt {
    Stopped,
    Headers,
}

impl fmt::Display for Halt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Stopped => "cancelled",
            Self::Headers => "an entry with more than a mebibyte of headers",
        })
    }
}

impl std::error::Error for Halt {}

/// Interprets an error of the tar reader. It may have wrapped an error of the input.
fn read_error(error: io::Error) -> FileError {
    let mut source: Option<&(dyn std::error::Error + 'static)> = Some(&error);
    while let Some(inner) = source {
        let inner = match inner.downcast_ref::<io::Error>().and_then(io::Error::get_ref) {
            Some(wrapped) => wrapped as &(dyn std::error::Error + 'static),
            None => inner,
        };
        if let Some(Halt::Stopped) = inner.downcast_ref() {
            return Stopped.into();
        }
        source = inner.source();
    }
    let text = error.to_string();
    FileError::invalid(match error.kind() {
        io::ErrorKind::UnexpectedEof => "the tar stream ends early",
        _ => {
            return FileError::invalid(format!(
                "the tar stream can't be read: {}",
                text.replace(['\n', '\0'], " ")
            ));
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::program::files::fake_io::{FakeIo, at, beneath};
    use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
    use std::path::Path;
    use tar::{EntryType, Header};

    /// A tar stream that is written without any of a library's checks.
    #[derive(Default)]
    struct Hostile(Vec<u8>);

    impl Hostile {
        fn entry(mut self, kind: u8, path: &str, link: &str, content: &[u8]) -> Self {
            let mut header = Header::new_gnu();
            header.set_entry_type(EntryType::new(kind));
            header.set_mode(0o7755);
            header.set_mtime(1_000_000);
            header.set_uid(0);
            header.set_gid(0);
            header.set_size(content.len() as u64);
            header.as_old_mut().name[..path.len()].copy_from_slice(path.as_bytes());
            header.as_old_mut().linkname[..link.len()].copy_from_slice(link.as_bytes());
            header.set_cksum();
            self.0.extend_from_slice(header.as_bytes());
            self.0.extend_from_slice(content);
            self.0.resize(self.0.len().next_multiple_of(512), 0);
            self
        }

        fn file(self, path: &str, content: &str) -> Self {
            self.entry(b'0', path, "", content.as_bytes())
        }

        fn pax(self, records: &[(&str, &str)]) -> Self {
            let mut content = String::new();
            for (key, value) in records {
                let rest = format!(" {key}={value}\n");
                let length = (rest.len()..).find(|n| n.to_string().len() + rest.len() == *n).unwrap();
                content += &format!("{length}{rest}");
            }
            self.entry(b'x', "pax", "", content.as_bytes())
        }

        fn into_bytes(mut self) -> Vec<u8> {
            self.0.resize(self.0.len() + 1024, 0);
            self.0
        }
    }

    fn unpack(dir: &Path, tar: Hostile) -> Result<Reply, FileError> {
        unpack_bytes(dir, &tar.into_bytes(), 1 << 20, 100)
    }

    fn unpack_bytes(dir: &Path, bytes: &[u8], max_bytes: u64, max_entries: u64) -> Result<Reply, FileError> {
        let mut io = FakeIo::receiving(bytes.chunks(777));
        let result = tar_in(&beneath(dir, ""), max_bytes, max_entries, &mut io);
        assert!(result.is_err() || io.inbox.is_empty(), "the input is read to its end");
        result
    }

    fn mode(path: &Path) -> u32 {
        path.symlink_metadata().unwrap().permissions().mode() & 0o7777
    }

    #[test]
    fn a_tree_is_unpacked_with_modes_times_and_links() {
        let dir = tempfile::tempdir().unwrap();
        let tar = Hostile::default()
            .entry(b'5', "./", "", b"")
            .entry(b'5', "d/", "", b"")
            .file("./d/f", "content")
            .file("made/parents/f", "x")
            .entry(b'2', "d/link", "../made", b"")
            .entry(b'1', "hard", "./d/f", b"");
        assert_eq!(unpack(dir.path(), tar), Ok(Reply::Size(5)));
        let file = dir.path().join("d/f");
        assert_eq!(std::fs::read(&file).unwrap(), b"content");
        assert_eq!((mode(&file), mode(&dir.path().join("d"))), (0o755, 0o755));
        assert_eq!(
            (file.metadata().unwrap().mtime(), dir.path().join("d").metadata().unwrap().mtime()),
            (1_000_000, 1_000_000)
        );
        assert_eq!(std::fs::read_link(dir.path().join("d/link")).unwrap(), Path::new("../made"));
        assert_eq!(dir.path().join("hard").metadata().unwrap().ino(), file.metadata().unwrap().ino());
    }

    #[test]
    fn f4_what_would_leave_the_directory_is_refused_and_named() {
        let pax_path = Hostile::default().pax(&[("path", "../evil")]).file("evil", "x");
        let pax_link = Hostile::default().pax(&[("linkpath", "/etc")]).entry(b'2', "evil", "ok", b"");
        let pax_nul = Hostile::default().pax(&[("path", "evil\0x")]).file("evil", "x");
        let long = Hostile::default().entry(b'L', "././@LongLink", "", b"/evil/long\0").file("evil", "x");
        let hostile = [
            Hostile::default().file("/evil", "x"),
            Hostile::default().file("a/../../evil", "x"),
            Hostile::default().entry(b'2', "evil", "/etc/passwd", b""),
            Hostile::default().entry(b'2', "evil", "../x", b""),
            Hostile::default().entry(b'1', "evil", "/etc/passwd", b""),
            Hostile::default().entry(b'1', "evil", "../x", b""),
            Hostile::default().entry(b'3', "evil", "", b""),
            Hostile::default().entry(b'4', "evil", "", b""),
            Hostile::default().entry(b'6', "evil", "", b""),
            Hostile::default().entry(b'Z', "evil", "", b""),
            Hostile::default().pax(&[("GNU.sparse.major", "1")]).file("evil", "x"),
            pax_path,
            pax_link,
            pax_nul,
            long,
        ];
        for tar in hostile {
            let dir = tempfile::tempdir().unwrap();
            let problem = unpack(dir.path(), tar).unwrap_err();
            assert!(problem.kind == FileErrorKind::Invalid && problem.reason.contains("evil"), "{problem:?}");
            assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0);
        }
    }

    #[test]
    fn f4_nothing_is_written_through_a_link_of_the_archive_or_one_that_was_there() {
        let (dir, outside) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        std::fs::write(outside.path().join("canary"), "old").unwrap();
        symlink(outside.path(), dir.path().join("there")).unwrap();
        let own = Hostile::default().entry(b'5', "d", "", b"").entry(b'2', "l", "d", b"").file("l/evil", "x");
        for tar in
            [own, Hostile::default().file("there/canary", "x"), Hostile::default().file("there/new/x", "x")]
        {
            let problem = unpack(dir.path(), tar).unwrap_err();
            assert!(
                problem.kind == FileErrorKind::Invalid && problem.reason.contains("symbolic link"),
                "{problem:?}"
            );
        }
        let hard = Hostile::default().entry(b'1', "mine", "there/canary", b"");
        assert_eq!(unpack(dir.path(), hard).unwrap_err().kind, FileErrorKind::Invalid);
        // The last segment is replaced, not followed.
        symlink(outside.path().join("canary"), dir.path().join("f")).unwrap();
        unpack(dir.path(), Hostile::default().file("f", "new").entry(b'5', "there", "", b"")).unwrap();
        assert!(!dir.path().join("f").is_symlink() && !dir.path().join("there").is_symlink());
        assert_eq!(std::fs::read(outside.path().join("canary")).unwrap(), b"old");
    }

    #[test]
    fn links_that_lead_out_are_made_where_nothing_confines_and_still_never_followed() {
        let (dir, outside) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let target = outside.path().to_str().unwrap();
        let links = || {
            Hostile::default()
                .entry(b'2', "python", "/usr/bin/python3", b"")
                .entry(b'2', "up", "../elsewhere", b"")
                .entry(b'2', "out", target, b"")
        };
        let go = |tar: Hostile| {
            let mut io = FakeIo::receiving([tar.into_bytes()]);
            tar_in(&at(dir.path()), 1 << 20, 100, &mut io)
        };
        assert_eq!(go(links()), Ok(Reply::Size(3)));
        assert_eq!(std::fs::read_link(dir.path().join("python")).unwrap(), Path::new("/usr/bin/python3"));
        assert_eq!(go(links().file("out/evil", "x")).unwrap_err().kind, FileErrorKind::Invalid);
        let hard = links().entry(b'1', "mine", "out/evil", b"");
        assert_eq!(go(hard).unwrap_err().kind, FileErrorKind::Invalid);
        assert_eq!(std::fs::read_dir(outside.path()).unwrap().count(), 0);
    }

    #[test]
    fn f4_set_id_bits_are_dropped_and_of_duplicates_the_last_wins() {
        let dir = tempfile::tempdir().unwrap();
        let tar = Hostile::default()
            .file("f", "first")
            .entry(b'1', "second-name", "f", b"")
            .file("f", "last")
            .entry(b'2', "s", "f", b"")
            .file("s", "no link")
            .entry(b'5', "e", "", b"")
            .file("e", "a file instead");
        unpack(dir.path(), tar).unwrap();
        assert_eq!(mode(&dir.path().join("f")), 0o755);
        for (name, content) in
            [("f", "last"), ("second-name", "first"), ("s", "no link"), ("e", "a file instead")]
        {
            assert_eq!(std::fs::read_to_string(dir.path().join(name)).unwrap(), content);
        }
        let onto = Hostile::default().file("d/x", "x").file("d", "x");
        assert_eq!(unpack(dir.path(), onto).unwrap_err().kind, FileErrorKind::IsDirectory);
    }

    #[test]
    fn f4_bombs_stop_at_the_limits() {
        let dir = tempfile::tempdir().unwrap();
        let many = (0..5).fold(Hostile::default(), |tar, n| tar.file(&format!("f{n}"), "12345")).into_bytes();
        assert_eq!(unpack_bytes(dir.path(), &many, 25, 5), Ok(Reply::Size(5)));
        assert_eq!(unpack_bytes(dir.path(), &many, 24, 5).unwrap_err().kind, FileErrorKind::TooLarge);
        assert_eq!(unpack_bytes(dir.path(), &many, 25, 4).unwrap_err().kind, FileErrorKind::TooLarge);
        let huge = Hostile::default().pax(&[("size", "999999999999999")]).file("f", "x");
        assert_eq!(unpack(dir.path(), huge).unwrap_err().kind, FileErrorKind::TooLarge);
        let headers = Hostile::default().entry(b'L', "x", "", &vec![b'a'; 3 << 20]).file("f", "x");
        let problem = unpack(dir.path(), headers).unwrap_err();
        assert!(problem.reason.contains("mebibyte of headers"), "{problem:?}");
    }

    #[test]
    fn a_stream_that_ends_early_or_is_no_tar_is_invalid_and_leaves_no_half_file() {
        let dir = tempfile::tempdir().unwrap();
        let whole = Hostile::default().file("f", &"x".repeat(2000)).into_bytes();
        for bytes in [&whole[..1000], &whole[..100], &b"rubbish".repeat(200)[..]] {
            assert_eq!(
                unpack_bytes(dir.path(), bytes, 1 << 20, 100).unwrap_err().kind,
                FileErrorKind::Invalid
            );
        }
        let mut io = FakeIo { cut_short: true, ..FakeIo::receiving([&whole[..1000]]) };
        let cancelled = tar_in(&beneath(dir.path(), ""), 1 << 20, 100, &mut io).unwrap_err();
        assert_eq!(cancelled.kind, FileErrorKind::Cancelled);
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0);
        assert_eq!(unpack_bytes(dir.path(), &[], 1, 1), Ok(Reply::Size(0)));
    }

    #[test]
    fn a_directory_that_forbids_writing_is_filled_before_it_does() {
        let dir = tempfile::tempdir().unwrap();
        let mut tar = tar::Builder::new(Vec::new());
        for (path, kind, mode) in [("d", EntryType::Directory, 0o555), ("d/f", EntryType::Regular, 0o400)] {
            let mut header = Header::new_gnu();
            header.set_entry_type(kind);
            header.set_mode(mode);
            header.set_size(0);
            tar.append_data(&mut header, path, &b""[..]).unwrap();
        }
        unpack_bytes(dir.path(), &tar.into_inner().unwrap(), 1, 9).unwrap();
        assert_eq!((mode(&dir.path().join("d")), mode(&dir.path().join("d/f"))), (0o555, 0o400));
    }

    #[test]
    fn what_was_packed_is_unpacked_alike() {
        let (from, to) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let (deep, name) = (["a-longer-name"; 20].join("/"), "n".repeat(255));
        std::fs::create_dir_all(from.path().join("t").join(&deep)).unwrap();
        std::fs::write(from.path().join("t").join(&deep).join(&name), vec![1; 70_000]).unwrap();
        symlink(format!("{deep}/{name}"), from.path().join("t/link")).unwrap();
        let mut packed = FakeIo::default();
        crate::program::files::tar_out::tar_out(&beneath(from.path(), "t"), &mut packed).unwrap();
        let reply = unpack_bytes(to.path(), &packed.sent.concat(), 1 << 20, 100);
        assert_eq!(reply, Ok(Reply::Size(23)));
        assert_eq!(std::fs::read(to.path().join("t/link")).unwrap(), vec![1; 70_000]);
    }

    #[test]
    fn the_directory_must_be_there() {
        let dir = tempfile::tempdir().unwrap();
        let problem = tar_in(&beneath(dir.path(), "gone"), 1, 1, &mut FakeIo::default()).unwrap_err();
        assert_eq!(problem.kind, FileErrorKind::NotFound);
    }
}
