//! Preparation of the files of a sandbox that is woken, before its file system is mounted again.
//! The workload has left them in any state. Each mount of the plan needs a real directory or file
//! as its target, and no symbolic link on the way, which would lead the mount elsewhere. Nothing is
//! lost: obstacles are moved aside.

use std::ffi::OsStr;
use std::fs;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, FileType, Gid, Mode, OFlags, RenameFlags, Uid};
use rustix::io::Errno;

use crate::directory::Layout;
use crate::plan::{IdMap, Plan, RANGE_LEN};
use crate::setup::mount_targets;
use crate::state::make_child;

/// The suffix of obstacles that were moved aside; a number follows.
const ASIDE: &str = ".before-wake";

impl Layout<'_> {
    /// Prepares the directory of a sandbox that is woken. No process of it runs.
    pub(crate) fn renew(&self, plan: &Plan) -> io::Result<()> {
        for socket in [crate::record::SOCKET, crate::egress::SOCKET] {
            match fs::remove_file(self.directory.join(socket)) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
                _ => {}
            }
        }
        self.close()?;
        // The kernel's own: with what a file copied halfway left behind, and the mark that a `volatile` overlay was here.
        let work = self.files.join("work");
        eyot_image::remove_tree(&work)?;
        make_child(&work, 0o755)?;
        self.give(&work, 0)?;
        self.renew_copies()?;
        let upper = self.files.join("upper");
        let mode = fs::symlink_metadata(&upper)?.mode() & 0o7777;
        // Whoever is inside may have closed its root, to its owner too.
        let is_closed = mode & 0o700 != 0o700;
        if is_closed {
            fs::set_permissions(&upper, fs::Permissions::from_mode(mode | 0o700))?;
        }
        let opened = rustix::fs::open(&upper, DIRECTORY, Mode::empty())?;
        mount_targets(plan)?.iter().try_for_each(|(path, is_dir)| self.restore(&opened, path, *is_dir))?;
        if is_closed { fs::set_permissions(&upper, fs::Permissions::from_mode(mode)) } else { Ok(()) }
    }

    /// Makes sure that a mount's target is a real directory or file. `path` is relative, without
    /// `..`.
    fn restore(&self, upper: &OwnedFd, path: &Path, is_dir: bool) -> io::Result<()> {
        if self.is_of_skeleton(upper, path, is_dir)? {
            return Ok(());
        }
        let mut at = upper.try_clone()?;
        let mut names = path.iter().peekable();
        let mut below = PathBuf::new();
        while let Some(name) = names.next() {
            let wants_dir = is_dir || names.peek().is_some();
            below.push(name);
            if ensure(&at, name, wants_dir)? {
                self.dress(&at, name, &below)?;
            }
            if names.peek().is_some() {
                at = rustix::fs::openat(&at, name, DIRECTORY, Mode::empty())?;
            }
        }
        Ok(())
    }

    /// Gives what was just made the owner and the permission bits of the directory that it hides in the layers, or the inner
    /// root's.
    fn dress(&self, at: &OwnedFd, name: &OsStr, below: &Path) -> io::Result<()> {
        let hidden =
            if self.image.lower.snapshots.is_empty() { None } else { self.image.directory(below)? };
        if let IdMap::Range(range) = self.map {
            let of = |id: u32| range.host_id(if id < RANGE_LEN { id } else { 0 });
            let (uid, gid) = hidden.map_or((0, 0), |hidden| (hidden.uid, hidden.gid));
            let (uid, gid) = (Uid::from_raw(of(uid)), Gid::from_raw(of(gid)));
            rustix::fs::chownat(at, name, Some(uid), Some(gid), AtFlags::SYMLINK_NOFOLLOW)?;
        }
        if let Some(hidden) = hidden {
            let made = rustix::fs::openat(
                at,
                name,
                OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC,
                Mode::empty(),
            )?;
            rustix::fs::fchmod(&made, Mode::from_raw_mode(hidden.mode))?;
        }
        Ok(())
    }

    /// Tells whether a target comes from the skeleton alone: the sandbox has nothing over any part
    /// of its path.
    fn is_of_skeleton(&self, upper: &OwnedFd, path: &Path, is_dir: bool) -> io::Result<bool> {
        let Some(first) = path.iter().next().filter(|_| self.image.is_skeleton()) else { return Ok(false) };
        match rustix::fs::statat(upper, first, AtFlags::SYMLINK_NOFOLLOW) {
            Err(Errno::NOENT) => {}
            other => return other.map(|_| false).map_err(io::Error::from),
        }
        let found = fs::symlink_metadata(Path::new(&self.image.lower.folder).join(path));
        Ok(found.is_ok_and(|found| !found.is_symlink() && found.is_dir() == is_dir))
    }
}

const DIRECTORY: OFlags =
    OFlags::PATH.union(OFlags::DIRECTORY).union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);

/// Makes sure that `name` is a directory, or a regular file, and no link. Returns whether it was
/// made now.
fn ensure(at: &OwnedFd, name: &OsStr, wants_dir: bool) -> io::Result<bool> {
    loop {
        let found = match with_access(at, || rustix::fs::statat(at, name, AtFlags::SYMLINK_NOFOLLOW)) {
            Err(Errno::NOENT) => {
                with_access(at, || make(at, name, wants_dir))?;
                return Ok(true);
            }
            other => FileType::from_raw_mode(other?.st_mode),
        };
        match found {
            FileType::Directory if wants_dir => return Ok(false),
            FileType::RegularFile if !wants_dir => return Ok(false),
            // What hides something of the image that was removed.
            FileType::CharacterDevice => {
                with_access(at, || rustix::fs::unlinkat(at, name, AtFlags::empty()))?;
            }
            _ => move_aside(at, name)?,
        }
    }
}

fn make(at: &OwnedFd, name: &OsStr, dir: bool) -> Result<(), Errno> {
    if dir {
        rustix::fs::mkdirat(at, name, Mode::from_raw_mode(0o755))?;
        return rustix::fs::chmodat(at, name, Mode::from_raw_mode(0o755), AtFlags::empty());
    }
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    rustix::fs::openat(at, name, flags, Mode::from_raw_mode(0o644)).map(drop)
}

fn move_aside(at: &OwnedFd, name: &OsStr) -> io::Result<()> {
    for number in 1_u32.. {
        let mut aside = name.to_owned();
        aside.push(format!("{ASIDE}-{number}"));
        match with_access(at, || rustix::fs::renameat_with(at, name, at, &aside, RenameFlags::NOREPLACE)) {
            Err(Errno::EXIST) => {}
            other => return other.map_err(io::Error::from),
        }
    }
    Err(io::ErrorKind::AlreadyExists.into())
}

/// Retries work after giving the directory's owner its permissions back: the workload of an
/// ordinary user's sandbox may have taken them away.
fn with_access<T>(directory: &OwnedFd, work: impl Fn() -> Result<T, Errno>) -> Result<T, Errno> {
    match work() {
        Err(Errno::ACCESS) => {
            let mode = rustix::fs::fstat(directory)?.st_mode | 0o700;
            let itself = format!("/proc/self/fd/{}", directory.as_raw_fd());
            rustix::fs::chmod(itself, Mode::from_raw_mode(mode & 0o7777))?;
            work()
        }
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::{PermissionsExt, symlink};

    fn folder() -> (tempfile::TempDir, OwnedFd) {
        let folder = tempfile::tempdir().unwrap();
        let open = rustix::fs::open(folder.path(), DIRECTORY, Mode::empty()).unwrap();
        (folder, open)
    }

    #[test]
    fn what_is_in_the_way_of_a_mount_is_moved_aside_and_never_followed() {
        let (folder, at) = folder();
        let elsewhere = tempfile::tempdir().unwrap();
        for (name, wants_dir) in [("a", true), ("a", true), ("b", false)] {
            symlink(elsewhere.path(), folder.path().join(name)).unwrap_or_default();
            ensure(&at, name.as_ref(), wants_dir).unwrap();
            let found = fs::symlink_metadata(folder.path().join(name)).unwrap();
            assert!(found.is_dir() == wants_dir && !found.is_symlink());
        }
        assert!(fs::symlink_metadata(folder.path().join("a.before-wake-1")).unwrap().is_symlink());
        assert_eq!(fs::read_dir(elsewhere.path()).unwrap().count(), 0);
    }

    #[test]
    fn what_is_as_it_must_be_stays_as_it_is() {
        let (folder, at) = folder();
        fs::create_dir(folder.path().join("d")).unwrap();
        fs::write(folder.path().join("d/kept"), "x").unwrap();
        fs::write(folder.path().join("f"), "x").unwrap();
        assert!(!ensure(&at, "d".as_ref(), true).unwrap());
        assert!(!ensure(&at, "f".as_ref(), false).unwrap());
        assert_eq!(fs::read(folder.path().join("d/kept")).unwrap(), b"x");
        assert!(ensure(&at, "new".as_ref(), true).unwrap());
        assert_eq!(fs::metadata(folder.path().join("new")).unwrap().permissions().mode() & 0o777, 0o755);
    }
}
