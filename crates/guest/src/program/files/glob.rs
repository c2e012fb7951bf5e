//! Finding files by a pattern: a sorted walk that enters only directories in which something can
//! match.

use rustix::fs::FileType;

use super::failure::FileError;
use super::locate::Target;
use super::walk::{Walk, is_passed_over};
use crate::glob_pattern::Pattern;
use crate::line_search::MAX_ANSWER_BYTES;
use crate::program::call_io::CallIo;
use crate::protocol::{GlobMatches, Location, Reply};

/// Answers `Glob`: everything but directories, links not followed, by absolute path. Directories
/// that can't be read are passed over.
pub fn glob(
    root: &Location,
    pattern: &str,
    hidden: bool,
    max_results: u32,
    io: &mut dyn CallIo,
) -> Result<Reply, FileError> {
    let pattern = Pattern::new(pattern, hidden)?;
    let mut walk = Walk::new(Target::new(root)?.open_directory()?, io)?;
    let mut answer = GlobAnswer {
        root: root.path.trim_end_matches('/'),
        left: max_results,
        bytes: 0,
        found: GlobMatches::default(),
    };
    let mut progress = vec![pattern.start()];
    while let Some(kind) = walk.next(io)? {
        progress.truncate(walk.depth() + 1);
        let here = &progress[walk.depth()];
        let name = walk.name().to_bytes();
        if kind != FileType::Directory {
            if pattern.matches(here, name) && !answer.add(walk.path()) {
                break;
            }
            continue;
        }
        let inside = pattern.enter(here, name);
        if inside.is_dead() {
            continue;
        }
        match walk.enter(io) {
            Ok(()) => progress.push(inside),
            Err(problem) if is_passed_over(&problem) => {}
            Err(problem) => return Err(problem),
        }
    }
    Ok(Reply::Glob(answer.found))
}

struct GlobAnswer<'r> {
    root: &'r str,
    left: u32,
    bytes: usize,
    found: GlobMatches,
}

impl GlobAnswer<'_> {
    /// Takes a relative path, or says that there is no more room.
    fn add(&mut self, path: &[u8]) -> bool {
        let path = format!("{}/{}", self.root, String::from_utf8_lossy(path));
        self.bytes += path.len() + 5;
        if self.left == 0 || self.bytes > MAX_ANSWER_BYTES {
            self.found.truncated = true;
            return false;
        }
        self.left -= 1;
        self.found.paths.push(path);
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::program::files::failure::FileErrorKind;
    use crate::program::files::fake_io::{FakeIo, at, beneath};
    use std::os::unix::fs::symlink;
    use std::path::Path;

    fn found(root: &Location, pattern: &str, hidden: bool, most: u32) -> Result<GlobMatches, FileError> {
        match glob(root, pattern, hidden, most, &mut FakeIo::default())? {
            Reply::Glob(found) => Ok(found),
            other => panic!("{other:?}"),
        }
    }

    fn tree(dir: &Path) {
        std::fs::create_dir_all(dir.join("src/deep")).unwrap();
        std::fs::create_dir(dir.join(".git")).unwrap();
        for file in ["a.rs", "b.txt", "src/c.rs", "src/deep/d.rs", ".git/e.rs", "src.rs"] {
            std::fs::write(dir.join(file), "").unwrap();
        }
        symlink("/etc", dir.join("src/link.rs")).unwrap();
    }

    #[test]
    fn files_and_links_are_found_sorted_and_absolute() {
        let dir = tempfile::tempdir().unwrap();
        tree(dir.path());
        let base = dir.path().to_str().unwrap();
        let expect = |names: &[&str]| names.iter().map(|name| format!("{base}/{name}")).collect::<Vec<_>>();
        let all = found(&beneath(dir.path(), ""), "**/*.rs", false, 100).unwrap();
        assert_eq!(all.paths, expect(&["a.rs", "src.rs", "src/c.rs", "src/deep/d.rs", "src/link.rs"]));
        assert!(all.paths.is_sorted() && !all.truncated);
        let hidden = found(&at(dir.path()), "**/*.rs", true, 100).unwrap();
        assert_eq!(hidden.paths[0], format!("{base}/.git/e.rs"));
        assert_eq!(
            found(&at(dir.path()), "*", false, 100).unwrap().paths,
            expect(&["a.rs", "b.txt", "src.rs"])
        );
        assert!(found(&at(dir.path()), "src", false, 100).unwrap().paths.is_empty());
    }

    #[test]
    fn more_than_wanted_is_told() {
        let dir = tempfile::tempdir().unwrap();
        tree(dir.path());
        let some = found(&at(dir.path()), "**/*.rs", false, 2).unwrap();
        assert!(some.paths.len() == 2 && some.truncated);
        let exactly = found(&at(dir.path()), "*.rs", false, 2).unwrap();
        assert!(exactly.paths.len() == 2 && !exactly.truncated);
    }

    #[test]
    fn a_root_that_is_no_directory_is_told() {
        let dir = tempfile::tempdir().unwrap();
        tree(dir.path());
        assert_eq!(
            found(&beneath(dir.path(), "a.rs"), "*", false, 1).unwrap_err().kind,
            FileErrorKind::NotDirectory
        );
        assert_eq!(
            found(&beneath(dir.path(), "gone"), "*", false, 1).unwrap_err().kind,
            FileErrorKind::NotFound
        );
        assert_eq!(
            found(&beneath(dir.path(), "src/link.rs"), "*", false, 1).unwrap_err().kind,
            FileErrorKind::Permission
        );
    }
}
