//! The numeric comparisons of `sort`: numbers of any length, general numbers, and sizes with a suffix.

use std::cmp::Ordering;

/// A decimal number at the beginning of a text.
struct Decimal<'a> {
    is_negative: bool,
    whole: &'a [u8],
    part: &'a [u8],
    rest: &'a [u8],
}

impl<'a> Decimal<'a> {
    fn new(text: &'a [u8]) -> Self {
        let text = text.trim_ascii_start();
        let (is_negative, text) = match text.strip_prefix(b"-") {
            Some(rest) => (true, rest),
            None => (false, text),
        };
        let (whole, rest) = digits(text);
        let (part, rest) = rest.strip_prefix(b".").map_or((&b""[..], rest), digits);
        let zeros = whole.iter().take_while(|digit| **digit == b'0').count();
        let end = part.iter().rposition(|digit| *digit != b'0').map_or(0, |last| last + 1);
        Self { is_negative, whole: &whole[zeros..], part: &part[..end], rest }
    }

    fn is_zero(&self) -> bool {
        self.whole.is_empty() && self.part.is_empty()
    }

    fn cmp_size(&self, other: &Self) -> Ordering {
        let whole = self.whole.len().cmp(&other.whole.len()).then_with(|| self.whole.cmp(other.whole));
        whole.then_with(|| self.part.cmp(other.part))
    }

    /// Returns the sign: minus one, zero or one.
    fn sign(&self) -> i8 {
        match (self.is_zero(), self.is_negative) {
            (true, _) => 0,
            (false, true) => -1,
            (false, false) => 1,
        }
    }
}

fn digits(text: &[u8]) -> (&[u8], &[u8]) {
    text.split_at(text.iter().take_while(|byte| byte.is_ascii_digit()).count())
}

/// Compares two numbers of any length. A text that is not a number counts as zero.
pub(super) fn compare_numbers(one: &[u8], other: &[u8]) -> Ordering {
    let (one, other) = (Decimal::new(one), Decimal::new(other));
    one.sign().cmp(&other.sign()).then_with(|| match one.sign() {
        1 => one.cmp_size(&other),
        -1 => other.cmp_size(&one),
        _ => Ordering::Equal,
    })
}

/// Compares two sizes, first by suffix and then by number.
pub(super) fn compare_human(one: &[u8], other: &[u8]) -> Ordering {
    let power = |text: &[u8]| {
        let number = Decimal::new(text);
        let suffix = number.rest.first().copied().unwrap_or_default();
        let power =
            b"KMGTPEZYRQ".iter().position(|letter| *letter == suffix || (suffix == b'k' && *letter == b'K'));
        let power = power.and_then(|power| i8::try_from(power + 1).ok()).unwrap_or(0);
        number.sign() * power
    };
    let sign = Decimal::new(one).sign().cmp(&Decimal::new(other).sign());
    sign.then_with(|| power(one).cmp(&power(other))).then_with(|| compare_numbers(one, other))
}

/// Compares two numbers in any form that C can read. Other texts come first, then NaN, then the numbers.
pub(super) fn compare_general(one: &[u8], other: &[u8]) -> Ordering {
    let (one, other) = (general(one), general(other));
    let rank = |number: Option<f64>| number.map_or(0, |number| if number.is_nan() { 1 } else { 2 });
    rank(one).cmp(&rank(other)).then_with(|| one.partial_cmp(&other).unwrap_or(Ordering::Equal))
}

fn general(text: &[u8]) -> Option<f64> {
    let text = text.trim_ascii_start();
    let text = text.strip_prefix(b"+").unwrap_or(text);
    let (is_negative, text) = text.strip_prefix(b"-").map_or((false, text), |text| (true, text));
    let value = magnitude(text)?;
    Some(if is_negative { -value } else { value })
}

fn magnitude(text: &[u8]) -> Option<f64> {
    let begins =
        |word: &str| text.get(..word.len()).is_some_and(|text| text.eq_ignore_ascii_case(word.as_bytes()));
    if begins("inf") {
        return Some(f64::INFINITY);
    }
    if begins("nan") {
        return Some(f64::NAN);
    }
    if begins("0x") && text.get(2).is_some_and(u8::is_ascii_hexdigit) {
        let digits = text[2..].iter().take_while(|byte| byte.is_ascii_hexdigit());
        let value = digits
            .fold(0.0, |value, digit| value * 16.0 + f64::from(char::from(*digit).to_digit(16).unwrap_or(0)));
        return Some(value);
    }
    let (whole, rest) = digits(text);
    let part = rest.strip_prefix(b".").map_or(0, |rest| 1 + digits(rest).0.len());
    if whole.is_empty() && part < 2 {
        return None;
    }
    let mut len = whole.len() + part;
    if let Some(exponent) =
        text.get(len..).and_then(|rest| rest.strip_prefix(b"e").or_else(|| rest.strip_prefix(b"E")))
    {
        let sign = usize::from(matches!(exponent.first(), Some(b'+' | b'-')));
        let digits = digits(&exponent[sign..]).0.len();
        len += if digits > 0 { 1 + sign + digits } else { 0 };
    }
    std::str::from_utf8(&text[..len]).ok()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use Ordering::{Equal, Greater, Less};

    #[test]
    fn numbers_have_any_length_and_a_text_is_zero() {
        for (one, other, ordering) in [
            ("9", "10", Less),
            ("-1", "x", Less),
            ("1.50", "1.5", Equal),
            ("100000000000000000000001", "100000000000000000000000", Greater),
            ("-2", "-10", Greater),
            ("-0", "0", Equal),
            (" 7", "007", Equal),
            ("+5", "1", Less),
        ] {
            assert_eq!(compare_numbers(one.as_bytes(), other.as_bytes()), ordering, "{one} {other}");
        }
    }

    #[test]
    fn sizes_compare_by_their_suffix_first() {
        assert_eq!(compare_human(b"1K", b"900"), Greater);
        assert_eq!(compare_human(b"2M", b"1G"), Less);
        assert_eq!(compare_human(b"-1G", b"-1M"), Less);
    }

    #[test]
    fn general_numbers_have_exponents() {
        assert_eq!(compare_general(b"1e3", b"999"), Greater);
        assert_eq!(compare_general(b"x", b"-5"), Less);
        assert_eq!(compare_general(b"nan", b"-inf"), Less);
        assert_eq!(compare_general(b"0x10", b"16"), Equal);
        assert_eq!(compare_general(b"1e", b"1"), Equal);
    }
}
