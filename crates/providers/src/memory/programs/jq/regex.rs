//! Regular expressions of `jq`: matches with their groups, and what stands between them.

use fancy_regex::{Captures, Regex, RegexBuilder};

use super::meter;
use super::ops::{error, wrong};
use super::value::{Error, JqText, JqValue};

/// The steps that one match may take back.
const MAX_STEPS: usize = 1_000_000;
const MAX_PROGRAM_BYTES: usize = 10 << 20;

/// A pattern with its flags.
struct JqPattern {
    regex: Regex,
    is_global: bool,
    passes_empty: bool,
}

impl JqPattern {
    /// Reads a pattern. An array is a pattern with flags.
    fn new(pattern: &JqValue, flags: &JqValue) -> Result<Self, Error> {
        let (pattern, flags) = match pattern {
            JqValue::Array(both) if !both.is_empty() => {
                (both[0].clone(), both.get(1).cloned().unwrap_or_else(|| flags.clone()))
            }
            other => (other.clone(), flags.clone()),
        };
        let JqValue::JqText(text) = &pattern else {
            return Err(wrong(&pattern, "cannot be matched, as it is not a string"));
        };
        let flags = match &flags {
            JqValue::Null => JqText::new(""),
            JqValue::JqText(flags) => flags.clone(),
            other => return Err(wrong(other, "is not a string")),
        };
        let mut builder = RegexBuilder::new(text);
        builder.backtrack_limit(MAX_STEPS).delegate_size_limit(MAX_PROGRAM_BYTES);
        let (mut is_global, mut passes_empty) = (false, false);
        for flag in flags.chars() {
            match flag {
                'g' => is_global = true,
                'n' => passes_empty = true,
                'i' => drop(builder.case_insensitive(true)),
                'x' => drop(builder.ignore_whitespace(true)),
                'p' => drop(builder.dot_matches_new_line(true)),
                'm' => drop(builder.multi_line(true)),
                's' | 'l' => {}
                _ => return Err(error(format!("{} is not a valid modifier string", &*flags))),
            }
        }
        let regex = builder
            .build()
            .map_err(|wrong| error(format!("{} (at offset 0) is not a valid regex: {wrong}", &**text)))?;
        Ok(Self { regex, is_global, passes_empty })
    }

    /// Calls for every match.
    fn each(
        &self,
        text: &str,
        mut visit: impl FnMut(&Captures<'_, str>) -> Result<bool, Error>,
    ) -> Result<(), Error> {
        for captures in self.regex.captures_iter(text) {
            meter::tick();
            let captures = captures.map_err(|wrong| error(format!("Regex failure: {wrong}")))?;
            if self.passes_empty && captures.get(0).is_none_or(|whole| whole.as_str().is_empty()) {
                continue;
            }
            if !visit(&captures)? || !self.is_global {
                break;
            }
        }
        Ok(())
    }
}

/// Counts letters to a place in a text, mostly onwards from the last one.
struct Letters<'a> {
    text: &'a str,
    byte: usize,
    count: usize,
}

impl Letters<'_> {
    fn to(&mut self, byte: usize) -> usize {
        if byte < self.byte {
            (self.byte, self.count) = (0, 0);
        }
        self.count += self.text[self.byte..byte].chars().count();
        self.byte = byte;
        self.count
    }
}

fn found(names: &[Option<&str>], captures: &Captures<'_, str>, letters: &mut Letters<'_>) -> JqValue {
    let one = |letters: &mut Letters<'_>, group: usize| match captures.get(group) {
        Some(found) => {
            let offset = letters.to(found.start());
            let length = found.as_str().chars().count();
            (JqValue::from(offset), JqValue::from(length), JqValue::text(found.as_str()))
        }
        None => (JqValue::from(-1_isize), JqValue::from(0_usize), JqValue::Null),
    };
    let (offset, length, string) = one(letters, 0);
    let groups = (1..captures.len()).map(|group| {
        let (offset, length, string) = one(letters, group);
        let name = names.get(group).copied().flatten().map_or(JqValue::Null, JqValue::text);
        JqValue::fields([("offset", offset), ("length", length), ("string", string), ("name", name)])
    });
    let groups = groups.collect();
    JqValue::fields([("offset", offset), ("length", length), ("string", string), ("captures", groups)])
}

fn subject(input: &JqValue) -> Result<&JqText, Error> {
    match input {
        JqValue::JqText(text) => Ok(text),
        other => Err(wrong(other, "cannot be matched, as it is not a string")),
    }
}

/// Lists the matches in a text; only the first if it matters whether there is one.
pub(super) fn matches(
    input: &JqValue,
    pattern: &JqValue,
    flags: &JqValue,
    is_test: bool,
) -> Result<Vec<JqValue>, Error> {
    let text = subject(input)?;
    let pattern = JqPattern::new(pattern, flags)?;
    let names: Vec<_> = pattern.regex.capture_names().collect();
    let mut letters = Letters { text, byte: 0, count: 0 };
    let mut all = Vec::new();
    pattern.each(text, |captures| {
        all.push(if is_test { JqValue::Null } else { found(&names, captures, &mut letters) });
        Ok(!is_test)
    })?;
    Ok(all)
}

/// Cuts a text at its matches: text, match, text and so on.
pub(super) fn pieces(input: &JqValue, pattern: &JqValue, flags: &JqValue) -> Result<JqValue, Error> {
    let text = subject(input)?;
    let pattern = JqPattern::new(pattern, flags)?;
    let names: Vec<_> = pattern.regex.capture_names().collect();
    let mut letters = Letters { text, byte: 0, count: 0 };
    let mut all = Vec::new();
    let mut at = 0;
    pattern.each(text, |captures| {
        if let Some(whole) = captures.get(0) {
            all.push(JqValue::text(&text[at..whole.start()]));
            all.push(found(&names, captures, &mut letters));
            at = whole.end();
        }
        Ok(true)
    })?;
    all.push(JqValue::text(&text[at..]));
    Ok(JqValue::array(all))
}
