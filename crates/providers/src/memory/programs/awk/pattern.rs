//! Patterns of `awk`: extended regular expressions over bytes, with mawk's syntax and the longest match.

use std::cell::{OnceCell, RefCell};
use std::ops::Range;

use regex::bytes::{Regex, RegexBuilder};
use regex_automata::hybrid::dfa::{Cache, DFA};
use regex_automata::nfa::thompson;
use regex_automata::util::syntax;
use regex_automata::{Anchored, Input, MatchKind};

use crate::memory::programs::byte_classes::byte_class;

/// The most bytes that a compiled pattern may take.
const MAX_PATTERN_BYTES: usize = 2 << 20;
const MISSING: &str = "missing operand";
const BAD_CLASS: &str = "bad class -- [], [^] or [";

/// A compiled pattern.
pub(super) struct AwkPattern {
    regex: Regex,
    source: String,
    /// Set if the regex may find a shorter match than the longest one.
    is_ambiguous: bool,
    longest: OnceCell<Option<LongestMatcher>>,
}

struct LongestMatcher {
    dfa: DFA,
    cache: RefCell<Cache>,
}

impl AwkPattern {
    /// Compiles a pattern.
    ///
    /// # Errors
    /// The reason in mawk's words.
    pub(super) fn new(pattern: &[u8]) -> Result<Self, &'static str> {
        let mut rewriter = Rewriter::new(pattern);
        rewriter.rewrite()?;
        let is_ambiguous = rewriter.choices > 1;
        let source = format!("(?s-u){}", rewriter.out);
        let regex = RegexBuilder::new(&source).size_limit(MAX_PATTERN_BYTES).build();
        let regex = regex.map_err(|_| "it is too large")?;
        Ok(Self { regex, source, is_ambiguous, longest: OnceCell::new() })
    }

    pub(super) fn is_match(&self, text: &[u8]) -> bool {
        self.regex.is_match(text)
    }

    /// Finds the leftmost longest match that begins at `from` or later.
    pub(super) fn find_at(&self, text: &[u8], from: usize) -> Option<Range<usize>> {
        let found = self.regex.find_at(text, from)?.range();
        if !self.is_ambiguous {
            return Some(found);
        }
        let longest = self.longest.get_or_init(|| LongestMatcher::new(&self.source)).as_ref();
        let end = longest.and_then(|longest| longest.end(text, found.start)).unwrap_or(found.end);
        Some(found.start..end)
    }
}

impl LongestMatcher {
    fn new(source: &str) -> Option<Self> {
        let dfa = DFA::builder()
            .configure(DFA::config().match_kind(MatchKind::All).skip_cache_capacity_check(true))
            .thompson(thompson::Config::new().utf8(false).nfa_size_limit(Some(MAX_PATTERN_BYTES)))
            .syntax(syntax::Config::new().utf8(false))
            .build(source)
            .ok()?;
        let cache = RefCell::new(dfa.create_cache());
        Some(Self { dfa, cache })
    }

    fn end(&self, text: &[u8], start: usize) -> Option<usize> {
        let input = Input::new(text).range(start..).anchored(Anchored::Yes);
        let found = self.dfa.try_search_fwd(&mut self.cache.borrow_mut(), &input).ok()??;
        Some(found.offset())
    }
}

/// Rewrites a pattern for the crate `regex`.
struct Rewriter<'a> {
    rest: &'a [u8],
    out: String,
    /// The number of choices between matches of different lengths.
    choices: usize,
    /// The positions of the open groups.
    open: Vec<usize>,
    /// The position of the last operand in `out`.
    operand: Option<usize>,
    after_start: bool,
}

impl<'a> Rewriter<'a> {
    fn new(pattern: &'a [u8]) -> Self {
        Self {
            rest: pattern,
            out: String::new(),
            choices: 0,
            open: Vec::new(),
            operand: None,
            after_start: false,
        }
    }

    fn rewrite(&mut self) -> Result<(), &'static str> {
        if self.rest.is_empty() {
            return Ok(());
        }
        while let Some((byte, behind)) = self.rest.split_first() {
            self.rest = behind;
            let was_start = std::mem::take(&mut self.after_start);
            match byte {
                b'*' | b'+' | b'?' => self.repeat(char::from(*byte), was_start)?,
                b'(' => {
                    self.open.push(self.out.len());
                    self.out.push_str("(?:");
                    self.operand = None;
                }
                b')' if !self.open.is_empty() => {
                    self.end_branch()?;
                    self.operand = self.open.pop();
                    self.out.push(')');
                }
                b'|' => {
                    self.end_branch()?;
                    self.choices += 2;
                    self.out.push('|');
                    self.operand = None;
                }
                b'^' => {
                    self.add("\\A");
                    self.after_start = true;
                }
                b'$' => self.add("\\z"),
                b'.' => self.add("."),
                b'[' => {
                    let set = BracketSet::read(&mut self.rest).ok_or(BAD_CLASS)?;
                    self.add(&set.text());
                }
                b'\\' => {
                    let byte = escaped(&mut self.rest);
                    self.add(&literal(byte));
                }
                other => self.add(&literal(*other)),
            }
        }
        if !self.open.is_empty() {
            return Err("missing ')'");
        }
        self.end_branch()
    }

    fn add(&mut self, operand: &str) {
        self.operand = Some(self.out.len());
        self.out.push_str(operand);
    }

    fn end_branch(&self) -> Result<(), &'static str> {
        if self.operand.is_some() { Ok(()) } else { Err(MISSING) }
    }

    fn repeat(&mut self, sign: char, after_start: bool) -> Result<(), &'static str> {
        if after_start {
            return Err("syntax error ^* or ^+");
        }
        let operand = self.operand.ok_or(MISSING)?;
        self.choices += 1;
        self.out.insert_str(operand, "(?:");
        self.out.push(')');
        self.out.push(sign);
        Ok(())
    }
}

fn literal(byte: u8) -> String {
    if byte.is_ascii_alphanumeric() { char::from(byte).to_string() } else { format!("\\x{byte:02x}") }
}

/// Reads the rest of an escape after the backslash.
fn escaped(rest: &mut &[u8]) -> u8 {
    let Some((byte, behind)) = rest.split_first() else { return b'\\' };
    *rest = behind;
    match byte {
        b'a' => 7,
        b'b' => 8,
        b'f' => 12,
        b'n' => b'\n',
        b'r' => b'\r',
        b't' => b'\t',
        b'v' => 11,
        b'0'..=b'7' => {
            let mut value = u32::from(byte - b'0');
            for _ in 0..2 {
                let Some((digit @ b'0'..=b'7', behind)) = rest.split_first() else { break };
                value = value * 8 + u32::from(digit - b'0');
                *rest = behind;
            }
            value.to_le_bytes()[0]
        }
        other => *other,
    }
}

/// A set of bytes, such as `[a-z]`.
struct BracketSet([bool; 256]);

impl BracketSet {
    /// Reads a set after its opening bracket. `None`: the set does not end, or has an unknown class.
    fn read(rest: &mut &[u8]) -> Option<Self> {
        let mut set = [false; 256];
        let is_negated = rest.strip_prefix(b"^").inspect(|behind| *rest = behind).is_some();
        let mut is_first = true;
        // The byte that a range may begin with.
        let mut last: Option<u8> = None;
        loop {
            let (byte, behind) = rest.split_first()?;
            *rest = behind;
            let was_first = std::mem::take(&mut is_first);
            match byte {
                b']' if !was_first => break,
                b'[' if rest.first() == Some(&b':') => {
                    add_class(&mut set, rest)?;
                    last = None;
                    continue;
                }
                b'-' if last.is_some() && rest.first().is_some_and(|next| *next != b']') => {
                    let from = last.take()?;
                    let (mut to, behind) = rest.split_first()?;
                    *rest = behind;
                    let other;
                    if *to == b'\\' {
                        other = escaped(rest);
                        to = &other;
                    }
                    (from.min(*to)..=from.max(*to)).for_each(|byte| set[usize::from(byte)] = true);
                    continue;
                }
                _ => {}
            }
            let byte = if *byte == b'\\' { escaped(rest) } else { *byte };
            set[usize::from(byte)] = true;
            last = Some(byte);
        }
        if is_negated {
            set.iter_mut().for_each(|is_in| *is_in = !*is_in);
        }
        Some(Self(set))
    }

    fn text(&self) -> String {
        let bytes: String = (0..=255_u8)
            .filter(|byte| self.0[usize::from(*byte)])
            .map(|byte| format!("\\x{byte:02x}"))
            .collect();
        if bytes.is_empty() { "[^\\x00-\\xff]".to_owned() } else { format!("[{bytes}]") }
    }
}

fn add_class(set: &mut [bool; 256], rest: &mut &[u8]) -> Option<()> {
    let end = rest.windows(2).position(|pair| pair == b":]").filter(|at| *at > 0)?;
    let class = byte_class(&rest[1..end])?;
    (0..=255_u8).filter(|byte| (class.has)(*byte)).for_each(|byte| set[usize::from(byte)] = true);
    *rest = &rest[end + 2..];
    Some(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_leftmost_longest_match_is_found() {
        for (pattern, text, found) in [
            ("ab|abcd", "xabcd", Some(1..5)),
            ("a?(ab)?", "ab", Some(0..2)),
            ("a{2}", "aa a{2}", Some(3..7)),
            ("[[:alpha:]]+[0-9]", "--ab1", Some(2..5)),
            ("[]a]+", "x]a", Some(1..3)),
            ("[^]a]", "]ab", Some(2..3)),
            ("a+*", "aab", Some(0..2)),
            (")", "a)", Some(1..2)),
            ("[a\\]]+$", "a]", Some(0..2)),
            ("\\.\\<\\w", ".<w", Some(0..3)),
            ("[\\/]", "a/b", Some(1..2)),
            ("", "a", Some(0..0)),
            ("a^b", "a^b", None),
            ("é", "é", Some(0..2)),
        ] {
            assert_eq!(
                AwkPattern::new(pattern.as_bytes()).unwrap().find_at(text.as_bytes(), 0),
                found,
                "{pattern}"
            );
        }
    }

    #[test]
    fn a_wrong_pattern_is_refused_in_the_words_of_mawk() {
        for (pattern, reason) in [
            ("+", MISSING),
            ("()", MISSING),
            ("a||b", MISSING),
            ("a|", MISSING),
            ("(", "missing ')'"),
            ("(a", "missing ')'"),
            ("[a", BAD_CLASS),
            ("[[:foo:]]", BAD_CLASS),
            ("^*", "syntax error ^* or ^+"),
        ] {
            assert_eq!(AwkPattern::new(pattern.as_bytes()).err(), Some(reason), "{pattern}");
        }
    }
}
