//! A glob pattern, cut at its slashes. So it is known of every directory whether anything below it
//! can still match, and a name that begins with a dot can be held to a segment that spells the dot.

use std::borrow::Cow;
use std::ffi::OsStr;

use globset::{Glob, GlobBuilder, GlobMatcher};

/// The longest pattern.
const MAX_PATTERN_BYTES: usize = 4096;
/// The longest that all the alternatives of a pattern may be together, once those that matter are
/// spelt out.
const MAX_SPELT_BYTES: usize = 64 * 1024;

/// The reason why a pattern is refused: a sentence without its end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PatternError(pub String);

impl PatternError {
    pub(crate) fn new(reason: impl Into<String>) -> Self {
        Self(reason.into())
    }
}

/// A pattern for paths relative to a directory.
pub struct Pattern {
    alternatives: Vec<Vec<Segment>>,
    hidden: bool,
}

enum Segment {
    /// `**`: any number of directories.
    AnyDepth,
    /// Text without special characters.
    Literal(Vec<u8>),
    /// Anything else; whether it begins with a dot that is spelt out.
    Wild { matcher: GlobMatcher, dotted: bool },
}

/// The progress of a directory in each alternative. If it is empty, nothing below the directory can
/// match.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MatchProgress(Vec<(usize, usize)>);

impl MatchProgress {
    /// Nothing further can match.
    pub fn is_dead(&self) -> bool {
        self.0.is_empty()
    }
}

impl Pattern {
    /// The pattern in this text. With `hidden`, names that begin with a dot match without its being
    /// spelt out.
    ///
    /// # Errors
    /// The reason: syntax, length, an absolute path, `..`.
    pub fn new(text: &str, hidden: bool) -> Result<Self, PatternError> {
        if text.len() > MAX_PATTERN_BYTES {
            return Err(PatternError::new(format!("the pattern is longer than {MAX_PATTERN_BYTES} bytes")));
        }
        if text.is_empty() || text.contains('\0') {
            return Err(not_relative());
        }
        compile(text)?;
        let alternatives = expand_braces(text)?;
        // Only now is it seen whether one of them is absolute: `{/etc,x}/*`.
        if alternatives.iter().any(|text| text.starts_with('/')) {
            return Err(not_relative());
        }
        let alternatives = alternatives.iter().map(|text| segments(text)).collect::<Result<_, _>>()?;
        Ok(Self { alternatives, hidden })
    }

    /// Returns the progress at which a walk begins.
    pub fn start(&self) -> MatchProgress {
        self.closure((0..self.alternatives.len()).map(|alternative| (alternative, 0)).collect())
    }

    /// Returns the progress of a directory's own entries, given that of the directory that holds
    /// it.
    pub fn enter(&self, progress: &MatchProgress, name: &[u8]) -> MatchProgress {
        self.closure(self.advance(progress, name))
    }

    /// Tells whether a file in a directory with this progress matches.
    pub fn matches(&self, progress: &MatchProgress, name: &[u8]) -> bool {
        self.advance(progress, name).iter().any(|&(which, at)| at == self.alternatives[which].len())
    }

    fn advance(&self, progress: &MatchProgress, name: &[u8]) -> Vec<(usize, usize)> {
        let step = |&(which, at): &(usize, usize)| {
            let segment = self.alternatives[which].get(at)?;
            match segment {
                Segment::AnyDepth => self.may_be_wild(name).then_some((which, at)),
                Segment::Literal(text) => (text == name).then_some((which, at + 1)),
                Segment::Wild { matcher, dotted } => ((*dotted || self.may_be_wild(name))
                    && matcher.is_match(&*name_of(name)))
                .then_some((which, at + 1)),
            }
        };
        progress.0.iter().filter_map(step).collect()
    }

    fn may_be_wild(&self, name: &[u8]) -> bool {
        self.hidden || !name.starts_with(b".")
    }

    /// `**` also stands for no directory at all.
    fn closure(&self, mut states: Vec<(usize, usize)>) -> MatchProgress {
        let mut index = 0;
        while let Some(&(which, at)) = states.get(index) {
            match self.alternatives[which].get(at) {
                Some(Segment::AnyDepth) => states.push((which, at + 1)),
                Some(_) => {}
                // The pattern's end was reached by a directory, which is no result and has nothing
                // to match below.
                None => {
                    states.swap_remove(index);
                    continue;
                }
            }
            index += 1;
        }
        states.sort_unstable();
        states.dedup();
        MatchProgress(states)
    }
}

fn not_relative() -> PatternError {
    PatternError::new("the pattern must be a relative path, and not empty")
}

/// A name as the matcher takes it.
#[cfg(unix)]
pub(crate) fn name_of(name: &[u8]) -> Cow<'_, OsStr> {
    Cow::Borrowed(std::os::unix::ffi::OsStrExt::from_bytes(name))
}

#[cfg(not(unix))]
pub(crate) fn name_of(name: &[u8]) -> Cow<'_, OsStr> {
    Cow::Owned(String::from_utf8_lossy(name).into_owned().into())
}

/// Compiles a glob in which `*` and `?` stay within a segment.
pub fn compile(text: &str) -> Result<Glob, PatternError> {
    GlobBuilder::new(text)
        .literal_separator(true)
        .backslash_escape(true)
        .empty_alternates(true)
        .build()
        .map_err(|error| PatternError::new(format!("the pattern is no glob: {}", error.kind())))
}

fn segments(text: &str) -> Result<Vec<Segment>, PatternError> {
    let mut segments = Vec::new();
    for part in split(text, Cut::Slash) {
        match part {
            "" | "." => {}
            ".." => return Err(PatternError::new("the pattern must not contain `..`")),
            "**" if matches!(segments.last(), Some(Segment::AnyDepth)) => {}
            "**" => segments.push(Segment::AnyDepth),
            part => segments.push(segment(part)?),
        }
    }
    // Everything below: at least one more name, of any kind.
    if matches!(segments.last(), Some(Segment::AnyDepth)) {
        segments.push(segment("*")?);
    }
    Ok(segments)
}

fn segment(part: &str) -> Result<Segment, PatternError> {
    if !part.contains(['*', '?', '[', ']', '{', '}', '\\']) {
        return Ok(Segment::Literal(part.as_bytes().to_vec()));
    }
    let dotted = part.starts_with('.') || part.starts_with("\\.");
    Ok(Segment::Wild { matcher: compile(part)?.compile_matcher(), dotted })
}

/// Spells out the braces that a pattern can't be cut with: those that hold a slash, and those that
/// begin a segment, where it matters which of their alternatives begin with a dot.
fn expand_braces(text: &str) -> Result<Vec<String>, PatternError> {
    let mut open = vec![text.to_owned()];
    let mut done = Vec::new();
    let mut bytes = 0;
    while let Some(text) = open.pop() {
        let Some((start, end)) = find_brace(&text) else {
            done.push(text);
            continue;
        };
        for choice in split(&text[start + 1..end], Cut::Comma) {
            let spelt = [&text[..start], choice, &text[end + 1..]].concat();
            bytes += spelt.len();
            if bytes > MAX_SPELT_BYTES {
                return Err(PatternError::new("the pattern has too many alternatives"));
            }
            open.push(spelt);
        }
    }
    Ok(done)
}

/// The first pair of braces (where they open and close) that must be spelt out.
fn find_brace(text: &str) -> Option<(usize, usize)> {
    let mut depth = 0;
    let (mut start, mut begins_segment, mut has_slash) = (0, true, false);
    let mut at_start = true;
    for (index, mark) in marks(text) {
        match mark {
            '{' => {
                if depth == 0 {
                    (start, begins_segment, has_slash) = (index, at_start, false);
                }
                depth += 1;
            }
            '}' => {
                depth -= 1;
                if depth == 0 && (begins_segment || has_slash) {
                    return Some((start, index));
                }
            }
            '/' => has_slash = true,
            _ => {}
        }
        at_start = mark == '/';
    }
    None
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Cut {
    Slash,
    Comma,
}

/// Cuts at every slash or comma that is not inside braces.
fn split(text: &str, cut: Cut) -> Vec<&str> {
    let wanted = if cut == Cut::Slash { '/' } else { ',' };
    let (mut parts, mut start, mut depth) = (Vec::new(), 0, 0);
    for (index, mark) in marks(text) {
        match mark {
            '{' => depth += 1,
            '}' => depth -= 1,
            mark if mark == wanted && depth == 0 => {
                parts.push(&text[start..index]);
                start = index + 1;
            }
            _ => {}
        }
    }
    parts.push(&text[start..]);
    parts
}

/// The characters with their places; what is escaped or inside a class has lost its meaning and
/// stands as `x`.
fn marks(text: &str) -> impl Iterator<Item = (usize, char)> + '_ {
    let mut escaped = false;
    let mut class: Option<usize> = None;
    text.char_indices().map(move |(index, character)| {
        let plain = (index, 'x');
        if std::mem::take(&mut escaped) {
            return plain;
        }
        if let Some(opened) = class {
            // A bracket right after the opening one, or after its negation, is a member.
            let is_first = matches!(&text[opened + 1..index], "" | "!" | "^");
            if character == ']' && !is_first {
                class = None;
            }
            return plain;
        }
        match character {
            '\\' => {
                escaped = true;
                plain
            }
            '[' => {
                class = Some(index);
                plain
            }
            other => (index, other),
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_match(pattern: &str, hidden: bool, path: &str) -> bool {
        let pattern = Pattern::new(pattern, hidden).unwrap();
        let mut progress = pattern.start();
        let (directories, name) = path.rsplit_once('/').unwrap_or(("", path));
        for directory in directories.split('/').filter(|directory| !directory.is_empty()) {
            progress = pattern.enter(&progress, directory.as_bytes());
        }
        pattern.matches(&progress, name.as_bytes())
    }

    #[test]
    fn patterns_match_as_the_contract_says() {
        let cases = [
            ("*.rs", "a.rs", true),
            ("*.rs", "d/a.rs", false),
            ("**/*.rs", "a.rs", true),
            ("**/*.rs", "x/y/a.rs", true),
            ("src/**", "src/a/b", true),
            ("src/**", "src", false),
            ("**", "a/b", true),
            ("a/**/b", "a/b", true),
            ("a/**/**/b", "a/x/y/b", true),
            ("?.txt", "é.txt", false),
            ("[a-c].txt", "b.txt", true),
            ("[!a]x", "bx", true),
            ("{a,b/c}.rs", "b/c.rs", true),
            ("{a,b/c}.rs", "a.rs", true),
            ("x{a,{b,c/d}}", "xc/d", true),
            ("foo{,.bak}", "foo", true),
            ("\\*", "*", true),
            ("\\*", "a", false),
            ("\\{a,b\\}", "{a,b}", true),
            ("[{]a", "{a", true),
            ("[]]a", "]a", true),
            ("./a/./b", "a/b", true),
            ("d/*", "d/x/y", false),
        ];
        for (pattern, path, expected) in cases {
            assert_eq!(is_match(pattern, false, path), expected, "{pattern} on {path}");
        }
    }

    #[test]
    fn a_hidden_name_matches_only_where_its_dot_is_spelt() {
        let cases = [
            ("*", ".a", false),
            ("?a", ".a", false),
            ("[!x]a", ".a", false),
            ("**/x", ".git/x", false),
            (".*", ".a", true),
            ("\\.*", ".a", true),
            (".git/*", ".git/x", true),
            (".git/*", ".git/.x", false),
            ("**/.git/*", "a/.git/x", true),
            ("{.a,*}b", ".ab", true),
            ("{.a,*}b", ".xb", false),
            ("{,.}x", ".x", true),
        ];
        for (pattern, path, expected) in cases {
            assert_eq!(is_match(pattern, false, path), expected, "{pattern} on {path}");
            assert!(is_match(pattern, true, path), "{pattern} on {path} with hidden ones");
        }
    }

    #[test]
    fn where_nothing_can_match_any_more_is_known() {
        let pattern = Pattern::new("src/*.rs", false).unwrap();
        let start = pattern.start();
        assert!(pattern.enter(&start, b"target").is_dead());
        let src = pattern.enter(&start, b"src");
        assert!(!src.is_dead() && pattern.enter(&src, b"deeper").is_dead());
        assert!(pattern.enter(&src, b"x.rs").is_dead());
    }

    #[test]
    fn f6_a_bad_or_exploding_pattern_is_refused_with_its_reason() {
        let long = "a".repeat(5000);
        let bomb = "{a,b}/".repeat(600);
        for pattern in
            ["", "/abs", "{x,/abs}/*", "{.a*,/*}*", "a[", "{a", "a/../b", "..", long.as_str(), bomb.as_str()]
        {
            let problem = Pattern::new(pattern, false).err().unwrap();
            assert!(!problem.0.is_empty() && !problem.0.contains('\n'), "{problem:?}");
        }
    }
}
