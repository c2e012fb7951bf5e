//! The built-in functions of `awk`.

use jiff::Timestamp;
use jiff::civil::DateTime;
use jiff::tz::TimeZone;

use super::machine::{AwkMachine, Step, VariableSlot};
use super::number::{number_of, settled, whole};
use super::printf::MAX_TEXT;
use super::record::{FieldRule, MAX_FIELDS};
use super::syntax::{AwkExpr, AwkFunction, RLENGTH, RSTART, VariableRef};
use super::value::AwkValue;

fn count(number: usize) -> f64 {
    f64::from(u32::try_from(number).unwrap_or(u32::MAX))
}

impl<'p> AwkMachine<'p> {
    pub(super) fn function(&mut self, function: AwkFunction, args: &'p [AwkExpr]) -> Step<AwkValue> {
        if function == AwkFunction::Match {
            return self.match_in(&args[0], &args[1]);
        }
        let mut values = Vec::with_capacity(args.len());
        for argument in args {
            values.push(self.evaluate(argument)?);
        }
        let number = |at: usize| values.get(at).map_or(0.0, AwkValue::number);
        let text = |at: usize| values.get(at).map(|value| value.to_text(&self.settings.conversion));
        let text_or_empty = |at: usize| text(at).unwrap_or_else(|| "".into());
        let result = match function {
            AwkFunction::Atan2 => number(0).atan2(number(1)),
            AwkFunction::Cos => number(0).cos(),
            AwkFunction::Exp => number(0).exp(),
            AwkFunction::Int => number(0).trunc(),
            AwkFunction::Log => settled(number(0).ln(), [number(0); 2]),
            AwkFunction::Sin => number(0).sin(),
            AwkFunction::Sqrt => settled(number(0).sqrt(), [number(0); 2]),
            AwkFunction::Rand => return Ok(AwkValue::Number(self.next_random())),
            AwkFunction::Srand => return Ok(self.seed_random(values.into_iter().next())),
            AwkFunction::Index => {
                let (text, part) = (text_or_empty(0), text_or_empty(1));
                memchr::memmem::find(text.bytes(), part.bytes()).map_or(0.0, |at| count(at + 1))
            }
            AwkFunction::Length => match text(0) {
                Some(text) => count(text.bytes().len()),
                None => {
                    let record = self.field(0.0)?;
                    count(self.text_of(&record).bytes().len())
                }
            },
            AwkFunction::Close => f64::from(self.streams.close(text_or_empty(0).bytes())?),
            AwkFunction::Fflush => self.streams.flush()?.map_or(-1.0, |()| 0.0),
            AwkFunction::System => f64::from(self.streams.system(text_or_empty(0).bytes())?),
            AwkFunction::Systime => count(usize::try_from(Timestamp::now().as_second()).unwrap_or(0)),
            AwkFunction::Mktime => time_of(&String::from_utf8_lossy(text_or_empty(0).bytes())),
            AwkFunction::Strftime => {
                let format = text(0).map(|format| String::from_utf8_lossy(format.bytes()).into_owned());
                let second = values.get(1).map(|_| number(1));
                return Ok(AwkValue::text(formatted_time(format.as_deref(), second).into_bytes()));
            }
            AwkFunction::Substr => {
                let length = values.get(2).map(|_| number(2));
                return Ok(AwkValue::text(substr(text_or_empty(0).bytes(), number(1), length)));
            }
            AwkFunction::Sprintf => {
                let mut filled = Vec::new();
                self.fill(&mut filled, &values, "sprintf")?;
                if filled.len() >= MAX_TEXT {
                    return Err(self.fatal("program limit exceeded", "sprintf buffer size=8192"));
                }
                return Ok(AwkValue::text(filled));
            }
            AwkFunction::Tolower => return Ok(AwkValue::text(text_or_empty(0).bytes().to_ascii_lowercase())),
            AwkFunction::Toupper => return Ok(AwkValue::text(text_or_empty(0).bytes().to_ascii_uppercase())),
            // These have their own kinds of expression.
            AwkFunction::Match | AwkFunction::Split | AwkFunction::Sub | AwkFunction::Gsub => 0.0,
        };
        Ok(AwkValue::Number(result))
    }

    fn match_in(&mut self, text: &'p AwkExpr, pattern: &'p AwkExpr) -> Step<AwkValue> {
        let text = self.text(text)?;
        let pattern = self.pattern_of(pattern)?;
        let (start, length) = match pattern.find_at(text.bytes(), 0) {
            Some(found) => (count(found.start + 1), count(found.len())),
            None => (0.0, -1.0),
        };
        self.set_global(RSTART, AwkValue::Number(start))?;
        self.set_global(RLENGTH, AwkValue::Number(length))?;
        Ok(AwkValue::Number(start))
    }

    pub(super) fn length_of(&mut self, variable: VariableRef) -> AwkValue {
        let length = match self.passed(variable) {
            VariableSlot::Array(table) => table.borrow().len(),
            VariableSlot::Value(value) => self.text_of(&value).bytes().len(),
        };
        AwkValue::Number(count(length))
    }

    pub(super) fn split(
        &mut self,
        text: &'p AwkExpr,
        array: VariableRef,
        separator: Option<&'p AwkExpr>,
    ) -> Step<AwkValue> {
        let text = self.text(text)?;
        let rule = match separator {
            None => {
                let separator = self.get(VariableRef::Global(super::syntax::FS));
                let separator = self.text_of(&separator);
                self.field_rule(separator.bytes())?
            }
            Some(AwkExpr::Pattern(pattern)) => FieldRule::Pattern(pattern.clone()),
            Some(other) => {
                let separator = self.text(other)?;
                self.field_rule(separator.bytes())?
            }
        };
        let pieces = rule.split(text.bytes());
        let needed =
            if pieces.len() > MAX_FIELDS { usize::MAX } else { text.bytes().len() + pieces.len() * 160 };
        self.check_room(needed)?;
        let pieces: Vec<AwkValue> =
            pieces.into_iter().map(|piece| AwkValue::input(&text.bytes()[piece])).collect();
        let number = count(pieces.len());
        self.array(array).borrow_mut().set_pieces(pieces);
        Ok(AwkValue::Number(number))
    }

    /// Replaces the first match, or all of them.
    pub(super) fn substitute(
        &mut self,
        is_global: bool,
        pattern: &'p AwkExpr,
        replacement: &'p AwkExpr,
        target: &'p super::syntax::AwkTarget,
    ) -> Step<AwkValue> {
        let pattern = self.pattern_of(pattern)?;
        let replacement = self.text(replacement)?;
        let place = self.place(target)?;
        let before = self.get_from(&place)?;
        let before = self.text_of(&before);
        let text = before.bytes();
        let mut out = Vec::new();
        let (mut copied, mut from, mut replaced) = (0, 0, 0_usize);
        let mut last_end = None;
        while let Some(found) = pattern.find_at(text, from) {
            if found.is_empty() && last_end == Some(found.start) {
                from = found.start + 1;
            } else {
                out.extend_from_slice(&text[copied..found.start]);
                replace(&mut out, replacement.bytes(), &text[found.clone()]);
                self.check_room(out.len())?;
                replaced += 1;
                copied = found.end;
                from = if found.is_empty() { found.end + 1 } else { found.end };
                last_end = Some(found.end);
            }
            if !is_global || from > text.len() {
                break;
            }
            self.tick()?;
        }
        if replaced > 0 {
            out.extend_from_slice(&text[copied..]);
            self.put(&place, AwkValue::text(out))?;
        }
        Ok(AwkValue::Number(count(replaced)))
    }

    /// Returns the next random number below 1, from the generator splitmix64.
    fn next_random(&mut self) -> f64 {
        self.random = self.random.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.random;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        let bits = u32::try_from((mixed ^ (mixed >> 31)) >> 32).unwrap_or(0);
        f64::from(bits) / (f64::from(u32::MAX) + 1.0)
    }

    /// Seeds the random numbers, and returns the previous seed.
    fn seed_random(&mut self, seed: Option<AwkValue>) -> AwkValue {
        let now = || AwkValue::Number(count(usize::try_from(Timestamp::now().as_second()).unwrap_or(0)));
        let seed = seed.unwrap_or_else(now);
        self.random = self
            .text_of(&seed)
            .bytes()
            .iter()
            .fold(0, |seed: u64, byte| seed.wrapping_mul(0x0100_0000_01b3) ^ u64::from(*byte));
        std::mem::replace(&mut self.seed, seed)
    }
}

/// Returns a part of a text. A start before the text is counted as in mawk 1.3.4, which returns more then.
fn substr(text: &[u8], start: f64, length: Option<f64>) -> &[u8] {
    let (mut start, mut length) = (whole(start), length.map(whole));
    if length.is_none() && start == -i32::MAX {
        return &[];
    }
    if start < 1 {
        length = length.map(|length| length.wrapping_sub(start));
        start = 1;
    }
    let start = usize::try_from(start - 1).unwrap_or(0).min(text.len());
    let most = text.len() - start;
    let length = length.map_or(most, |length| usize::try_from(length).unwrap_or(0).min(most));
    &text[start..start + length]
}

/// Adds the replacement of a match: `&` stands for the match.
fn replace(out: &mut Vec<u8>, replacement: &[u8], found: &[u8]) {
    let mut rest = replacement;
    while let Some((byte, behind)) = rest.split_first() {
        rest = behind;
        match (byte, rest.first()) {
            (b'&', _) => out.extend_from_slice(found),
            (b'\\', Some(next @ (b'&' | b'\\'))) => {
                out.push(*next);
                rest = &rest[1..];
            }
            _ => out.push(*byte),
        }
    }
}

/// Returns the seconds since 1970 of a date such as `1970 01 02 00 00 00`, or -1.
fn time_of(text: &str) -> f64 {
    let numbers: Vec<i32> = text.split_whitespace().map(|word| whole(number_of(word.as_bytes()))).collect();
    let [year, month, day, hour, minute, second, ..] = numbers.as_slice() else { return -1.0 };
    let small = |number: &i32| i8::try_from(*number).unwrap_or(-1);
    let year = i16::try_from(*year).unwrap_or(i16::MAX);
    let [month, day, hour, minute, second] = [month, day, hour, minute, second].map(small);
    let time = DateTime::new(year, month, day, hour, minute, second, 0);
    let zoned = time.and_then(|time| time.to_zoned(TimeZone::UTC));
    zoned.map_or(-1.0, |zoned| f64::from(i32::try_from(zoned.timestamp().as_second()).unwrap_or(i32::MAX)))
}

fn formatted_time(format: Option<&str>, second: Option<f64>) -> String {
    let time = match second {
        Some(second) => Timestamp::from_second(i64::from(whole(second))).unwrap_or(Timestamp::UNIX_EPOCH),
        None => Timestamp::now(),
    };
    let zoned = time.to_zoned(TimeZone::UTC);
    jiff::fmt::strtime::format(format.unwrap_or("%c"), &zoned).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_from_before_the_text_is_longer_as_in_mawk() {
        for (start, length, part) in [
            (2.0, Some(3.0), "bcd"),
            (0.0, Some(3.0), "abc"),
            (-1.0, Some(3.0), "abcd"),
            (-1.75, Some(3.0), "abcd"),
            (0.6, Some(1.2), "a"),
            (9.0, Some(5.0), "ij"),
            (11.0, None, ""),
            (-5.0, None, "abcdefghij"),
            (2.0, Some(-1.0), ""),
            (-1e10, Some(1e11), ""),
            (2.0, Some(1e20), "bcdefghij"),
        ] {
            assert_eq!(substr(b"abcdefghij", start, length), part.as_bytes(), "{start} {length:?}");
        }
    }

    #[test]
    fn an_ampersand_stands_for_the_match_unless_it_is_escaped() {
        let replaced = |replacement: &str| {
            let mut out = Vec::new();
            replace(&mut out, replacement.as_bytes(), b"m");
            String::from_utf8(out).unwrap()
        };
        assert_eq!(replaced(r"<&>"), "<m>");
        assert_eq!(replaced(r"<\&>"), "<&>");
        assert_eq!(replaced(r"<\\&>\q"), r"<\m>\q");
    }
}
