//! A way down a tree by directory descriptors. Every directory is opened from the one above it, and
//! no link is followed, so nothing that is swapped in meanwhile leads elsewhere. Only the deepest
//! few stay open. A directory above them is opened again through `..` on the way back, and must then
//! be the same directory. So the depth of a tree has no limit.

use std::ffi::CStr;

use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;

/// The number of directories that stay open besides the first.
const OPEN_LEVELS: usize = 32;
const DIRECTORY: OFlags = OFlags::RDONLY
    .union(OFlags::DIRECTORY)
    .union(OFlags::NOFOLLOW)
    .union(OFlags::NONBLOCK)
    .union(OFlags::CLOEXEC);

/// The directories from the first one down to the current one.
#[derive(Debug)]
pub struct Descent {
    root: OwnedFd,
    below: Vec<EnteredDirectory>,
}

#[derive(Debug)]
struct EnteredDirectory {
    directory: Option<OwnedFd>,
    id: (u64, u64),
}

impl Descent {
    /// Begins in a directory that is open for reading.
    pub fn new(root: OwnedFd) -> Self {
        Self { root, below: Vec::new() }
    }

    /// Opens a directory so that a descent can begin in it.
    ///
    /// # Errors
    /// Those of the kernel; `NOTDIR` or `LOOP` for a link.
    pub fn open(parent: impl AsFd, name: &[u8]) -> Result<OwnedFd, Errno> {
        rustix::fs::openat(parent, name, DIRECTORY, Mode::empty())
    }

    /// The current directory.
    pub fn current(&self) -> BorrowedFd<'_> {
        self.below.last().and_then(|level| level.directory.as_ref()).unwrap_or(&self.root).as_fd()
    }

    /// Enters a directory of the current one.
    ///
    /// # Errors
    /// Those of the kernel; `NOTDIR` or `LOOP` for a link.
    pub fn enter(&mut self, name: &CStr) -> Result<(), Errno> {
        let directory = rustix::fs::openat(self.current(), name, DIRECTORY, Mode::empty())?;
        let id = identity(&directory)?;
        self.below.push(EnteredDirectory { directory: Some(directory), id });
        if let Some(level) = self.below.len().checked_sub(OPEN_LEVELS + 1).map(|index| &mut self.below[index])
        {
            level.directory = None;
        }
        Ok(())
    }

    /// Goes back up. Returns `false` if the directory above was moved away meanwhile and is lost, so
    /// that only going up further makes sense. The first directory is never lost.
    pub fn leave(&mut self) -> bool {
        let left = self.below.pop().and_then(|level| level.directory);
        let Some(above) = self.below.last_mut() else {
            return true;
        };
        if above.directory.is_none() {
            above.directory = left.and_then(|left| same_parent(&left, above.id));
        }
        above.directory.is_some()
    }
}

fn same_parent(directory: &OwnedFd, id: (u64, u64)) -> Option<OwnedFd> {
    let parent = rustix::fs::openat(directory, c"..", DIRECTORY, Mode::empty()).ok()?;
    (identity(&parent).ok()? == id).then_some(parent)
}

fn identity(directory: &OwnedFd) -> Result<(u64, u64), Errno> {
    let stat = rustix::fs::fstat(directory)?;
    Ok((stat.st_dev, stat.st_ino))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    fn begin(path: &std::path::Path) -> Descent {
        Descent::new(std::fs::File::open(path).unwrap().into())
    }

    #[test]
    fn a_link_is_not_entered() {
        let dir = tempfile::tempdir().unwrap();
        symlink("/etc", dir.path().join("link")).unwrap();
        assert!(begin(dir.path()).enter(c"link").is_err());
    }

    #[test]
    fn the_way_back_is_found_from_deeper_than_stays_open() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(dir.path().join(vec!["d"; 100].join("/"))).unwrap();
        let mut descent = begin(dir.path());
        (0..100).for_each(|_| descent.enter(c"d").unwrap());
        assert!((0..100).all(|_| descent.leave()));
        let here = rustix::fs::fstat(descent.current()).unwrap().st_ino;
        assert_eq!(here, std::os::unix::fs::MetadataExt::ino(&dir.path().metadata().unwrap()));
    }

    #[test]
    fn f1_a_directory_that_is_moved_away_meanwhile_does_not_lead_elsewhere() {
        let (dir, elsewhere) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        std::fs::create_dir_all(dir.path().join(vec!["d"; 40].join("/"))).unwrap();
        let mut descent = begin(dir.path());
        (0..40).for_each(|_| descent.enter(c"d").unwrap());
        // The 8th is closed by now; its child goes elsewhere.
        std::fs::rename(dir.path().join(["d"; 8].join("/")), elsewhere.path().join("d")).unwrap();
        let left = (0..40).take_while(|_| descent.leave()).count();
        assert_eq!(left, 32);
        (0..8).for_each(|_| {
            descent.leave();
        });
        assert!(descent.leave());
    }
}
