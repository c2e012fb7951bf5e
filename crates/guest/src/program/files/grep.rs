//! Finding lines in files: every regular file below the root is searched, hidden ones too, and
//! links are not followed.

use std::fs::File;
use std::io::BufReader;

use rustix::fs::{FileType, Mode, OFlags};

use super::failure::{FileError, FileErrorKind};
use super::locate::Target;
use super::regular;
use super::walk::{Walk, is_passed_over};
use crate::line_search::{Bounds, Matcher, Search, SearchHalt};
use crate::program::call_io::{CallIo, Stopped};
use crate::protocol::{Location, Reply};

const READ_BYTES: usize = 64 * 1024;

/// Answers `Grep`, sorted by path and line. The root may be a file. Below it, unreadable files are
/// skipped.
pub fn grep(
    root: &Location,
    matcher: Matcher,
    bounds: Bounds,
    io: &mut dyn CallIo,
) -> Result<Reply, FileError> {
    let target = Target::new(root)?;
    let mut search = Search::new(matcher, bounds);
    match target.open_directory() {
        Ok(directory) => tree(&mut search, root, Walk::new(directory, io)?, io)?,
        Err(problem) if problem.kind == FileErrorKind::NotDirectory => {
            let (file, _) = regular::open(&target)?;
            let name = root.path.rsplit('/').next().unwrap_or_default().as_bytes();
            if search.matcher.wants(name, name) {
                search_file(&mut search, &root.path, file, io)?;
            }
        }
        Err(problem) => return Err(problem),
    }
    Ok(Reply::Grep(search.found))
}

fn tree(search: &mut Search, root: &Location, mut walk: Walk, io: &dyn CallIo) -> Result<(), FileError> {
    let root = root.path.trim_end_matches('/');
    while let Some(kind) = walk.next(io)? {
        let visited = match kind {
            FileType::Directory => walk.enter(io),
            FileType::RegularFile if search.matcher.wants(walk.path(), walk.name().to_bytes()) => {
                let path = format!("{root}/{}", String::from_utf8_lossy(walk.path()));
                open(&walk).and_then(|file| search_file(search, &path, file, io))
            }
            _ => Ok(()),
        };
        match visited {
            Err(problem) if !is_passed_over(&problem) && problem.kind != FileErrorKind::Internal => {
                return Err(problem);
            }
            _ if search.found.truncated => return Ok(()),
            _ => {}
        }
    }
    Ok(())
}

fn search_file(search: &mut Search, path: &str, file: File, io: &dyn CallIo) -> Result<(), FileError> {
    let reader = BufReader::with_capacity(READ_BYTES, file);
    search.file(path, reader, &|| io.stopped()).map_err(|halt| match halt {
        SearchHalt::Stopped => Stopped.into(),
        SearchHalt::Unreadable(error) => error.into(),
    })
}

/// Opens the regular file that a walk found. Anything that was swapped in for it is refused.
fn open(walk: &Walk) -> Result<File, FileError> {
    let flags = regular::READ | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let file = rustix::fs::openat(walk.directory(), walk.name(), flags, Mode::empty())?;
    regular::check(&rustix::fs::fstat(&file)?)?;
    Ok(File::from(file))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::program::files::fake_io::{FakeIo, at, beneath};
    use crate::protocol::GrepMatches;
    use std::os::unix::fs::symlink;
    use std::path::Path;

    struct Ask<'a> {
        pattern: &'a str,
        literal: bool,
        ignore_case: bool,
        include: Option<&'a str>,
        most: u32,
        line_bytes: u32,
    }

    const ASK: Ask<'_> = Ask {
        pattern: "needle",
        literal: false,
        ignore_case: false,
        include: None,
        most: 100,
        line_bytes: 500,
    };

    fn found(root: &Location, ask: &Ask<'_>) -> Result<GrepMatches, FileError> {
        let matcher = Matcher::new(ask.pattern, ask.literal, ask.ignore_case, ask.include)?;
        let bounds = Bounds { max_matches: ask.most, max_line_bytes: ask.line_bytes };
        match grep(root, matcher, bounds, &mut FakeIo::default())? {
            Reply::Grep(found) => Ok(found),
            other => panic!("{other:?}"),
        }
    }

    fn places(dir: &Path, ask: &Ask<'_>) -> Vec<(String, u64)> {
        let prefix = format!("{}/", dir.to_str().unwrap());
        let matches = found(&beneath(dir, ""), ask).unwrap().matches;
        matches
            .into_iter()
            .map(|line| (line.path.strip_prefix(&prefix).unwrap().into(), line.line_number))
            .collect()
    }

    fn tree(dir: &Path) {
        std::fs::create_dir(dir.join("d")).unwrap();
        std::fs::write(dir.join("a.txt"), "x\na Needle\r\nneedle.\n").unwrap();
        std::fs::write(dir.join("d/b.rs"), b"\xff needle \xff\n").unwrap();
        std::fs::write(dir.join(".hidden"), "needle").unwrap();
        std::fs::write(dir.join("binary"), b"needle\0needle").unwrap();
        symlink("a.txt", dir.join("link")).unwrap();
        rustix::fs::mkfifoat(rustix::fs::CWD, dir.join("fifo"), Mode::RWXU).unwrap();
    }

    #[test]
    fn lines_are_found_sorted_by_path_and_number() {
        let dir = tempfile::tempdir().unwrap();
        tree(dir.path());
        let place = |path: &str, line| (path.to_owned(), line);
        assert_eq!(places(dir.path(), &ASK), [place(".hidden", 1), place("a.txt", 3), place("d/b.rs", 1)]);
        let any_case = Ask { ignore_case: true, include: Some("*.txt"), ..ASK };
        assert_eq!(places(dir.path(), &any_case), [place("a.txt", 2), place("a.txt", 3)]);
        assert_eq!(places(dir.path(), &Ask { include: Some("d/*"), ..ASK }), [place("d/b.rs", 1)]);
        let literal = Ask { pattern: "needle.", literal: true, ..ASK };
        assert_eq!(places(dir.path(), &literal), [place("a.txt", 3)]);
        assert_eq!(places(dir.path(), &Ask { pattern: "Needle$", ..ASK }), [place("a.txt", 2)]);
    }

    #[test]
    fn matches_and_lines_are_bounded_and_say_so() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("a"), "needle éé\n".repeat(5)).unwrap();
        let some = found(&at(dir.path().join("a")), &Ask { most: 4, line_bytes: 8, ..ASK }).unwrap();
        assert!(some.truncated && some.matches.len() == 4);
        assert_eq!((some.matches[0].line.as_str(), some.matches[0].line_truncated), ("needle ", true));
        let all = found(&at(dir.path().join("a")), &Ask { most: 5, ..ASK }).unwrap();
        assert!(!all.truncated && all.matches.len() == 5 && !all.matches[4].line_truncated);
    }

    #[test]
    fn a_line_of_many_mebibytes_is_one_match() {
        let dir = tempfile::tempdir().unwrap();
        let line = [b"start ".to_vec(), vec![b'x'; 3 << 20], b" needle needle\nneedle".to_vec()].concat();
        std::fs::write(dir.path().join("a"), line).unwrap();
        let found = found(&at(dir.path()), &Ask { line_bytes: 5, ..ASK }).unwrap().matches;
        let display_text: Vec<_> =
            found.iter().map(|found| (found.line_number, found.line.as_str())).collect();
        assert_eq!(display_text, [(1, "start"), (2, "needl")]);
    }

    #[test]
    fn f6_a_bad_or_exploding_pattern_is_refused_in_one_line() {
        for pattern in ["a(", "(?:a{1000}){1000}", "a\\"] {
            let problem = Matcher::new(pattern, false, false, None).err().unwrap();
            assert!(!problem.0.is_empty() && !problem.0.contains('\n'), "{problem:?}");
        }
        assert!(Matcher::new("a", false, false, Some("[")).is_err());
    }

    #[test]
    fn f6_a_pattern_that_would_backtrack_forever_ends() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("a"), "a".repeat(100_000)).unwrap();
        assert!(places(dir.path(), &Ask { pattern: "(a+)+b", ..ASK }).is_empty());
    }

    #[test]
    fn files_of_proc_are_searched_though_they_claim_to_be_empty() {
        let found = found(&at("/proc/self/status"), &Ask { pattern: "^Pid:", ..ASK }).unwrap();
        assert_eq!(found.matches.len(), 1);
    }

    #[test]
    fn f1_f2_a_root_that_leads_out_or_is_no_file_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        tree(dir.path());
        symlink("/etc/passwd", dir.path().join("out")).unwrap();
        assert_eq!(found(&beneath(dir.path(), "out"), &ASK).unwrap_err().kind, FileErrorKind::Permission);
        assert_eq!(found(&beneath(dir.path(), "fifo"), &ASK).unwrap_err().kind, FileErrorKind::Invalid);
        assert_eq!(found(&beneath(dir.path(), "gone"), &ASK).unwrap_err().kind, FileErrorKind::NotFound);
    }
}
