//! The names of the options of `ls`, and of their values.

use crate::memory::programs::quoting::curly;
use crate::memory::programs::run::Ending;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ListLayout {
    Lines,
    Long,
    Columns,
    Across,
    Commas,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Sort {
    Name,
    None,
    Time,
    Size,
    Extension,
    Version,
    Width,
}

/// The marks behind names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum NameMarks {
    None,
    Slash,
    FileType,
    Classify,
}

/// The short options, by the names of what they do.
pub(super) static SHORT_NAMES: &[(char, &str)] = &[
    ('a', "all"),
    ('A', "almost-all"),
    ('b', "escape"),
    ('B', "ignore-backups"),
    ('c', "ctime"),
    ('C', "columns"),
    ('d', "directory"),
    ('f', "fast"),
    ('F', "classify"),
    ('g', "no-owner"),
    ('G', "no-group"),
    ('h', "human-readable"),
    ('H', "dereference-command-line"),
    ('i', "inode"),
    ('I', "ignore"),
    ('k', "kibibytes"),
    ('l', "long"),
    ('L', "dereference"),
    ('m', "commas"),
    ('n', "numeric-uid-gid"),
    ('N', "literal"),
    ('o', "long-no-group"),
    ('p', "slash"),
    ('q', "hide-control-chars"),
    ('Q', "quote-name"),
    ('r', "reverse"),
    ('R', "recursive"),
    ('s', "size"),
    ('S', "by-size"),
    ('t', "by-time"),
    ('T', "tabsize"),
    ('u', "atime"),
    ('U', "unsorted"),
    ('v', "by-version"),
    ('w', "width"),
    ('x', "across"),
    ('X', "by-extension"),
    ('1', "lines"),
];

/// The long names that a caller may give.
pub(super) const LONG_NAMES: &[&str] = &[
    "all",
    "almost-all",
    "author",
    "block-size",
    "classify",
    "color",
    "dereference",
    "dereference-command-line",
    "dereference-command-line-symlink-to-dir",
    "directory",
    "escape",
    "file-type",
    "format",
    "full-time",
    "group-directories-first",
    "help",
    "hide",
    "hide-control-chars",
    "human-readable",
    "hyperlink",
    "ignore",
    "ignore-backups",
    "indicator-style",
    "inode",
    "kibibytes",
    "literal",
    "no-group",
    "numeric-uid-gid",
    "quote-name",
    "quoting-style",
    "recursive",
    "reverse",
    "show-control-chars",
    "si",
    "size",
    "sort",
    "tabsize",
    "time",
    "time-style",
    "width",
];

/// The cases in which something is done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Occasion {
    Always,
    Never,
    /// At a terminal, which there is none here.
    Terminal,
}

pub(super) static WHEN: [(&str, Occasion); 9] = [
    ("always", Occasion::Always),
    ("yes", Occasion::Always),
    ("force", Occasion::Always),
    ("never", Occasion::Never),
    ("no", Occasion::Never),
    ("none", Occasion::Never),
    ("auto", Occasion::Terminal),
    ("tty", Occasion::Terminal),
    ("if-tty", Occasion::Terminal),
];
pub(super) static SORTS: [(&str, Sort); 7] = [
    ("none", Sort::None),
    ("time", Sort::Time),
    ("size", Sort::Size),
    ("extension", Sort::Extension),
    ("version", Sort::Version),
    ("width", Sort::Width),
    ("name", Sort::Name),
];
pub(super) static LAYOUTS: [(&str, ListLayout); 7] = [
    ("verbose", ListLayout::Long),
    ("long", ListLayout::Long),
    ("commas", ListLayout::Commas),
    ("horizontal", ListLayout::Across),
    ("across", ListLayout::Across),
    ("vertical", ListLayout::Columns),
    ("single-column", ListLayout::Lines),
];
pub(super) static MARKS: [(&str, NameMarks); 4] = [
    ("none", NameMarks::None),
    ("slash", NameMarks::Slash),
    ("file-type", NameMarks::FileType),
    ("classify", NameMarks::Classify),
];
/// The times. There is one, which all of them name.
pub(super) static TIMES: [(&str, u8); 9] = [
    ("atime", 0),
    ("access", 0),
    ("use", 0),
    ("ctime", 1),
    ("status", 1),
    ("mtime", 2),
    ("modification", 2),
    ("birth", 3),
    ("creation", 3),
];

/// The formats of a time that is long past, or to come, and of one that is near.
pub(super) fn time_style(name: &str) -> Result<[String; 2], Ending> {
    static STYLES: [(&str, [&str; 2]); 4] = [
        ("full-iso", ["%Y-%m-%d %H:%M:%S.%N %z"; 2]),
        ("long-iso", ["%Y-%m-%d %H:%M"; 2]),
        ("iso", ["%Y-%m-%d ", "%m-%d %H:%M"]),
        ("locale", ["%b %e  %Y", "%b %e %H:%M"]),
    ];
    if let Some(format) = name.strip_prefix('+') {
        let (old, near) = format.split_once('\n').unwrap_or((format, format));
        if near.contains('\n') {
            return Err(Ending::with_status(format!("invalid time style format {}", curly(near)), 2));
        }
        return Ok([old, near].map(str::to_owned));
    }
    // In the C locale the styles with `posix-` in front are the usual one.
    let style = name.strip_prefix("posix-").map_or(name, |_| "locale");
    let found: Vec<_> = STYLES.iter().filter(|(known, _)| known.starts_with(style)).collect();
    match found.as_slice() {
        [(_, formats)] => Ok(formats.map(str::to_owned)),
        _ => Err(Ending::usage(format!(
            "{} argument {} for {}\nValid arguments are:\n  - [posix-]full-iso\n  - [posix-]long-iso\n  - [posix-]iso\n  \
             - [posix-]locale\n  - +FORMAT (e.g., +%H:%M) for a 'date'-style format",
            if found.is_empty() { "invalid" } else { "ambiguous" },
            curly(name),
            curly("time style")
        ))),
    }
}
