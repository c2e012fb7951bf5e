//! Values as text: on one line or several, in the order of their keys or sorted.

use std::fmt::{self, Write as _};

use super::meter;
use super::value::{JqText, JqValue, Map};

/// The way in which values are printed.
#[derive(Debug, Clone, Default)]
pub(super) struct JqStyle {
    /// The text of one level, if values take several lines.
    pub indent: Option<String>,
    pub sorts: bool,
    pub ascii: bool,
}

impl fmt::Display for JqValue {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&compact(self))
    }
}

/// A value on one line.
pub(super) fn compact(value: &JqValue) -> String {
    text(value, &JqStyle::default())
}

/// A value in a style.
pub(super) fn text(value: &JqValue, style: &JqStyle) -> String {
    let mut writer = JqWriter { out: String::new(), style, checked: 0 };
    writer.value(value, 0);
    writer.out
}

/// A number as `jq` prints it: 17 digits at most, and no more than it needs.
pub(super) fn number(number: f64) -> String {
    if number.is_nan() {
        return "null".to_owned();
    }
    let number = number.clamp(f64::MIN, f64::MAX);
    if number == 0.0 {
        return if number.is_sign_negative() { "-0" } else { "0" }.to_owned();
    }
    let shortest = format!("{number:e}");
    let (digits, exponent) = shortest.split_once('e').unwrap_or((&shortest, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    let count = i32::try_from(digits.chars().filter(char::is_ascii_digit).count()).unwrap_or(17);
    if exponent < -4 || exponent >= count + 15 {
        let sign = if exponent < 0 { '-' } else { '+' };
        return format!("{digits}e{sign}{:02}", exponent.abs());
    }
    format!("{number}")
}

struct JqWriter<'a> {
    out: String,
    style: &'a JqStyle,
    /// The bytes that the meter knows of.
    checked: usize,
}

impl JqWriter<'_> {
    fn value(&mut self, value: &JqValue, level: usize) {
        meter::tick();
        if self.out.len() > self.checked {
            meter::check(self.out.len() * 2);
            self.checked = self.out.len() + (64 << 10);
        }
        match value {
            JqValue::Null => self.out.push_str("null"),
            JqValue::Bool(value) => self.out.push_str(if *value { "true" } else { "false" }),
            JqValue::Number(value) => self.out.push_str(&number(*value)),
            JqValue::JqText(text) => self.string(text),
            JqValue::Array(items) if items.is_empty() => self.out.push_str("[]"),
            JqValue::Object(map) if map.is_empty() => self.out.push_str("{}"),
            JqValue::Array(items) => self.array(items, level),
            JqValue::Object(map) => self.object(map, level),
        }
    }

    fn line(&mut self, level: usize) {
        if let Some(indent) = &self.style.indent {
            self.out.push('\n');
            for _ in 0..level {
                self.out.push_str(indent);
            }
        }
    }

    fn array(&mut self, items: &[JqValue], level: usize) {
        for (at, item) in items.iter().enumerate() {
            self.out.push(if at == 0 { '[' } else { ',' });
            self.line(level + 1);
            self.value(item, level + 1);
        }
        self.line(level);
        self.out.push(']');
    }

    fn object(&mut self, map: &Map, level: usize) {
        let mut pairs: Vec<(&JqText, &JqValue)> = map.iter().collect();
        if self.style.sorts {
            pairs.sort_unstable_by_key(|(key, _)| *key);
        }
        for (at, (key, value)) in pairs.into_iter().enumerate() {
            self.out.push(if at == 0 { '{' } else { ',' });
            self.line(level + 1);
            self.string(key);
            self.out.push_str(if self.style.indent.is_some() { ": " } else { ":" });
            self.value(value, level + 1);
        }
        self.line(level);
        self.out.push('}');
    }

    fn string(&mut self, text: &str) {
        self.out.push('"');
        for letter in text.chars() {
            match letter {
                '"' => self.out.push_str("\\\""),
                '\\' => self.out.push_str("\\\\"),
                '\n' => self.out.push_str("\\n"),
                '\t' => self.out.push_str("\\t"),
                '\r' => self.out.push_str("\\r"),
                '\u{8}' => self.out.push_str("\\b"),
                '\u{c}' => self.out.push_str("\\f"),
                letter if letter < ' ' || letter == '\u{7f}' => self.escape(letter),
                letter if self.style.ascii && !letter.is_ascii() => self.escape(letter),
                letter => self.out.push(letter),
            }
        }
        self.out.push('"');
    }

    fn escape(&mut self, letter: char) {
        for unit in letter.encode_utf16(&mut [0; 2]) {
            let _infallible = write!(self.out, "\\u{unit:04x}");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_printed_as_jq_prints_them() {
        for (value, text) in [
            (1e15, "1000000000000000"),
            (1e16, "1e+16"),
            (1e17, "1e+17"),
            (1.5e16, "15000000000000000"),
            (1.5e17, "1.5e+17"),
            (1e-4, "0.0001"),
            (1e-5, "1e-05"),
            (12_345_678_901_234_567_890.0, "12345678901234567000"),
            (f64::INFINITY, "1.7976931348623157e+308"),
            (-0.0, "-0"),
            (3.10, "3.1"),
            (0.1 + 0.2, "0.30000000000000004"),
            (5e-324, "5e-324"),
            (f64::NAN, "null"),
        ] {
            assert_eq!(number(value), text);
        }
    }

    #[test]
    fn styles_differ_in_lines_order_and_letters() {
        let value =
            JqValue::fields([("b", JqValue::array(vec![JqValue::Null])), ("a", JqValue::text("é\u{7f}"))]);
        assert_eq!(compact(&value), "{\"b\":[null],\"a\":\"é\\u007f\"}");
        let style = JqStyle { indent: Some(" ".to_owned()), sorts: true, ascii: true };
        assert_eq!(text(&value, &style), "{\n \"a\": \"\\u00e9\\u007f\",\n \"b\": [\n  null\n ]\n}");
    }
}
