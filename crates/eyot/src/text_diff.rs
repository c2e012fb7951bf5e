//! Unified diffs of files that are text, no more of them than an answer may have.

use std::fmt::{self, Write as _};

use imara_diff::{Algorithm, Diff, InternedInput, Interner, Token, UnifiedDiffConfig, UnifiedDiffPrinter};

use crate::snapshot::FileChanges;

/// The most bytes of a file that is diffed.
const MAX_FILE_BYTES: u64 = 1 << 20;
/// The most bytes of files that one comparison diffs.
const MAX_READ_BYTES: u64 = 64 << 20;

/// Makes the unified diffs of one comparison, within its bounds.
#[derive(Debug)]
pub struct TextDiffs {
    readable_bytes: u64,
    room: usize,
}

impl TextDiffs {
    /// Begins the diffs of a comparison. `asked`: otherwise there are none.
    pub fn new(asked: bool) -> Self {
        let (readable_bytes, room) =
            if asked { (MAX_READ_BYTES, FileChanges::MAX_TEXT_BYTES) } else { (0, 0) };
        Self { readable_bytes, room }
    }

    /// Tells whether files of these sizes are to be read for a diff. What may still be read becomes less.
    pub fn may_read(&mut self, sizes: [u64; 2]) -> bool {
        let both = sizes[0].saturating_add(sizes[1]);
        if self.room == 0 || sizes.iter().any(|size| *size > MAX_FILE_BYTES) || both > self.readable_bytes {
            return false;
        }
        self.readable_bytes -= both;
        true
    }

    /// Returns the unified diff of a file; `None` on a side: it is not there. There is none of files that are no text, nor
    /// where it has no room any more.
    pub fn diff(&mut self, path: &str, before: Option<&[u8]>, after: Option<&[u8]>) -> Option<String> {
        let [old, new] = [before, after].map(|side| text_of(side.unwrap_or_default()));
        let (old, new) = (old?, new?);
        let input = InternedInput::new(old, new);
        let mut diff = Diff::compute(Algorithm::Histogram, &input);
        diff.postprocess_lines(&input);
        let printer = PatchPrinter(&input.interner);
        let name = |prefix: &str, is_there: bool| match is_there {
            true if path.chars().any(char::is_control) => format!("{:?}", format!("{prefix}{path}")),
            true => format!("{prefix}{path}"),
            false => "/dev/null".to_owned(),
        };
        let mut text = format!("--- {}\n+++ {}\n", name("a", before.is_some()), name("b", after.is_some()));
        write!(text, "{}", diff.unified_diff(&printer, UnifiedDiffConfig::default(), &input)).ok()?;
        self.room = self.room.checked_sub(text.len())?;
        Some(text)
    }
}

/// Writes a diff as `patch` and `git apply` read it: a side without lines begins at the line before it, and a last line without
/// an end is marked.
struct PatchPrinter<'a>(&'a Interner<&'a str>);

impl PatchPrinter<'_> {
    fn line(&self, f: &mut impl fmt::Write, sign: char, token: Token) -> fmt::Result {
        let line = self.0[token];
        write!(f, "{sign}{line}")?;
        if line.ends_with('\n') { Ok(()) } else { f.write_str("\n\\ No newline at end of file\n") }
    }
}

impl UnifiedDiffPrinter for PatchPrinter<'_> {
    fn display_header(
        &self,
        mut f: impl fmt::Write,
        start_before: u32,
        start_after: u32,
        len_before: u32,
        len_after: u32,
    ) -> fmt::Result {
        let first = |start: u32, len: u32| if len == 0 { start } else { start + 1 };
        let (before, after) = (first(start_before, len_before), first(start_after, len_after));
        writeln!(f, "@@ -{before},{len_before} +{after},{len_after} @@")
    }

    fn display_context_token(&self, mut f: impl fmt::Write, token: Token) -> fmt::Result {
        self.line(&mut f, ' ', token)
    }

    fn display_hunk(&self, mut f: impl fmt::Write, before: &[Token], after: &[Token]) -> fmt::Result {
        before.iter().try_for_each(|token| self.line(&mut f, '-', *token))?;
        after.iter().try_for_each(|token| self.line(&mut f, '+', *token))
    }
}

/// Returns the bytes as text, if they are.
fn text_of(bytes: &[u8]) -> Option<&str> {
    std::str::from_utf8(bytes).ok().filter(|text| !text.contains('\0'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_diff_is_unified_and_names_what_is_not_there() {
        let mut diffs = TextDiffs::new(true);
        let changed = diffs.diff("/w/a", Some(b"one\ntwo\nthree\n"), Some(b"one\n2\nthree")).unwrap();
        let expected = "--- a/w/a\n+++ b/w/a\n@@ -1,3 +1,3 @@\n one\n-two\n-three\n+2\n+three\n\\ No newline at end of file\n";
        assert_eq!(changed, expected);
        let added = diffs.diff("/n", None, Some(b"x\n")).unwrap();
        assert_eq!(added, "--- /dev/null\n+++ b/n\n@@ -0,0 +1,1 @@\n+x\n");
        let removed = diffs.diff("/n", Some(b"x\n"), None).unwrap();
        assert!(removed.starts_with("--- a/n\n+++ /dev/null\n"), "{removed}");
        assert_eq!(diffs.diff("/a\nb", Some(b"x"), None).unwrap().lines().next(), Some("--- \"a/a\\nb\""));
    }

    #[test]
    fn what_is_no_text_or_too_much_has_no_diff() {
        let mut diffs = TextDiffs::new(true);
        for bytes in [&b"a\0b"[..], b"\xff"] {
            assert_eq!(diffs.diff("/a", Some(bytes), Some(b"x\n")), None);
        }
        assert!(!diffs.may_read([MAX_FILE_BYTES + 1, 0]) && diffs.may_read([MAX_FILE_BYTES; 2]));
        let large = "x\n".repeat(FileChanges::MAX_TEXT_BYTES / 5);
        assert!(diffs.diff("/a", None, Some(large.as_bytes())).is_some());
        assert_eq!(diffs.diff("/b", None, Some(large.as_bytes())), None);
        assert!(!TextDiffs::new(false).may_read([1, 1]));
    }
}
