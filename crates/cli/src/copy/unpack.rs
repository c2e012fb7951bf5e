//! Writes a tree from a sandbox into a directory of the host. Every name is opened beneath its
//! parent, and no symbolic link is followed, whether it came with the tree or was there before, so
//! nothing is ever written outside. Existing files are replaced, and directories are merged.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{self, Read};
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use eyot::{Error, ErrorKind};
use rustix::fs::{
    AtFlags, FileType, Mode, OFlags, linkat, mkdirat, open, openat, statat, symlinkat, unlinkat,
};
use rustix::io::Errno;

use super::CopyResult;
use super::tree::{Kind, TreeEntry};
use crate::errors::Failure;

const DIRECTORY: OFlags =
    OFlags::PATH.union(OFlags::DIRECTORY).union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);
const NEW_FILE: OFlags =
    OFlags::WRONLY.union(OFlags::CREATE).union(OFlags::EXCL).union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);

/// Writes entries below a directory. If that was made for them, and they are not all written, it is
/// removed with those that were.
pub struct TreeUnpacker {
    root: OwnedFd,
    /// The directory, until everything is written, if it was not there before.
    incomplete: Option<PathBuf>,
    /// The directory of the previous entry, which is most often this one's too.
    last: Option<(Vec<OsString>, OwnedFd)>,
    copied: CopyResult,
}

impl TreeUnpacker {
    /// Writes below `root`, which is created if it is missing. It may be a symbolic link, since the
    /// user named it.
    pub fn new(root: &Path) -> Result<Self, Failure> {
        let make = |error| Failure::host(format!("make the directory `{}`", root.display()), error);
        let incomplete = match std::fs::create_dir(root) {
            Ok(()) => Some(root.to_owned()),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => None,
            Err(error) => return Err(make(error)),
        };
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let root = open(root, flags, Mode::empty()).map_err(|error| make(error.into()))?;
        Ok(Self { root, incomplete, last: None, copied: CopyResult::default() })
    }

    /// Writes one entry.
    pub fn write(&mut self, entry: &TreeEntry, content: &mut dyn Read) -> Result<(), Failure> {
        let Some((name, parents)) = entry.path.split_last() else {
            return root_is_directory(entry);
        };
        if let Some(left_out) = entry.left_out() {
            self.copied.skipped.push(left_out);
            return Ok(());
        }
        let written = match &entry.kind {
            Kind::Directory => self.make_directory(parents, name, entry.mode),
            Kind::File(_) => self.make_file(parents, name, entry.mode, content),
            Kind::Symlink(target) => self.make_symlink(parents, name, target),
            Kind::HardLink(target) => self.make_hard_link(parents, name, target),
            Kind::Special => Ok(()),
        };
        written.map_err(|error| Failure::host(format!("write `{}`", entry.path_text()), error))
    }

    /// Everything is written. Returns what that is.
    pub fn finish(mut self) -> CopyResult {
        self.incomplete = None;
        std::mem::take(&mut self.copied)
    }

    fn make_directory(&mut self, parents: &[OsString], name: &OsStr, mode: u32) -> io::Result<()> {
        let parent = self.directory(parents)?;
        // What is in it must be written, whatever the sandbox thinks of that.
        match mkdirat(parent, name, Mode::from_raw_mode(mode | 0o700)) {
            Ok(()) => Ok(()),
            Err(Errno::EXIST) => openat(parent, name, DIRECTORY, Mode::empty()).map(drop).map_err(not_a_link),
            Err(error) => Err(error.into()),
        }
    }

    fn make_file(
        &mut self,
        parents: &[OsString],
        name: &OsStr,
        mode: u32,
        content: &mut dyn Read,
    ) -> io::Result<()> {
        let parent = self.directory(parents)?;
        make_room(parent, name)?;
        let mut file = File::from(openat(parent, name, NEW_FILE, Mode::from_raw_mode(mode))?);
        self.copied.bytes += io::copy(content, &mut file)?;
        self.copied.files += 1;
        Ok(())
    }

    fn make_symlink(&mut self, parents: &[OsString], name: &OsStr, target: &OsStr) -> io::Result<()> {
        let parent = self.directory(parents)?;
        make_room(parent, name)?;
        symlinkat(target, parent, name)?;
        self.copied.files += 1;
        Ok(())
    }

    fn make_hard_link(&mut self, parents: &[OsString], name: &OsStr, target: &[OsString]) -> io::Result<()> {
        let Some((target_name, target_parents)) = target.split_last() else {
            return Err(io::ErrorKind::IsADirectory.into());
        };
        let from = self.directory(target_parents)?.try_clone()?;
        let to = self.directory(parents)?;
        if target == [parents, &[name.to_owned()]].concat() {
            return Ok(());
        }
        make_room(to, name)?;
        linkat(from, target_name, to, name, AtFlags::empty())?;
        self.copied.files += 1;
        Ok(())
    }

    /// Opens the directory of these names, and creates it where it is missing. Symbolic links are
    /// not followed.
    fn directory(&mut self, names: &[OsString]) -> io::Result<&OwnedFd> {
        if names.is_empty() {
            return Ok(&self.root);
        }
        if self.last.as_ref().is_none_or(|(last, _)| last != names) {
            let mut directory = self.root.try_clone()?;
            for name in names {
                directory = open_or_make(&directory, name)?;
            }
            self.last = Some((names.to_vec(), directory));
        }
        Ok(self.last.as_ref().map_or(&self.root, |(_, directory)| directory))
    }
}

impl Drop for TreeUnpacker {
    fn drop(&mut self) {
        if let Some(incomplete) = self.incomplete.take()
            && let Err(error) = eyot_archive::remove_tree(&incomplete)
        {
            tracing::warn!(%error, path = %incomplete.display(), "remove the part that was copied");
        }
    }
}

fn open_or_make(parent: &OwnedFd, name: &OsStr) -> io::Result<OwnedFd> {
    match openat(parent, name, DIRECTORY, Mode::empty()) {
        Err(Errno::NOENT) => {
            mkdirat(parent, name, Mode::from_raw_mode(0o777))?;
            openat(parent, name, DIRECTORY, Mode::empty()).map_err(not_a_link)
        }
        other => other.map_err(not_a_link),
    }
}

/// Turns the kernel's errors about a symbolic link in the place of a directory into "not a
/// directory".
fn not_a_link(error: Errno) -> io::Error {
    match error {
        Errno::LOOP | Errno::NOTDIR => io::ErrorKind::NotADirectory.into(),
        error => error.into(),
    }
}

/// Removes the file or the link that is in the way.
fn make_room(parent: &OwnedFd, name: &OsStr) -> io::Result<()> {
    match statat(parent, name, AtFlags::SYMLINK_NOFOLLOW) {
        Err(Errno::NOENT) => Ok(()),
        Err(error) => Err(error.into()),
        Ok(stat) if FileType::from_raw_mode(stat.st_mode) == FileType::Directory => {
            Err(io::ErrorKind::IsADirectory.into())
        }
        Ok(_) => Ok(unlinkat(parent, name, AtFlags::empty())?),
    }
}

fn root_is_directory(entry: &TreeEntry) -> Result<(), Failure> {
    match entry.kind {
        Kind::Directory => Ok(()),
        _ => Err(Error::new(ErrorKind::Conflict, "what was a directory is none any more").into()),
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::{PermissionsExt, symlink};

    use tempfile::TempDir;

    use super::*;

    fn entry(path: &str, kind: Kind, mode: u32) -> TreeEntry {
        TreeEntry {
            path: path.split('/').filter(|name| !name.is_empty()).map(OsString::from).collect(),
            kind,
            mode,
        }
    }

    fn file(path: &str, content: &[u8]) -> TreeEntry {
        entry(path, Kind::File(content.len() as u64), 0o644)
    }

    struct Place {
        outer: TempDir,
        unpacker: TreeUnpacker,
    }

    impl Place {
        fn new() -> Self {
            let outer = tempfile::tempdir().unwrap();
            fs::write(outer.path().join("canary"), "alive").unwrap();
            let unpacker = TreeUnpacker::new(&outer.path().join("dst")).unwrap();
            Self { outer, unpacker }
        }

        fn path(&self, path: &str) -> std::path::PathBuf {
            self.outer.path().join(path)
        }

        fn canary(&self) -> String {
            fs::read_to_string(self.path("canary")).unwrap()
        }
    }

    #[test]
    fn a_tree_is_written_with_its_bits_and_parents_that_were_not_named() {
        let mut place = Place::new();
        place.unpacker.write(&entry("", Kind::Directory, 0o755), &mut io::empty()).unwrap();
        place.unpacker.write(&file("a/b/c", b"hi"), &mut &b"hi"[..]).unwrap();
        place.unpacker.write(&entry("x", Kind::File(1), 0o700), &mut &b"x"[..]).unwrap();
        place.unpacker.write(&entry("l", Kind::Symlink("a/b/c".into()), 0o777), &mut io::empty()).unwrap();
        place.unpacker.write(&entry("h", Kind::HardLink(vec!["x".into()]), 0), &mut io::empty()).unwrap();
        place.unpacker.write(&entry("closed", Kind::Directory, 0o500), &mut io::empty()).unwrap();
        place.unpacker.write(&file("closed/in", b""), &mut io::empty()).unwrap();
        assert_eq!(fs::read_to_string(place.path("dst/l")).unwrap(), "hi");
        assert_eq!(fs::metadata(place.path("dst/x")).unwrap().permissions().mode() & 0o777, 0o700);
        assert_eq!(fs::read_to_string(place.path("dst/h")).unwrap(), "x");
        let copied = place.unpacker.finish();
        assert_eq!((copied.bytes, copied.files, copied.skipped.len()), (3, 5, 0));
    }

    #[test]
    fn f4_a_link_that_leads_out_is_left_out_and_named() {
        let mut place = Place::new();
        for target in ["/etc/passwd", "../canary", "a/../../canary"] {
            place.unpacker.write(&entry("l", Kind::Symlink(target.into()), 0o777), &mut io::empty()).unwrap();
        }
        assert!(!place.path("dst/l").exists() && !place.path("dst/l").is_symlink());
        assert_eq!(place.unpacker.finish().skipped.len(), 3);
    }

    #[test]
    fn f4_a_device_or_fifo_is_left_out_and_named() {
        let mut place = Place::new();
        place.unpacker.write(&entry("dev", Kind::Special, 0o666), &mut io::empty()).unwrap();
        assert!(!place.path("dst/dev").exists());
        assert_eq!(place.unpacker.finish().skipped, ["dev: neither a file, a directory nor a link"]);
    }

    #[test]
    fn f4_nothing_is_written_through_a_link_that_was_there_before() {
        let mut place = Place::new();
        symlink(place.outer.path(), place.path("dst/out")).unwrap();
        let refused = place.unpacker.write(&file("out/canary", b"dead"), &mut &b"dead"[..]);
        assert!(
            matches!(refused, Err(Failure::Error { error, .. }) if error.kind() == ErrorKind::NotDirectory)
        );
        let refused = place.unpacker.write(&entry("out", Kind::Directory, 0o755), &mut io::empty());
        assert!(refused.is_err());
        assert_eq!(place.canary(), "alive");
    }

    #[test]
    fn f4_a_file_replaces_a_link_and_not_its_target() {
        let mut place = Place::new();
        symlink(place.path("canary"), place.path("dst/f")).unwrap();
        place.unpacker.write(&file("f", b"new"), &mut &b"new"[..]).unwrap();
        assert_eq!(place.canary(), "alive");
        assert_eq!(fs::read_to_string(place.path("dst/f")).unwrap(), "new");
        assert!(!place.path("dst/f").is_symlink());
    }

    #[test]
    fn f4_a_link_that_came_with_the_tree_is_not_followed_either() {
        let mut place = Place::new();
        place.unpacker.write(&entry("d", Kind::Directory, 0o755), &mut io::empty()).unwrap();
        place.unpacker.write(&entry("l", Kind::Symlink("d".into()), 0o777), &mut io::empty()).unwrap();
        assert!(place.unpacker.write(&file("l/x", b"x"), &mut &b"x"[..]).is_err());
        let through = Kind::HardLink(vec!["l".into(), "x".into()]);
        assert!(place.unpacker.write(&entry("h", through, 0), &mut io::empty()).is_err());
    }

    #[test]
    fn a_file_does_not_replace_a_directory() {
        let mut place = Place::new();
        fs::create_dir(place.path("dst/d")).unwrap();
        let refused = place.unpacker.write(&file("d", b"x"), &mut &b"x"[..]);
        assert!(
            matches!(refused, Err(Failure::Error { error, .. }) if error.kind() == ErrorKind::IsDirectory)
        );
    }
}
