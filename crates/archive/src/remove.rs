//! Removal of trees that a sandbox or an image filled: any depth, any permissions, never through a
//! symbolic link or into another mount, with a dozen descriptors.
//!
//! Directories are emptied where they are, down to a depth of [`MOST_LEVELS`]. Deeper ones are moved
//! up into the top one before they are emptied, so neither the stack nor the number of descriptors
//! grows with the depth. Two processes may remove one tree at once: entries that are gone already
//! are fine.

use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::Path;

use rustix::fs::{AtFlags, CWD, FileType, Mode, OFlags, ResolveFlags};
use rustix::io::Errno;

use super::entries;

/// The number of directories below the top one that are open at once, with two descriptors each.
const MOST_LEVELS: usize = 6;

/// Removes the directory at `path` and everything in it. A missing directory is fine; so is another
/// process that removes the same tree at the same time.
///
/// # Errors
/// Errors of the kernel. `EBUSY` if something is mounted in the tree; it is not looked into.
pub fn remove_tree(path: &Path) -> io::Result<()> {
    let top = match open(CWD, path, ResolveFlags::empty()) {
        Ok(top) => top,
        Err(Errno::NOENT) => return Ok(()),
        Err(error) => return Err(error.into()),
    };
    let mut removal = TreeRemoval { top: &top, moved: 0 };
    loop {
        removal.empty(&top, 0)?;
        match rustix::fs::unlinkat(CWD, path, AtFlags::REMOVEDIR) {
            Ok(()) | Err(Errno::NOENT) => return Ok(()),
            // Directories that this round moved up are removed in the next one.
            Err(Errno::NOTEMPTY) => {}
            Err(error) => return Err(error.into()),
        }
    }
}

/// Opens a directory for reading and changing, whatever its permissions were. A symbolic link is an
/// error.
fn open(
    at: impl std::os::fd::AsFd + Copy,
    name: impl rustix::path::Arg + Copy,
    resolve: ResolveFlags,
) -> Result<OwnedFd, Errno> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let open = |flags| match rustix::fs::openat2(at, name, flags, Mode::empty(), resolve) {
        // As in a sandbox with a writable mount.
        Err(Errno::NOSYS) => rustix::fs::openat(at, name, flags, Mode::empty()),
        opened => opened,
    };
    let opened = match open(flags) {
        Err(Errno::ACCESS) => {
            let found = open(flags | OFlags::PATH)?;
            rustix::fs::chmod(format!("/proc/self/fd/{}", found.as_raw_fd()), Mode::RWXU)?;
            open(flags)?
        }
        other => other?,
    };
    // A change of the mode costs more than a look at it.
    if !Mode::from_raw_mode(rustix::fs::fstat(&opened)?.st_mode).contains(Mode::RWXU) {
        rustix::fs::fchmod(&opened, Mode::RWXU)?;
    }
    Ok(opened)
}

/// The removal of one tree.
struct TreeRemoval<'a> {
    top: &'a OwnedFd,
    /// The number of directories that were moved up.
    moved: u64,
}

impl TreeRemoval<'_> {
    /// Removes everything in a directory, which is `levels` below the top one.
    fn empty(&mut self, directory: &OwnedFd, levels: usize) -> io::Result<()> {
        for entry in entries(directory)? {
            let entry = entry?;
            let name = entry.file_name();
            let is_directory = match entry.file_type() {
                FileType::Unknown => {
                    let found = match rustix::fs::statat(directory, name, AtFlags::SYMLINK_NOFOLLOW) {
                        Err(Errno::NOENT) => continue,
                        other => other?,
                    };
                    FileType::from_raw_mode(found.st_mode) == FileType::Directory
                }
                known => known == FileType::Directory,
            };
            if is_directory {
                self.remove_directory(directory, name, levels)?;
                continue;
            }
            match rustix::fs::unlinkat(directory, name, AtFlags::empty()) {
                Ok(()) | Err(Errno::NOENT) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Ok(())
    }

    fn remove_directory(&mut self, parent: &OwnedFd, name: &std::ffi::CStr, levels: usize) -> io::Result<()> {
        let remove = || rustix::fs::unlinkat(parent, name, AtFlags::REMOVEDIR);
        // Many are empty.
        if let Ok(()) | Err(Errno::NOENT) = remove() {
            return Ok(());
        }
        let directory = match open(parent, name, ResolveFlags::NO_XDEV) {
            Err(Errno::NOENT) => return Ok(()),
            Err(Errno::XDEV) => return Err(Errno::BUSY.into()),
            other => other?,
        };
        if levels == MOST_LEVELS {
            return self.move_up(parent, name);
        }
        self.empty(&directory, levels + 1)?;
        match remove() {
            // Not empty: the other remover has moved something here. The next round finds it.
            Ok(()) | Err(Errno::NOENT | Errno::NOTEMPTY) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    /// Moves a directory to the top one. It is writable: its `..` changes.
    fn move_up(&mut self, parent: &OwnedFd, name: &std::ffi::CStr) -> io::Result<()> {
        loop {
            self.moved += 1;
            let target = format!(".eyot-moved-{}-{}", std::process::id(), self.moved);
            let flags = rustix::fs::RenameFlags::NOREPLACE;
            match rustix::fs::renameat_with(parent, name, self.top, target, flags) {
                Err(Errno::EXIST) => {}
                Ok(()) | Err(Errno::NOENT) => return Ok(()),
                Err(error) => return Err(error.into()),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::fs::{PermissionsExt, symlink};

    #[test]
    fn a_tree_of_any_depth_and_permissions_is_removed_and_links_are_not_followed() {
        let dir = tempfile::tempdir().unwrap();
        let kept = dir.path().join("kept");
        fs::write(&kept, "x").unwrap();
        let tree = dir.path().join("tree");
        fs::create_dir_all(tree.join("locked/below")).unwrap();
        symlink(dir.path(), tree.join("link")).unwrap();
        fs::set_permissions(tree.join("locked/below"), fs::Permissions::from_mode(0o0)).unwrap();
        fs::set_permissions(tree.join("locked"), fs::Permissions::from_mode(0o0)).unwrap();
        let mut at = rustix::fs::open(&tree, OFlags::DIRECTORY, Mode::empty()).unwrap();
        for _ in 0..5000 {
            rustix::fs::mkdirat(&at, "d", Mode::RWXU).unwrap();
            rustix::fs::openat(&at, "f", OFlags::CREATE | OFlags::WRONLY, Mode::RWXU).unwrap();
            at = rustix::fs::openat(&at, "d", OFlags::DIRECTORY, Mode::empty()).unwrap();
        }
        remove_tree(&tree).unwrap();
        assert!(!tree.exists() && kept.exists());
    }

    #[test]
    fn two_removers_of_one_tree_do_not_stumble_over_each_other() {
        let dir = tempfile::tempdir().unwrap();
        for round in 0..5 {
            let tree = dir.path().join(round.to_string());
            for index in 0..100 {
                fs::create_dir_all(tree.join(format!("{}/{index}/below", index % 7))).unwrap();
            }
            let removers: Vec<_> = (0..4)
                .map(|_| {
                    let tree = tree.clone();
                    std::thread::spawn(move || remove_tree(&tree))
                })
                .collect();
            for remover in removers {
                remover.join().unwrap().unwrap();
            }
            assert!(!tree.exists());
        }
    }

    #[test]
    fn what_is_mounted_in_a_tree_is_not_looked_into() {
        const TREE: &str = "EYOT_TEST_TREE";
        if let Some(tree) = std::env::var_os(TREE).map(std::path::PathBuf::from) {
            let error = remove_tree(&tree).unwrap_err();
            assert_eq!(Errno::from_io_error(&error), Some(Errno::BUSY));
            assert!(tree.join("mounted/below/kept").exists());
            return;
        }
        let dir = tempfile::tempdir().unwrap();
        fs::create_dir(dir.path().join("mounted")).unwrap();
        // This test once more, in a mount namespace of its own.
        let line = "cd \"$EYOT_TEST_TREE\" && mount -t tmpfs none mounted && mkdir mounted/below && touch mounted/below/kept \
                    && exec \"$0\" what_is_mounted_in_a_tree";
        let test = std::env::current_exe().unwrap();
        let again = std::process::Command::new("unshare")
            .args(["--map-root-user", "--mount", "sh", "-c", line])
            .arg(test)
            .env(TREE, dir.path())
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&again.stdout);
        assert!(again.status.success() && said.contains("1 passed"), "{said}");
    }

    #[test]
    fn a_missing_tree_is_removed_already() {
        let dir = tempfile::tempdir().unwrap();
        remove_tree(&dir.path().join("none")).unwrap();
    }
}
