//! Walking a tree in the order of the paths' bytes, links not followed. The caller decides which
//! directories to enter. An entry that comes or goes meanwhile may be seen or not, and never leads
//! elsewhere.

use std::ffi::{CStr, CString};

use eyot_archive::Descent;
use rustix::fd::{BorrowedFd, OwnedFd};
use rustix::fs::{AtFlags, FileType};

use super::failure::{FileError, FileErrorKind};
use super::list::{self, ListedName};
use super::locate::file_type;
use crate::program::call_io::{CallIo, Stopped};

/// The most names that wait at once, over all the directories that are being walked.
const MAX_PENDING: usize = 2_000_000;
/// The longest path, far more than any call of the system takes.
const MAX_PATH_BYTES: usize = 1 << 20;

/// A walk below a directory.
pub struct Walk {
    descent: Descent,
    levels: Vec<Level>,
    path: Vec<u8>,
    name: CString,
    pending: usize,
}

struct Level {
    /// The names that are still to come, last first.
    names: Vec<ListedName>,
    /// The length of the directory's path, its slash included.
    prefix: usize,
}

impl Walk {
    /// A walk below a directory that is open for reading.
    pub fn new(root: OwnedFd, io: &dyn CallIo) -> Result<Self, FileError> {
        let descent = Descent::new(root);
        let (path, name) = (Vec::new(), CString::default());
        let mut walk = Self { descent, levels: Vec::new(), path, name, pending: 0 };
        walk.read_current(0, io)?;
        Ok(walk)
    }

    /// Goes on to the next name and returns its type. Names that have vanished are left out.
    pub fn next(&mut self, io: &dyn CallIo) -> Result<Option<FileType>, FileError> {
        loop {
            if io.stopped() {
                return Err(Stopped.into());
            }
            let Some(level) = self.levels.last_mut() else {
                return Ok(None);
            };
            let Some(named) = level.names.pop() else {
                self.leave();
                continue;
            };
            self.pending -= 1;
            self.path.truncate(level.prefix);
            self.path.extend_from_slice(named.name.to_bytes());
            self.name = named.name;
            return Ok(Some(named.kind));
        }
    }

    /// The path of what came last, relative to where the walk began.
    pub fn path(&self) -> &[u8] {
        &self.path
    }

    /// The name of what came last.
    pub fn name(&self) -> &CStr {
        &self.name
    }

    /// Returns the directory that holds the last name. After [`Walk::enter`] it is that directory
    /// itself.
    pub fn directory(&self) -> BorrowedFd<'_> {
        self.descent.current()
    }

    /// Returns the number of directories between the beginning and the last entry.
    pub fn depth(&self) -> usize {
        self.levels.len().saturating_sub(1)
    }

    /// Makes the walk go on inside the directory that came last.
    ///
    /// # Errors
    /// Of the directory: `not_found`, `not_directory` or `invalid` when it is not what it was,
    /// `permission`. The walk can go on beside it. `too_large` when there are too many names at
    /// once.
    pub fn enter(&mut self, io: &dyn CallIo) -> Result<(), FileError> {
        if self.path.len() > MAX_PATH_BYTES {
            return Err(FileError::too_large(MAX_PATH_BYTES, "bytes for a path"));
        }
        self.descent.enter(&self.name)?;
        let prefix = self.path.len() + 1;
        match self.read_current(prefix, io) {
            Ok(()) => self.path.push(b'/'),
            Err(problem) => {
                self.descent.leave();
                return Err(problem);
            }
        }
        Ok(())
    }

    fn read_current(&mut self, prefix: usize, io: &dyn CallIo) -> Result<(), FileError> {
        let mut names = list::names(self.descent.current(), list::MAX_ENTRIES, io)?;
        for named in names.iter_mut().filter(|named| named.kind == FileType::Unknown) {
            let stat = rustix::fs::statat(self.descent.current(), &named.name, AtFlags::SYMLINK_NOFOLLOW);
            named.kind = stat.map_or(FileType::Unknown, |stat| file_type(&stat));
        }
        self.pending += names.len();
        if self.pending > MAX_PENDING {
            return Err(FileError::new(
                FileErrorKind::TooLarge,
                format!("more than {MAX_PENDING} names at once"),
            ));
        }
        names.sort_unstable_by(|a, b| sort_key(b).cmp(sort_key(a)));
        self.levels.push(Level { names, prefix });
        Ok(())
    }

    fn leave(&mut self) {
        self.levels.pop();
        // The first level has no directory above it that could be lost.
        if self.levels.is_empty() || self.descent.leave() {
            return;
        }
        if let Some(lost) = self.levels.last_mut() {
            self.pending -= lost.names.len();
            lost.names.clear();
        }
    }
}

/// A directory sorts as if its name ended with a slash, which makes the order of the walk the order
/// of the paths.
fn sort_key(named: &ListedName) -> impl Iterator<Item = u8> + '_ {
    let slash = (named.kind == FileType::Directory).then_some(b'/');
    named.name.to_bytes().iter().copied().chain(slash)
}

/// Tells whether a search skips a directory that could not be entered: it vanished, was swapped, or
/// is closed.
pub fn is_passed_over(problem: &FileError) -> bool {
    matches!(
        problem.kind,
        FileErrorKind::NotFound
            | FileErrorKind::NotDirectory
            | FileErrorKind::Invalid
            | FileErrorKind::Permission
            | FileErrorKind::Conflict
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::program::files::fake_io::FakeIo;
    use std::os::unix::fs::symlink;
    use std::path::Path;
    use std::sync::atomic::{AtomicBool, Ordering};

    fn paths(root: &Path) -> Vec<String> {
        let io = FakeIo::default();
        let mut walk = Walk::new(std::fs::File::open(root).unwrap().into(), &io).unwrap();
        let mut paths = Vec::new();
        while let Some(kind) = walk.next(&io).unwrap() {
            paths.push(String::from_utf8_lossy(walk.path()).into_owned());
            if kind == FileType::Directory {
                walk.enter(&io).unwrap_or_default();
            }
        }
        paths
    }

    #[test]
    fn the_order_is_the_order_of_the_paths() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(dir.path().join("a/b")).unwrap();
        for file in ["a/b/c", "a.txt", "a-b", "a0", "b"] {
            std::fs::write(dir.path().join(file), "").unwrap();
        }
        assert_eq!(paths(dir.path()), ["a-b", "a.txt", "a", "a/b", "a/b/c", "a0", "b"]);
    }

    #[test]
    fn f6_links_are_not_followed_however_they_loop() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::create_dir(dir.path().join("d")).unwrap();
        symlink("..", dir.path().join("d/up")).unwrap();
        symlink(".", dir.path().join("self")).unwrap();
        assert_eq!(paths(dir.path()), ["d", "d/up", "self"]);
    }

    #[test]
    fn k11_a_tree_of_4000_levels_is_walked() {
        let dir = tempfile::tempdir().unwrap();
        let mut descent = Descent::new(std::fs::File::open(dir.path()).unwrap().into());
        for _ in 0..4000 {
            rustix::fs::mkdirat(descent.current(), c"d", rustix::fs::Mode::RWXU).unwrap();
            descent.enter(c"d").unwrap();
        }
        assert_eq!(paths(dir.path()).len(), 4000);
        drop(std::process::Command::new("rm").arg("-rf").arg(dir.path().join("d")).status());
    }

    #[test]
    fn f6_a_tree_that_is_churned_meanwhile_is_walked_to_an_end() {
        let dir = tempfile::tempdir().unwrap();
        let over = AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                while !over.load(Ordering::Relaxed) {
                    // Each may fail. It only matters that the tree changes.
                    drop(std::fs::create_dir_all(dir.path().join(["d"; 40].join("/"))));
                    drop(std::fs::rename(dir.path().join("d/d"), dir.path().join("moved")));
                    drop(symlink("/", dir.path().join("d/d")));
                    drop(std::fs::remove_file(dir.path().join("d/d")));
                    drop(std::fs::remove_dir_all(dir.path().join("moved")));
                }
            });
            for _ in 0..200 {
                let found = paths(dir.path());
                assert!(found.iter().all(|path| !path.contains("etc")), "{found:?}");
            }
            over.store(true, Ordering::Relaxed);
        });
    }
}
