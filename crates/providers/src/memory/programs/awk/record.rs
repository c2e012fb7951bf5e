//! The current record, and its fields.

use std::ops::Range;
use std::rc::Rc;

use super::pattern::AwkPattern;
use super::text::AwkText;
use super::value::AwkValue;

/// The most fields in a record.
pub(super) const MAX_FIELDS: usize = 1 << 20;

/// The rule for the separators between fields.
#[derive(Clone)]
pub(super) enum FieldRule {
    Blanks,
    Byte(u8),
    /// No separator: each byte is a field.
    Bytes,
    Pattern(Rc<AwkPattern>),
}

impl FieldRule {
    /// Splits a text into pieces. At most one piece more than the limit is returned, which shows that there are too many.
    pub(super) fn split(&self, text: &[u8]) -> Vec<Range<usize>> {
        const MOST: usize = MAX_FIELDS + 1;
        match self {
            Self::Blanks => blank_pieces(text),
            _ if text.is_empty() => Vec::new(),
            Self::Bytes => (0..text.len()).map(|at| at..at + 1).take(MOST).collect(),
            Self::Byte(byte) => {
                let ends = memchr::memchr_iter(*byte, text).chain([text.len()]);
                let mut start = 0;
                ends.map(|end| std::mem::replace(&mut start, end + 1)..end).take(MOST).collect()
            }
            Self::Pattern(pattern) => pattern_pieces(text, pattern),
        }
    }
}

fn blank_pieces(text: &[u8]) -> Vec<Range<usize>> {
    let mut pieces = Vec::new();
    let mut start = None;
    for (at, byte) in text.iter().enumerate() {
        if matches!(byte, b' ' | b'\t' | b'\n') {
            pieces.extend(start.take().map(|start| start..at));
            if pieces.len() > MAX_FIELDS {
                return pieces;
            }
        } else if start.is_none() {
            start = Some(at);
        }
    }
    pieces.extend(start.map(|start| start..text.len()));
    pieces
}

fn pattern_pieces(text: &[u8], pattern: &AwkPattern) -> Vec<Range<usize>> {
    let mut pieces = Vec::new();
    let (mut start, mut from) = (0, 0);
    while let Some(found) = pattern.find_at(text, from) {
        if found.is_empty() {
            from = found.end + 1;
            if from > text.len() {
                break;
            }
            continue;
        }
        pieces.push(start..found.start);
        if pieces.len() > MAX_FIELDS {
            return pieces;
        }
        (start, from) = (found.end, found.end);
    }
    pieces.push(start..text.len());
    pieces
}

/// The record and its fields. Each is made from the other when it is needed.
pub(super) struct AwkRecord {
    text: AwkValue,
    /// Set if the text must be rebuilt from the fields.
    is_stale: bool,
    fields: Vec<AwkValue>,
    is_split: bool,
    /// The rule that applied when the record was read.
    rule: FieldRule,
}

impl AwkRecord {
    pub(super) fn new() -> Self {
        Self {
            text: AwkValue::Unset,
            is_stale: false,
            fields: Vec::new(),
            is_split: true,
            rule: FieldRule::Blanks,
        }
    }

    /// Sets the record.
    pub(super) fn set(&mut self, text: AwkValue) {
        self.text = text;
        self.is_stale = false;
        self.is_split = false;
    }

    /// Sets the rule for later records. The current record is split with the old rule first.
    pub(super) fn set_rule(&mut self, rule: FieldRule) {
        self.split();
        self.rule = rule;
    }

    pub(super) fn text(&mut self, separator: &AwkText, format: &AwkText) -> AwkValue {
        if std::mem::take(&mut self.is_stale) {
            let mut text = Vec::new();
            for (at, field) in self.fields.iter().enumerate() {
                if at > 0 {
                    text.extend_from_slice(separator.bytes());
                }
                field.append_to(&mut text, format);
            }
            self.text = AwkValue::input(text);
        }
        self.text.clone()
    }

    fn split(&mut self) {
        if std::mem::replace(&mut self.is_split, true) {
            return;
        }
        let usual = AwkText::from("%.6g");
        let text = self.text.to_text(&usual);
        let pieces = self.rule.split(text.bytes());
        self.fields.clear();
        self.fields.extend(pieces.into_iter().map(|piece| AwkValue::input(&text.bytes()[piece])));
    }

    /// Returns whether the record has too many fields.
    pub(super) fn has_too_many(&self) -> bool {
        self.fields.len() > MAX_FIELDS
    }

    pub(super) fn count(&mut self) -> usize {
        self.split();
        self.fields.len()
    }

    /// Returns the field with this number, counted from 1.
    pub(super) fn field(&mut self, number: usize) -> AwkValue {
        self.split();
        self.fields.get(number - 1).cloned().unwrap_or(AwkValue::Unset)
    }

    /// Sets a field. Returns `false` if that would be too many fields.
    pub(super) fn set_field(&mut self, number: usize, value: AwkValue) -> bool {
        self.split();
        if number > self.fields.len() && !self.set_count(number) {
            return false;
        }
        self.fields[number - 1] = value;
        self.is_stale = true;
        true
    }

    /// Removes fields, or adds empty ones. Returns `false` if that would be too many fields.
    pub(super) fn set_count(&mut self, count: usize) -> bool {
        if count > MAX_FIELDS {
            return false;
        }
        self.split();
        self.fields.resize(count, AwkValue::text(&b""[..]));
        self.is_stale = true;
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pieces(rule: &FieldRule, text: &str) -> Vec<String> {
        rule.split(text.as_bytes()).into_iter().map(|piece| text[piece].to_owned()).collect()
    }

    #[test]
    fn fields_stand_between_what_separates_them() {
        let pattern = |text: &str| FieldRule::Pattern(Rc::new(AwkPattern::new(text.as_bytes()).unwrap()));
        assert_eq!(pieces(&FieldRule::Blanks, "  a b\t\nc "), ["a", "b", "c"]);
        assert_eq!(pieces(&FieldRule::Byte(b':'), ":a:"), ["", "a", ""]);
        assert_eq!(pieces(&FieldRule::Bytes, "ab"), ["a", "b"]);
        assert_eq!(pieces(&pattern("[:,]+"), "a::b,c"), ["a", "b", "c"]);
        assert_eq!(pieces(&pattern("x*"), "axxb"), ["a", "b"]);
        assert_eq!(pieces(&FieldRule::Byte(b':'), ""), [""; 0]);
    }
}
