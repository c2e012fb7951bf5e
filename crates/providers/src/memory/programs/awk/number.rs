//! Conversions between numbers and text, as in the C library.

/// The largest number that prints as a whole number.
const MAX_WHOLE: f64 = i32::MAX as f64;

/// Reads the number at the beginning of a text, after blanks. Returns the length up to its end, and the value.
pub(super) fn number_at_start(text: &[u8]) -> (usize, f64) {
    let blanks = text.iter().take_while(|byte| is_blank(**byte)).count();
    let rest = &text[blanks..];
    let signs = usize::from(matches!(rest.first(), Some(b'+' | b'-')));
    let is_negative = rest.first() == Some(&b'-');
    let body = &rest[signs..];
    let (len, value) = hexadecimal(body).or_else(|| word(body)).unwrap_or_else(|| decimal(body));
    if len == 0 {
        return (0, 0.0);
    }
    (blanks + signs + len, if is_negative { -value } else { value })
}

/// Reads the number at the beginning of a text.
pub(super) fn number_of(text: &[u8]) -> f64 {
    number_at_start(text).1
}

/// Returns the value of a text from the input, if the whole text is a number.
pub(super) fn looks_numeric(text: &[u8]) -> Option<f64> {
    let start = text.iter().position(|byte| !is_blank(*byte))?;
    let end = text.iter().rposition(|byte| !is_blank(*byte))? + 1;
    let core = &text[start..end];
    let digits = core.strip_prefix(b"+").or_else(|| core.strip_prefix(b"-")).unwrap_or(core);
    let (len, value) = decimal(digits);
    let value = if core.first() == Some(&b'-') { -value } else { value };
    (len > 0 && len == digits.len()).then_some(value)
}

pub(super) fn is_blank(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\n' | 0x0b | 0x0c | b'\r')
}

/// Reads digits with a point and an exponent. Returns the number of bytes, and the value.
pub(super) fn decimal(text: &[u8]) -> (usize, f64) {
    let digits = |from: usize| text[from..].iter().take_while(|byte| byte.is_ascii_digit()).count();
    let whole = digits(0);
    let mut len = whole;
    let mut fraction = 0;
    if text.get(len) == Some(&b'.') {
        fraction = digits(len + 1);
        len += 1 + fraction;
    }
    if whole + fraction == 0 {
        return (0, 0.0);
    }
    if matches!(text.get(len), Some(b'e' | b'E')) {
        let signs = usize::from(matches!(text.get(len + 1), Some(b'+' | b'-')));
        let from = len + 1 + signs;
        let exponent = if from <= text.len() { digits(from) } else { 0 };
        if exponent > 0 {
            len = from + exponent;
        }
    }
    let text = std::str::from_utf8(&text[..len]).unwrap_or_default();
    (len, text.parse().unwrap_or(0.0))
}

fn hexadecimal(text: &[u8]) -> Option<(usize, f64)> {
    let rest = text.strip_prefix(b"0x").or_else(|| text.strip_prefix(b"0X"))?;
    let digits: Vec<u32> = rest.iter().map_while(|byte| char::from(*byte).to_digit(16)).collect();
    let value = digits.iter().fold(0.0, |value: f64, digit| value * 16.0 + f64::from(*digit));
    (!digits.is_empty()).then_some((2 + digits.len(), value))
}

fn word(text: &[u8]) -> Option<(usize, f64)> {
    [("infinity", f64::INFINITY), ("inf", f64::INFINITY), ("nan", f64::NAN)].into_iter().find_map(
        |(name, value)| {
            let is_here =
                text.get(..name.len()).is_some_and(|start| start.eq_ignore_ascii_case(name.as_bytes()));
            is_here.then_some((name.len(), value))
        },
    )
}

/// Converts a number to a whole number of 32 bits, or to the nearest one that fits.
#[expect(clippy::cast_possible_truncation, reason = "it is cut to what fits")]
pub(super) fn whole(number: f64) -> i32 {
    if number.is_nan() { -i32::MAX } else { number.clamp(-MAX_WHOLE, MAX_WHOLE) as i32 }
}

/// Returns a number as a whole number, if it prints as one.
pub(super) fn as_whole(number: f64) -> Option<i32> {
    (number.trunc() == number && number.abs() <= MAX_WHOLE).then(|| whole(number))
}

/// Returns the result of an operation. If it is a new NaN, its sign is negative, as on the processor.
pub(super) fn settled(result: f64, operands: [f64; 2]) -> f64 {
    if result.is_nan() && !operands.iter().any(|operand| operand.is_nan()) {
        return f64::NAN.copysign(-1.0);
    }
    result
}

/// Formats a number without its sign, like a conversion of the C library.
pub(super) fn digits(number: f64, conversion: u8, precision: usize, keeps_zeros: bool) -> String {
    let number = number.abs();
    let is_upper = conversion.is_ascii_uppercase();
    let text = if number.is_nan() {
        "nan".to_owned()
    } else if number.is_infinite() {
        "inf".to_owned()
    } else {
        match conversion.to_ascii_lowercase() {
            b'f' => with_point(format!("{number:.precision$}"), keeps_zeros),
            b'e' => exponential(number, precision, keeps_zeros),
            _ => general(number, precision.max(1), keeps_zeros),
        }
    };
    if is_upper { text.to_uppercase() } else { text }
}

fn with_point(text: String, always: bool) -> String {
    if always && !text.contains('.') { text + "." } else { text }
}

fn exponential(number: f64, precision: usize, keeps_point: bool) -> String {
    let text = format!("{number:.precision$e}");
    let (mantissa, exponent) = text.split_once('e').unwrap_or((&text, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    let sign = if exponent < 0 { '-' } else { '+' };
    format!("{}e{sign}{:02}", with_point(mantissa.to_owned(), keeps_point), exponent.abs())
}

fn general(number: f64, precision: usize, keeps_zeros: bool) -> String {
    let text = format!("{number:.*e}", precision - 1);
    let exponent: i32 = text.split_once('e').and_then(|(_, exponent)| exponent.parse().ok()).unwrap_or(0);
    let limit = i32::try_from(precision).unwrap_or(i32::MAX);
    let shown = if exponent < -4 || exponent >= limit {
        exponential(number, precision - 1, keeps_zeros)
    } else {
        let decimals = usize::try_from(limit - 1 - exponent).unwrap_or(0);
        with_point(format!("{number:.decimals$}"), keeps_zeros)
    };
    if keeps_zeros { shown } else { without_zeros(&shown) }
}

fn without_zeros(text: &str) -> String {
    let (mantissa, exponent) = match text.find('e') {
        Some(at) => text.split_at(at),
        None => (text, ""),
    };
    if !mantissa.contains('.') {
        return text.to_owned();
    }
    format!("{}{exponent}", mantissa.trim_end_matches('0').trim_end_matches('.'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_read_as_the_c_library_reads_them() {
        for (text, number) in [
            ("12abc", 12.0),
            (" +3.5e2x", 350.0),
            ("1e", 1.0),
            (".5", 0.5),
            ("0x1A", 26.0),
            ("0x", 0.0),
            ("-inf", f64::NEG_INFINITY),
            ("abc", 0.0),
            ("", 0.0),
            ("1e+", 1.0),
        ] {
            assert_eq!(number_of(text.as_bytes()), number, "{text}");
        }
        for (text, number) in [
            ("010 ", Some(10.0)),
            ("-3.", Some(-3.0)),
            ("0x1A", None),
            ("nan", None),
            (" ", None),
            (".e1", None),
        ] {
            assert_eq!(looks_numeric(text.as_bytes()), number, "{text}");
        }
    }

    #[test]
    fn numbers_have_the_digits_of_printf() {
        for (number, conversion, precision, text) in [
            (2.71459, b'f', 2, "2.71"),
            (2.5, b'f', 0, "2"),
            (12345.678, b'e', 6, "1.234568e+04"),
            (0.0001, b'g', 6, "0.0001"),
            (0.00001, b'g', 6, "1e-05"),
            (1e20, b'g', 6, "1e+20"),
            (123_456_789_012.0, b'g', 6, "1.23457e+11"),
            (1e-10, b'G', 6, "1E-10"),
            (100_000.0, b'g', 6, "100000"),
            (999_999.5, b'g', 6, "1e+06"),
            (f64::NAN, b'f', 2, "nan"),
        ] {
            assert_eq!(digits(number, conversion, precision, false), text);
        }
        assert_eq!(digits(1.0, b'g', 3, true), "1.00");
    }
}
