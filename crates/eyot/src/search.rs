//! Finding files and lines: glob and grep, with their limits.

use serde::{Deserialize, Serialize};

use crate::path::ConfinedPath;

/// Files whose path matches a pattern.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GlobOptions {
    /// The pattern, matched against the path relative to `root`: `*` and `?` stay within one segment, `**` crosses
    /// them, `[…]` and `{a,b}` work. A pattern without a slash matches in the top directory only.
    pub pattern: String,
    /// The directory to search.
    pub root: ConfinedPath,
    /// Names that begin with a dot match without being spelt out.
    pub hidden: bool,
    /// The most paths that are returned; by default 1,000.
    pub max_results: u32,
}

/// The result of glob: files and symbolic links (never followed), sorted by path.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct GlobResult {
    /// Absolute paths. Bytes that are not UTF-8 stand as U+FFFD.
    pub paths: Vec<String>,
    /// There were more than `max_results`.
    pub truncated: bool,
}

/// Lines that match a pattern.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GrepOptions {
    /// A regular expression (Rust's syntax, linear time), or literal text.
    pub pattern: String,
    /// The pattern is literal text.
    pub literal: bool,
    /// Upper and lower case are alike.
    pub ignore_case: bool,
    /// The file or the directory to search; directories are searched to the bottom, symbolic links are not followed.
    pub root: ConfinedPath,
    /// Only files whose name (or relative path, if it has a slash) matches this glob.
    pub include: Option<String>,
    /// The most matches that are returned; by default 100.
    pub max_matches: u32,
    /// A line is cut to this many bytes, at a character; by default 500.
    pub max_line_bytes: u32,
}

/// One line that matched.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct GrepMatch {
    /// The file's absolute path.
    pub path: String,
    /// The line's number, counted from 1.
    pub line_number: u64,
    /// The line without its end, cut to `max_line_bytes`.
    pub line: String,
    /// The line was longer.
    pub line_truncated: bool,
}

/// The result of grep, sorted by path and line. Binary files (with a NUL in their beginning) are
/// left out.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct GrepResult {
    /// The lines.
    pub matches: Vec<GrepMatch>,
    /// There were more than `max_matches`.
    pub truncated: bool,
}
