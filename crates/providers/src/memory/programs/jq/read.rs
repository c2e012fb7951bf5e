//! Reads JSON as it comes, byte by byte, and says where it is wrong in the words of `jq`.

use super::meter::MAX_DEPTH;
use super::value::{JqText, JqValue, Map};

/// Something that is not closed yet.
enum OpenValue {
    Array(Vec<JqValue>),
    Object(Map),
    /// A key whose value comes next.
    Key(JqText),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Normal,
    JqText,
    Escape,
}

/// A reader of values, one after the other.
pub(super) struct JqReader {
    open: Vec<OpenValue>,
    next: Option<JqValue>,
    token: Vec<u8>,
    state: State,
    line: u64,
    column: u64,
}

impl JqReader {
    pub(super) fn new() -> Self {
        Self { open: Vec::new(), next: None, token: Vec::new(), state: State::Normal, line: 1, column: 0 }
    }

    /// Takes a byte, and returns the value that it ends.
    ///
    /// # Errors
    /// The fault, with its place.
    pub(super) fn take(&mut self, byte: u8) -> Result<Option<JqValue>, String> {
        self.column += 1;
        if byte == b'\n' {
            self.line += 1;
            self.column = 0;
        }
        self.scan(byte).map_err(|what| format!("{what} at line {}, column {}", self.line, self.column))
    }

    /// Takes the end of the text, and returns the value that it ends.
    ///
    /// # Errors
    /// The missing thing, with its place.
    pub(super) fn end(&mut self) -> Result<Option<JqValue>, String> {
        let at = format!("at EOF at line {}, column {}", self.line, self.column);
        if self.state != State::Normal {
            return Err(format!("Unfinished string {at}"));
        }
        self.literal().map_err(|what| format!("{what} {at}"))?;
        if !self.open.is_empty() {
            return Err(format!("Unfinished JSON term {at}"));
        }
        Ok(self.next.take())
    }

    fn scan(&mut self, byte: u8) -> Result<Option<JqValue>, &'static str> {
        match self.state {
            State::JqText => match byte {
                b'"' => {
                    self.state = State::Normal;
                    let bytes = std::mem::take(&mut self.token);
                    let text = unescaped(&String::from_utf8_lossy(&bytes))?;
                    self.value(JqValue::text(text))?;
                    return Ok(self.done());
                }
                b'\\' => {
                    self.state = State::Escape;
                    self.token.push(byte);
                }
                _ => self.token.push(byte),
            },
            State::Escape => {
                self.state = State::JqText;
                self.token.push(byte);
            }
            State::Normal => match byte {
                b' ' | b'\t' | b'\r' | b'\n' => {
                    self.literal()?;
                    return Ok(self.done());
                }
                b'[' | b'{' | b']' | b'}' | b':' | b',' => {
                    self.literal()?;
                    if matches!(byte, b':' | b',') && self.open.is_empty() && self.next.is_some() {
                        // A value before it has ended already.
                        self.next = None;
                    }
                    self.structure(byte)?;
                    return Ok(self.done());
                }
                b'"' => {
                    self.literal()?;
                    let done = self.done();
                    self.state = State::JqText;
                    return Ok(done);
                }
                _ => self.token.push(byte),
            },
        }
        Ok(None)
    }

    fn done(&mut self) -> Option<JqValue> {
        if self.open.is_empty() { self.next.take() } else { None }
    }

    fn value(&mut self, value: JqValue) -> Result<(), &'static str> {
        if self.next.is_some() {
            return Err("Expected separator between values");
        }
        self.next = Some(value);
        Ok(())
    }

    fn literal(&mut self) -> Result<(), &'static str> {
        if self.token.is_empty() {
            return Ok(());
        }
        let token = std::mem::take(&mut self.token);
        let (word, value) = match token[0] {
            b't' => (&b"true"[..], JqValue::Bool(true)),
            b'f' => (&b"false"[..], JqValue::Bool(false)),
            b'n' => (&b"null"[..], JqValue::Null),
            _ => return self.value(JqValue::Number(number(&token).ok_or("Invalid numeric literal")?)),
        };
        if token != word {
            return Err("Invalid literal");
        }
        self.value(value)
    }

    fn open(&mut self, open: OpenValue) -> Result<(), &'static str> {
        if self.next.is_some() {
            return Err("Expected separator between values");
        }
        if self.open.len() >= MAX_DEPTH as usize {
            return Err("Exceeds depth limit for parsing");
        }
        self.open.push(open);
        Ok(())
    }

    fn structure(&mut self, byte: u8) -> Result<(), &'static str> {
        match byte {
            b'[' => self.open(OpenValue::Array(Vec::new())),
            b'{' => self.open(OpenValue::Object(Map::default())),
            b':' => self.colon(),
            b',' => self.comma(),
            b']' => self.close_array(),
            _ => self.close_object(),
        }
    }

    fn colon(&mut self) -> Result<(), &'static str> {
        let Some(next) = self.next.take() else { return Err("Expected string key before ':'") };
        if !matches!(self.open.last(), Some(OpenValue::Object(_))) {
            return Err("':' not as part of an object");
        }
        let JqValue::JqText(key) = next else { return Err("Object keys must be strings") };
        self.open.push(OpenValue::Key(key));
        Ok(())
    }

    fn comma(&mut self) -> Result<(), &'static str> {
        let Some(next) = self.next.take() else { return Err("Expected value before ','") };
        match self.open.last_mut() {
            Some(OpenValue::Array(items)) => {
                super::meter::check(items.len() * size_of::<JqValue>());
                items.push(next);
                Ok(())
            }
            Some(OpenValue::Key(_)) => {
                self.put(next);
                Ok(())
            }
            _ => Err("Objects must consist of key:value pairs"),
        }
    }

    /// Puts a value under the key that is open.
    fn put(&mut self, value: JqValue) {
        if let Some(OpenValue::Key(key)) = self.open.pop()
            && let Some(OpenValue::Object(map)) = self.open.last_mut()
        {
            super::meter::check(map.len() * (size_of::<JqValue>() + 40));
            map.insert(key, value);
        }
    }

    fn close_array(&mut self) -> Result<(), &'static str> {
        let Some(OpenValue::Array(items)) = self.open.last_mut() else { return Err("Unmatched ']'") };
        match self.next.take() {
            Some(next) => items.push(next),
            None if items.is_empty() => {}
            None => return Err("Expected another array element"),
        }
        let items = std::mem::take(items);
        self.open.pop();
        self.next = Some(JqValue::array(items));
        Ok(())
    }

    fn close_object(&mut self) -> Result<(), &'static str> {
        if let Some(next) = self.next.take() {
            match self.open.last() {
                Some(OpenValue::Key(_)) => self.put(next),
                Some(OpenValue::Object(_)) => return Err("Objects must consist of key:value pairs"),
                _ => return Err("Unmatched '}'"),
            }
        } else {
            match self.open.last() {
                Some(OpenValue::Object(map)) if map.is_empty() => {}
                Some(OpenValue::Object(_)) => return Err("Expected another key-value pair"),
                _ => return Err("Unmatched '}'"),
            }
        }
        if let Some(OpenValue::Object(map)) = self.open.pop() {
            self.next = Some(JqValue::object(map));
        }
        Ok(())
    }
}

/// Reads a number, as generously as `jq` does.
fn number(token: &[u8]) -> Option<f64> {
    let text = std::str::from_utf8(token).ok()?;
    let is_number = text.bytes().all(|byte| byte.is_ascii_digit() || b"+-.eE".contains(&byte));
    let unsigned = text.trim_start_matches(['+', '-']).to_ascii_lowercase();
    if !is_number && !matches!(unsigned.as_str(), "nan" | "infinity" | "inf") {
        return None;
    }
    text.parse().ok()
}

/// Spells out the escapes of a string.
fn unescaped(text: &str) -> Result<String, &'static str> {
    const WRONG_PAIR: &str = "Invalid \\uXXXX\\uXXXX surrogate pair escape";
    let mut out = String::with_capacity(text.len());
    let mut left = text;
    while let Some(at) = left.find(|letter: char| letter == '\\' || letter < ' ') {
        out.push_str(&left[..at]);
        left = &left[at..];
        if !left.starts_with('\\') {
            return Err("Invalid string: control characters from U+0000 through U+001F must be escaped");
        }
        let letter = left[1..].chars().next().ok_or("Expected escape character at end of string")?;
        left = &left[1 + letter.len_utf8()..];
        out.push(match letter {
            '"' | '\\' | '/' => letter,
            'b' => '\u{8}',
            'f' => '\u{c}',
            'n' => '\n',
            'r' => '\r',
            't' => '\t',
            'u' => {
                let high = unit(&mut left)?;
                if (0xd800..0xdc00).contains(&high) {
                    left = left.strip_prefix("\\u").ok_or(WRONG_PAIR)?;
                    let low = unit(&mut left)?;
                    let pair = char::decode_utf16([high, low]).next();
                    pair.and_then(Result::ok).ok_or(WRONG_PAIR)?
                } else {
                    char::from_u32(u32::from(high)).ok_or(WRONG_PAIR)?
                }
            }
            _ => return Err("Invalid escape"),
        });
    }
    out.push_str(left);
    Ok(out)
}

fn unit(left: &mut &str) -> Result<u16, &'static str> {
    let wrong = "Invalid \\uXXXX escape";
    let digits = left.get(..4).filter(|digits| digits.bytes().all(|byte| byte.is_ascii_hexdigit()));
    let unit = u16::from_str_radix(digits.ok_or(wrong)?, 16).map_err(|_| wrong)?;
    *left = &left[4..];
    Ok(unit)
}

/// Reads a text that is one value. Nothing is `None`.
pub(super) fn one(text: &str) -> Result<Option<JqValue>, String> {
    let mut values = many(text)?;
    match values.len() {
        0 | 1 => Ok(values.pop()),
        _ => Err("Unexpected extra JSON values".to_owned()),
    }
}

/// Reads a text that is several values.
pub(super) fn many(text: &str) -> Result<Vec<JqValue>, String> {
    let mut reader = JqReader::new();
    let mut values = Vec::new();
    for byte in text.trim_start_matches('\u{feff}').bytes() {
        values.extend(reader.take(byte)?);
    }
    values.extend(reader.end()?);
    Ok(values)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wrong(text: &str) -> String {
        many(text).unwrap_err()
    }

    #[test]
    fn errors_have_the_words_and_places_of_jq() {
        for (text, expected) in [
            ("{\n", "Unfinished JSON term at EOF at line 2, column 0"),
            ("not json\n", "Invalid literal at line 1, column 4"),
            ("tru", "Invalid literal at EOF at line 1, column 3"),
            ("[1,,2]", "Expected value before ',' at line 1, column 4"),
            ("{\"a\" 1}", "Expected separator between values at line 1, column 7"),
            ("{\"a\":1,}", "Expected another key-value pair at line 1, column 8"),
            ("[1,]", "Expected another array element at line 1, column 4"),
            ("{'a':1}", "Invalid numeric literal at line 1, column 5"),
            ("\"a\\qb\"", "Invalid escape at line 1, column 6"),
            ("{\"a\":}", "Unmatched '}' at line 1, column 6"),
            ("{1:2}", "Object keys must be strings at line 1, column 3"),
            ("[1:2]", "':' not as part of an object at line 1, column 3"),
            ("{\"a\",\"b\"}", "Objects must consist of key:value pairs at line 1, column 5"),
            ("1,2", "Expected value before ',' at line 1, column 2"),
            ("\"abc", "Unfinished string at EOF at line 1, column 4"),
            ("\"\\ud83d\"", "Invalid \\uXXXX\\uXXXX surrogate pair escape at line 1, column 8"),
        ] {
            assert_eq!(wrong(text), expected, "{text}");
        }
    }

    #[test]
    fn values_follow_each_other_without_anything_between() {
        let text =
            |values: Vec<JqValue>| values.iter().map(ToString::to_string).collect::<Vec<_>>().join(" ");
        let values = many("{\"a\":[1,{}]}\"x\"[]01 -0 .5 NaN true").unwrap();
        assert_eq!(text(values), "{\"a\":[1,{}]} \"x\" [] 1 -0 0.5 null true");
        assert_eq!(text(many("\"\\u00e9\\ud83d\\ude00\\/\"").unwrap()), "\"é😀/\"");
        assert_eq!(one("1 2").unwrap_err(), "Unexpected extra JSON values");
    }
}
