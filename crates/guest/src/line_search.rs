//! Finding lines by a regular expression, in linear time and bounded memory.
//!
//! Binary files are left out. A line longer than a mebibyte is searched in pieces, so that a match
//! across two of them is missed.

use std::io::{self, BufRead};

use globset::GlobMatcher;
use regex::bytes::{Regex, RegexBuilder};

use crate::glob_pattern::{PatternError, compile, name_of};
use crate::line::{Lines, Piece, display_text};
use crate::protocol::{GrepLine, GrepMatches};

/// The most bytes of paths and lines in one answer, below what one message may have.
pub const MAX_ANSWER_BYTES: usize = 6 << 20;
/// The number of bytes at a file's beginning that are searched for a NUL.
const BINARY_PROBE_BYTES: usize = 8 * 1024;

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
    /// Compiles the patterns, or returns the reason in one line.
    pub fn new(
        pattern: &str,
        literal: bool,
        ignore_case: bool,
        include: Option<&str>,
    ) -> Result<Self, PatternError> {
        let pattern = if literal { regex::escape(pattern) } else { pattern.to_owned() };
        let line = RegexBuilder::new(&pattern).case_insensitive(ignore_case).build().map_err(|error| {
            let text = error.to_string();
            let reason = text.lines().last().unwrap_or_default().trim_start_matches("error: ");
            PatternError::new(format!("the pattern is no regular expression: {reason}"))
        })?;
        let include = include.map(Include::new).transpose()?;
        Ok(Self { line, include })
    }

    /// Tells whether a file with this path and name is searched.
    pub fn wants(&self, path: &[u8], name: &[u8]) -> bool {
        match &self.include {
            None => true,
            Some(Include::Name(glob)) => glob.is_match(&*name_of(name)),
            Some(Include::Path(glob)) => glob.is_match(&*name_of(path)),
        }
    }
}

impl Include {
    fn new(glob: &str) -> Result<Self, PatternError> {
        if glob.len() > 4096 {
            return Err(PatternError::new("the include glob is longer than 4096 bytes"));
        }
        let matcher = compile(glob)?.compile_matcher();
        Ok(if glob.contains('/') { Self::Path(matcher) } else { Self::Name(matcher) })
    }
}

/// A reason to search no further.
#[derive(Debug)]
pub enum SearchHalt {
    /// Whoever asked is gone.
    Stopped,
    /// The file can't be read.
    Unreadable(io::Error),
}

impl From<io::Error> for SearchHalt {
    fn from(error: io::Error) -> Self {
        Self::Unreadable(error)
    }
}

/// A search through files, and what it found.
pub struct Search {
    /// The pattern.
    pub matcher: Matcher,
    bounds: Bounds,
    bytes: usize,
    /// The lines that matched.
    pub found: GrepMatches,
}

impl Search {
    /// Begins a search.
    pub fn new(matcher: Matcher, bounds: Bounds) -> Self {
        Self { matcher, bounds, bytes: 0, found: GrepMatches::default() }
    }

    /// Searches what a file holds; `path` is shown. Nothing more is wanted once the answer is
    /// truncated.
    ///
    /// # Errors
    /// The file can't be read, or `is_stopped` said so.
    pub fn file(
        &mut self,
        path: &str,
        mut reader: impl BufRead,
        is_stopped: &dyn Fn() -> bool,
    ) -> Result<(), SearchHalt> {
        let beginning = reader.fill_buf()?;
        if beginning[..beginning.len().min(BINARY_PROBE_BYTES)].contains(&0) {
            return Ok(());
        }
        let mut lines = Lines::new(reader);
        let mut long = LongLine::default();
        while let Some(piece) = lines.next_piece()? {
            if (piece.number % 4096 == 0 || piece.goes_on) && is_stopped() {
                return Err(SearchHalt::Stopped);
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
