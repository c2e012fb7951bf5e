//! Removing a whole tree: one loop instead of recursion, by directory descriptors instead of paths,
//! so that neither depth nor a link that is swapped in meanwhile matters.

use std::ffi::CString;

use eyot_archive::{Descent, entries};
use rustix::fd::{AsFd, BorrowedFd};
use rustix::fs::{AtFlags, FileType};
use rustix::io::Errno;

use super::failure::{FileError, FileErrorKind};
use super::locate::Name;
use crate::program::call_io::{CallIo, Stopped};

/// The number of subdirectories of one directory that are remembered at a time.
const BATCH: usize = 1024;
/// The number of times that another process may refill a directory, over the whole removal.
const MAX_SETBACKS: u32 = 100;

/// A directory that is being emptied: those inside it that are still to be entered.
#[derive(Default)]
struct Level {
    name: CString,
    inside: Vec<CString>,
}

struct Removal {
    descent: Descent,
    levels: Vec<Level>,
    setbacks: u32,
}

/// Removes a directory and everything below it. It stops at the first thing that can't be removed.
pub fn remove(name: &Name, io: &dyn CallIo) -> Result<(), FileError> {
    let root = match Descent::open(&name.parent, &name.name) {
        // An empty directory can be removed without being read.
        Err(Errno::ACCESS) => {
            let removed = rustix::fs::unlinkat(&name.parent, &name.name, AtFlags::REMOVEDIR);
            return removed.map_err(|_| Errno::ACCESS.into());
        }
        root => root?,
    };
    let mut removal = Removal { descent: Descent::new(root), levels: vec![Level::default()], setbacks: 0 };
    loop {
        while removal.step(io)? {}
        match rustix::fs::unlinkat(&name.parent, &name.name, AtFlags::REMOVEDIR) {
            Ok(()) | Err(Errno::NOENT) => return Ok(()),
            Err(Errno::NOTEMPTY | Errno::EXIST) => removal.set_back()?,
            Err(errno) => return Err(errno.into()),
        }
        removal.levels.push(Level::default());
    }
}

impl Removal {
    /// Enters one directory, or empties the current one, or leaves it. `false`: the first one is
    /// empty.
    fn step(&mut self, io: &dyn CallIo) -> Result<bool, FileError> {
        if io.stopped() {
            return Err(Stopped.into());
        }
        let Some(level) = self.levels.last_mut() else {
            return Ok(false);
        };
        if level.inside.is_empty() {
            level.inside = clear(self.descent.current(), io)?;
        }
        match level.inside.pop() {
            Some(directory) => self.enter(directory)?,
            None => self.leave()?,
        }
        Ok(true)
    }

    fn enter(&mut self, name: CString) -> Result<(), FileError> {
        match self.descent.enter(&name) {
            Ok(()) => self.levels.push(Level { name, inside: Vec::new() }),
            Err(Errno::NOENT) => {}
            // The entry was swapped since it was listed. The next listing shows its present type.
            Err(Errno::NOTDIR | Errno::LOOP) => self.set_back()?,
            Err(Errno::ACCESS) => {
                self.remove_empty(&name).map_err(|_| FileError::from(Errno::ACCESS).at(name.to_bytes()))?
            }
            Err(errno) => return Err(FileError::from(errno).at(name.to_bytes())),
        }
        Ok(())
    }

    fn leave(&mut self) -> Result<(), FileError> {
        let Some(level) = self.levels.pop() else {
            return Ok(());
        };
        if self.levels.is_empty() {
            return Ok(());
        }
        if !self.descent.leave() {
            let moved = FileError::new(FileErrorKind::Conflict, "a directory was moved while it was removed");
            return Err(moved.at(level.name.to_bytes()));
        }
        match self.remove_empty(&level.name) {
            Ok(()) | Err(Errno::NOENT) => Ok(()),
            Err(Errno::NOTEMPTY | Errno::EXIST | Errno::NOTDIR) => self.set_back(),
            Err(errno) => Err(FileError::from(errno).at(level.name.to_bytes())),
        }
    }

    fn remove_empty(&self, name: &CString) -> Result<(), Errno> {
        rustix::fs::unlinkat(self.descent.current(), name, AtFlags::REMOVEDIR)
    }

    fn set_back(&mut self) -> Result<(), FileError> {
        self.setbacks += 1;
        if self.setbacks > MAX_SETBACKS {
            Err(FileError::new(FileErrorKind::Conflict, "is being filled again while it is removed"))
        } else {
            Ok(())
        }
    }
}

/// Removes everything but directories, and says which directories there are, or the first of them.
fn clear(directory: BorrowedFd<'_>, io: &dyn CallIo) -> Result<Vec<CString>, FileError> {
    let mut directories = Vec::new();
    for (index, entry) in entries(directory)?.enumerate() {
        let entry = entry?;
        let name = entry.file_name();
        if index % 256 == 0 && io.stopped() {
            return Err(Stopped.into());
        }
        let is_directory = entry.file_type() == FileType::Directory;
        match if is_directory { Err(Errno::ISDIR) } else { unlink(directory.as_fd(), name) } {
            Ok(()) | Err(Errno::NOENT) => {}
            Err(Errno::ISDIR) => directories.push(name.to_owned()),
            Err(errno) => return Err(FileError::from(errno).at(name.to_bytes())),
        }
        if directories.len() == BATCH {
            break;
        }
    }
    Ok(directories)
}

fn unlink(directory: BorrowedFd<'_>, name: &std::ffi::CStr) -> Result<(), Errno> {
    rustix::fs::unlinkat(directory, name, AtFlags::empty())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::program::files::fake_io::{FakeIo, beneath};
    use crate::program::files::locate::Target;
    use std::os::unix::fs::symlink;
    use std::sync::atomic::{AtomicBool, Ordering};

    fn name(dir: &std::path::Path, path: &str) -> Name {
        Target::new(&beneath(dir, path)).unwrap().name().unwrap()
    }

    /// Makes a chain of directories deeper than any path may be long.
    pub fn deep_tree(dir: &std::path::Path, depth: usize) {
        let mut descent = Descent::new(std::fs::File::open(dir).unwrap().into());
        for _ in 0..depth {
            rustix::fs::mkdirat(descent.current(), c"dd", rustix::fs::Mode::RWXU).unwrap();
            descent.enter(c"dd").unwrap();
        }
    }

    #[test]
    fn k11_a_tree_of_4000_levels_is_removed() {
        let dir = tempfile::tempdir().unwrap();
        deep_tree(dir.path(), 4000);
        remove(&name(dir.path(), "dd"), &FakeIo::default()).unwrap();
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0);
    }

    #[test]
    fn a_wide_tree_is_removed() {
        let dir = tempfile::tempdir().unwrap();
        for number in 0..3000 {
            std::fs::create_dir_all(dir.path().join(format!("t/{number}"))).unwrap();
            std::fs::write(dir.path().join(format!("t/{number}/f")), "").unwrap();
        }
        remove(&name(dir.path(), "t"), &FakeIo::default()).unwrap();
        assert!(!dir.path().join("t").exists());
    }

    #[test]
    fn nothing_more_is_removed_once_nobody_waits() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(dir.path().join("t/x")).unwrap();
        let io = FakeIo { is_stopped: true, ..FakeIo::default() };
        assert_eq!(remove(&name(dir.path(), "t"), &io).unwrap_err().kind, FileErrorKind::Cancelled);
        assert!(dir.path().join("t/x").exists());
    }

    #[test]
    fn f1_directories_that_are_swapped_for_links_during_the_removal_lead_nowhere() {
        let (dir, outside) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let canary = outside.path().join("canary");
        std::fs::write(&canary, "").unwrap();
        let (over, victim) = (AtomicBool::new(false), dir.path().join("t/victim"));
        std::thread::scope(|scope| {
            scope.spawn(|| {
                while !over.load(Ordering::Relaxed) {
                    // Each of these may fail, since the removal is at work in the same place.
                    drop(std::fs::create_dir_all(&victim));
                    drop(std::fs::rename(&victim, dir.path().join("aside")));
                    drop(symlink(outside.path(), &victim));
                    drop(std::fs::remove_file(&victim));
                    drop(std::fs::rename(dir.path().join("aside"), &victim));
                }
            });
            for _ in 0..300 {
                drop(std::fs::create_dir_all(dir.path().join("t/a/b")));
                drop(name_if_there(dir.path()).map(|name| remove(&name, &FakeIo::default())));
                assert!(canary.exists());
            }
            over.store(true, Ordering::Relaxed);
        });
    }

    fn name_if_there(dir: &std::path::Path) -> Option<Name> {
        Target::new(&beneath(dir, "t")).ok()?.name().ok()
    }
}
