//! Numbers of lines and bytes on the command lines of `head` and `tail`.

use super::ending::Ending;
use super::quoting::curly;

/// Reads a number with a suffix, as `10`, `2k` or `1MiB`.
///
/// # Errors
/// It is none, or too large: the refusal says which thing can't be counted.
pub(super) fn count_of(what: &str, text: &str) -> Result<u64, Ending> {
    let refused = |why: &str| Ending::refused(format!("invalid number of {what}: {}{why}", curly(text)));
    match count(text) {
        Some(u64::MAX) => Err(refused(": Value too large for defined data type")),
        Some(number) => Ok(number),
        None => Err(refused("")),
    }
}

/// Reads a number with a suffix. One that is too large stands for all there is.
fn count(text: &str) -> Option<u64> {
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    let (number, suffix) = text.split_at(digits);
    let factor = factor(suffix)?;
    if number.is_empty() {
        return (!suffix.is_empty() && suffix != "c").then_some(factor);
    }
    let number = number.parse().unwrap_or(u64::MAX);
    Some(number.saturating_mul(factor))
}

fn factor(suffix: &str) -> Option<u64> {
    let mut letters = suffix.chars();
    let Some(letter) = letters.next() else { return Some(1) };
    let (base, power) = match (letter, letters.as_str()) {
        ('b', "") => return Some(512),
        ('c', "") => return Some(1),
        ('k' | 'K', rest) => (base(rest)?, 1),
        ('m' | 'M', rest) => (base(rest)?, 2),
        ('g' | 'G', rest) => (base(rest)?, 3),
        ('t' | 'T', rest) => (base(rest)?, 4),
        ('P', rest) => (base(rest)?, 5),
        ('E', rest) => (base(rest)?, 6),
        ('Z', rest) => (base(rest)?, 7),
        ('Y', rest) => (base(rest)?, 8),
        _ => return None,
    };
    Some(base.saturating_pow(power))
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
        ] {
            assert_eq!(count(text), number, "{text}");
        }
        assert_eq!(count("99999999999999999999"), Some(u64::MAX));
        assert!(["", "x", "1x", "-1", "1kb"].iter().all(|text| count(text).is_none()));
    }
}
