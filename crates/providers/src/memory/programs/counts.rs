//! Numbers of lines and bytes on command lines, with their units.

use super::ending::Ending;
use super::quoting::curly;

/// The units of `head` and `tail`. `b` is a block.
const UNITS: &str = "bkKmMGTPEZY";

/// Reads the number of `head` and `tail`, as `10`, `-2k` or `+1MiB`. Tells whether it has the sign that
/// gives it another meaning; the other sign means nothing.
///
/// # Errors
/// The text is not a number, or the number is too large. The message names the thing to count.
pub(super) fn signed_count(text: &str, is_bytes: bool, sign: char) -> Result<(u64, bool), Ending> {
    let (number, has_sign) = match text.strip_prefix(sign) {
        Some(number) => (number, true),
        None => (text.strip_prefix(['+', '-']).unwrap_or(text), false),
    };
    let what = if is_bytes { "bytes" } else { "lines" };
    let refused = |why: &str| Ending::refused(format!("invalid number of {what}: {}{why}", curly(number)));
    match count(number, UNITS) {
        Some(u64::MAX) => Err(refused(": Value too large for defined data type")),
        Some(number) => Ok((number, has_sign)),
        None => Err(refused("")),
    }
}

/// Reads a number that may have one of these units. One that is too large stands for all there is, a unit
/// alone for one of it.
pub(super) fn count(text: &str, units: &str) -> Option<u64> {
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    let (number, unit) = text.split_at(digits);
    let factor = factor(unit, units)?;
    if number.is_empty() {
        return (!unit.is_empty()).then_some(factor);
    }
    let number = number.parse().unwrap_or(u64::MAX);
    Some(number.saturating_mul(factor))
}

fn factor(unit: &str, units: &str) -> Option<u64> {
    let Some(letter) = unit.chars().next() else { return Some(1) };
    let rest = &unit[letter.len_utf8()..];
    let power = match letter.to_ascii_uppercase() {
        _ if !units.contains(letter) => return None,
        'B' => return rest.is_empty().then_some(512),
        letter => "KMGTPEZY".find(letter)? + 1,
    };
    Some(base(rest)?.saturating_pow(u32::try_from(power).ok()?))
}

fn base(rest: &str) -> Option<u64> {
    match rest {
        "" | "iB" => Some(1024),
        "B" => Some(1000),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_may_have_a_suffix() {
        for (text, number) in [
            ("10", Some(10)),
            ("2k", Some(2048)),
            ("1KB", Some(1000)),
            ("1MiB", Some(1 << 20)),
            ("3b", Some(1536)),
            ("k", Some(1024)),
            ("1Z", Some(u64::MAX)),
            ("99999999999999999999", Some(u64::MAX)),
        ] {
            assert_eq!(count(text, UNITS), number, "{text}");
        }
        assert!(["", "x", "1x", "-1", "1kb", "1g", "2B"].iter().all(|text| count(text, UNITS).is_none()));
        assert_eq!((count("1g", "Gg"), count("1b", "Gg")), (Some(1 << 30), None));
    }
}
