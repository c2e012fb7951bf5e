//! Finding lines by a regular expression, in linear time and bounded memory.
//!
//! Every regular file below the root is searched, hidden ones too; links are not followed, binary
//! files are left out. A line longer than a mebibyte is searched in pieces, so that a match across
//! two of them is missed.

use std::ffi::OsStr;
use std::fs::File;
use std::io::{BufRead, BufReader};
use std::os::unix::ffi::OsStrExt;

use globset::GlobMatcher;
use regex::bytes::{Regex, RegexBuilder};
use rustix::fs::{FileType, Mode, OFlags};

use super::failure::{FileError, FileErrorKind};
use super::glob::MAX_ANSWER_BYTES;
use super::glob_pattern::compile;
use super::line::{Lines, Piece, display_text};
use super::locate::Target;
use super::regular;
use super::walk::{Walk, is_passed_over};
use crate::program::call_io::{CallIo, Stopped};
use crate::protocol::{GrepLine, GrepMatches, Location, Reply};

/// The number of bytes at a file's beginning that are searched for a NUL.
const BINARY_PROBE_BYTES: usize = 8 * 1024;
const READ_BYTES: usize = 64 * 1024;

/// The pattern, and the files to search.
pub struct Matcher {
    line: Regex,
    include: Option<Include>,
}

enum Include {
    Name(GlobMatcher),
    Path(GlobMatcher),
}

/// Limits on the answer.
pub struct Bounds {
    /// Lines.
    pub max_matches: u32,
    /// Bytes of a line.
    pub max_line_bytes: u32,
}

impl Matcher {
    /// Compiles the patterns, or returns `invalid` with the reason in one line.
    pub fn new(
        pattern: &str,
        literal: bool,
        ignore_case: bool,
        include: Option<&str>,
    ) -> Result<Self, FileError> {
        let pattern = if literal { regex::escape(pattern) } else { pattern.to_owned() };
        let line = RegexBuilder::new(&pattern).case_insensitive(ignore_case).build().map_err(|error| {
            let text = error.to_string();
            let reason = text.lines().last().unwrap_or_default().trim_start_matches("error: ");
            FileError::invalid(format!("the pattern is no regular expression: {reason}"))
        })?;
        let include = include.map(Include::new).transpose()?;
        Ok(Self { line, include })
    }

    fn wants(&self, path: &[u8], name: &[u8]) -> bool {
        match &self.include {
            None => true,
            Some(Include::Name(glob)) => glob.is_match(OsStr::from_bytes(name)),
            Some(Include::Path(glob)) => glob.is_match(OsStr::from_bytes(path)),
        }
    }
}

impl Include {
    fn new(glob: &str) -> Result<Self, FileError> {
        if glob.len() > 4096 {
            return Err(FileError::invalid("the include glob is longer than 4096 bytes"));
        }
        let matcher = compile(glob)?.compile_matcher();
        Ok(if glob.contains('/') { Self::Path(matcher) } else { Self::Name(matcher) })
    }
}

/// Answers `Grep`, sorted by path and line. The root may be a file. Below it, unreadable files are
/// skipped.
pub fn grep(
    root: &Location,
    matcher: Matcher,
    bounds: Bounds,
    io: &mut dyn CallIo,
) -> Result<Reply, FileError> {
    let target = Target::new(root)?;
    let mut search = Search { matcher, bounds, bytes: 0, found: GrepMatches::default() };
    match target.open_directory() {
        Ok(directory) => search.tree(root, Walk::new(directory, io)?, io)?,
        Err(problem) if problem.kind == FileErrorKind::NotDirectory => {
            let (file, _) = regular::open(&target)?;
            let name = root.path.rsplit('/').next().unwrap_or_default().as_bytes();
            if search.matcher.wants(name, name) {
                search.file(&root.path, file, io)?;
            }
        }
        Err(problem) => return Err(problem),
    }
    Ok(Reply::Grep(search.found))
}

struct Search {
    matcher: Matcher,
    bounds: Bounds,
    bytes: usize,
    found: GrepMatches,
}

impl Search {
    fn tree(&mut self, root: &Location, mut walk: Walk, io: &dyn CallIo) -> Result<(), FileError> {
        let root = root.path.trim_end_matches('/');
        while let Some(kind) = walk.next(io)? {
            let visited = match kind {
                FileType::Directory => walk.enter(io),
                FileType::RegularFile if self.matcher.wants(walk.path(), walk.name().to_bytes()) => {
                    let path = format!("{root}/{}", String::from_utf8_lossy(walk.path()));
                    open(&walk).and_then(|file| self.file(&path, file, io))
                }
                _ => Ok(()),
            };
            match visited {
                Err(problem) if !is_passed_over(&problem) && problem.kind != FileErrorKind::Internal => {
                    return Err(problem);
                }
                _ if self.found.truncated => return Ok(()),
                _ => {}
            }
        }
        Ok(())
    }

    fn file(&mut self, path: &str, file: File, io: &dyn CallIo) -> Result<(), FileError> {
        let mut reader = BufReader::with_capacity(READ_BYTES, file);
        let beginning = reader.fill_buf()?;
        if beginning[..beginning.len().min(BINARY_PROBE_BYTES)].contains(&0) {
            return Ok(());
        }
        let mut lines = Lines::new(reader);
        let mut long = LongLine::default();
        while let Some(piece) = lines.next()? {
            if (piece.number % 4096 == 0 || piece.goes_on) && io.stopped() {
                return Err(Stopped.into());
            }
            let most = self.bounds.max_line_bytes as usize;
            long.begin(&piece, most);
            if long.is_found(piece.goes_on) || !self.matcher.line.is_match(piece.bytes) {
                continue;
            }
            let (line, is_cut) = long.text(&piece, most);
            if !self.add(GrepLine {
                path: path.to_owned(),
                line_number: piece.number,
                line,
                line_truncated: is_cut,
            }) {
                break;
            }
        }
        Ok(())
    }

    /// Takes a line, or says that there is no more room.
    fn add(&mut self, line: GrepLine) -> bool {
        self.bytes += line.path.len() + line.line.len() + 24;
        if self.found.matches.len() >= self.bounds.max_matches as usize || self.bytes > MAX_ANSWER_BYTES {
            self.found.truncated = true;
            return false;
        }
        self.found.matches.push(line);
        true
    }
}

/// The beginning of a line that comes in pieces, to be shown wherever in it the match is; and that
/// it had one.
#[derive(Default)]
struct LongLine {
    beginning: String,
    found: bool,
}

impl LongLine {
    fn begin(&mut self, piece: &Piece<'_>, most: usize) {
        if !piece.goes_on {
            self.found = false;
            if piece.is_cut {
                self.beginning = display_text(piece.bytes, most).0;
            }
        }
    }

    fn is_found(&self, goes_on: bool) -> bool {
        goes_on && self.found
    }

    fn text(&mut self, piece: &Piece<'_>, most: usize) -> (String, bool) {
        self.found = true;
        if piece.goes_on { (self.beginning.clone(), true) } else { display_text(piece.bytes, most) }
    }
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
            assert!(problem.kind == FileErrorKind::Invalid && !problem.reason.contains('\n'), "{problem:?}");
        }
        assert_eq!(Matcher::new("a", false, false, Some("[")).err().unwrap().kind, FileErrorKind::Invalid);
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
