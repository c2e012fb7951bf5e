//! `printf` and `sprintf` of `awk`.

use super::number::{digits, whole};
use super::text::AwkText;

/// The longest text of `sprintf`.
pub(super) const MAX_TEXT: usize = 8192;
/// The widest field.
const MAX_WIDTH: usize = 60_000;

/// An argument of a format.
pub(super) trait FormatArgument {
    fn number(&self) -> f64;
    /// Returns the character code for `%c`, if the value is a number.
    fn code(&self) -> Option<f64>;
    fn text(&self, format: &AwkText) -> AwkText;
}

impl FormatArgument for f64 {
    fn number(&self) -> f64 {
        *self
    }

    fn code(&self) -> Option<f64> {
        Some(*self)
    }

    fn text(&self, _: &AwkText) -> AwkText {
        AwkText::from(self.to_string().as_str())
    }
}

/// The error of a format.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum FormatError {
    TooFewArguments,
    /// The conversion with this number is unknown.
    Conversion(usize),
}

/// The flags, width and precision of a conversion.
#[derive(Debug, Default, Clone, Copy)]
struct FormatField {
    is_left: bool,
    has_plus: bool,
    has_blank: bool,
    is_alternate: bool,
    has_zeros: bool,
    width: usize,
    precision: Option<usize>,
}

/// Fills a format up to the first error. The other format is for numbers that become text.
pub(super) fn fill(
    out: &mut Vec<u8>,
    format: &[u8],
    args: &[impl FormatArgument],
    convfmt: &AwkText,
) -> Result<(), FormatError> {
    let mut args = args.iter();
    let mut rest = format;
    let mut count = 0;
    while let Some((byte, behind)) = rest.split_first() {
        rest = behind;
        if *byte != b'%' {
            out.push(*byte);
            continue;
        }
        if let Some(behind) = rest.strip_prefix(b"%") {
            out.push(b'%');
            rest = behind;
            continue;
        }
        count += 1;
        let mut next = || args.next().ok_or(FormatError::TooFewArguments);
        let field = read_field(&mut rest, &mut next)?;
        let value = next()?;
        let skipped = usize::from(matches!(rest.first(), Some(b'l' | b'h')));
        let conversion = *rest.get(skipped).ok_or(FormatError::Conversion(count))?;
        rest = &rest[skipped + 1..];
        convert(out, field, conversion, value, convfmt).ok_or(FormatError::Conversion(count))?;
    }
    Ok(())
}

fn read_field<'a, A: FormatArgument + 'a>(
    rest: &mut &[u8],
    next: &mut impl FnMut() -> Result<&'a A, FormatError>,
) -> Result<FormatField, FormatError> {
    let mut field = FormatField::default();
    while let Some((flag, behind)) = rest.split_first() {
        match flag {
            b'-' => field.is_left = true,
            b'+' => field.has_plus = true,
            b' ' => field.has_blank = true,
            b'#' => field.is_alternate = true,
            b'0' => field.has_zeros = true,
            _ => break,
        }
        *rest = behind;
    }
    if let Some(width) = read_size(rest, next)? {
        field.is_left |= width < 0;
        field.width = size(width);
    }
    if let Some(behind) = rest.strip_prefix(b".") {
        *rest = behind;
        let precision = read_size(rest, next)?.unwrap_or(0);
        field.precision = (precision >= 0).then(|| size(precision));
    }
    Ok(field)
}

fn size(given: i32) -> usize {
    usize::try_from(given.unsigned_abs()).unwrap_or(MAX_WIDTH).min(MAX_WIDTH)
}

fn read_size<'a, A: FormatArgument + 'a>(
    rest: &mut &[u8],
    next: &mut impl FnMut() -> Result<&'a A, FormatError>,
) -> Result<Option<i32>, FormatError> {
    if let Some(behind) = rest.strip_prefix(b"*") {
        *rest = behind;
        return Ok(Some(whole(next()?.number())));
    }
    let len = rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
    let (digits, behind) = rest.split_at(len);
    *rest = behind;
    let given = std::str::from_utf8(digits).ok().filter(|digits| !digits.is_empty());
    Ok(given.map(|digits| digits.parse().unwrap_or(i32::MAX)))
}

/// Adds a converted value. `None`: the conversion is unknown.
fn convert(
    out: &mut Vec<u8>,
    field: FormatField,
    conversion: u8,
    value: &impl FormatArgument,
    convfmt: &AwkText,
) -> Option<()> {
    match conversion {
        b'd' | b'i' => signed(out, field, whole(value.number())),
        b'o' | b'x' | b'X' | b'u' => unsigned(out, field, conversion, value.number()),
        b'e' | b'E' | b'f' | b'F' | b'g' | b'G' => float(out, field, conversion, value.number()),
        b'c' => {
            let bytes = match value.code() {
                Some(number) => vec![whole(number).to_le_bytes()[0]],
                None => vec![value.text(convfmt).bytes().first().copied().unwrap_or(0)],
            };
            pad(out, field, &bytes, b' ');
        }
        b's' => {
            let text = value.text(convfmt);
            let len = field.precision.unwrap_or(usize::MAX).min(text.bytes().len());
            pad(out, field, &text.bytes()[..len], b' ');
        }
        _ => return None,
    }
    Some(())
}

fn pad(out: &mut Vec<u8>, field: FormatField, text: &[u8], filler: u8) {
    let missing = field.width.saturating_sub(text.len());
    if field.is_left {
        out.extend_from_slice(text);
        out.extend(std::iter::repeat_n(b' ', missing));
    } else {
        out.extend(std::iter::repeat_n(filler, missing));
        out.extend_from_slice(text);
    }
}

/// Adds a number with its sign, and with zeros after the sign if they are wanted.
fn pad_number(out: &mut Vec<u8>, field: FormatField, sign: &str, digits: &str, takes_zeros: bool) {
    let missing = field.width.saturating_sub(sign.len() + digits.len());
    if field.has_zeros && takes_zeros && !field.is_left {
        out.extend_from_slice(sign.as_bytes());
        out.extend(std::iter::repeat_n(b'0', missing));
        out.extend_from_slice(digits.as_bytes());
    } else {
        pad(out, field, format!("{sign}{digits}").as_bytes(), b' ');
    }
}

fn sign_of(field: FormatField, is_negative: bool) -> &'static str {
    match (is_negative, field.has_plus, field.has_blank) {
        (true, ..) => "-",
        (_, true, _) => "+",
        (_, _, true) => " ",
        _ => "",
    }
}

fn whole_digits(field: FormatField, digits: String, is_zero: bool) -> String {
    match field.precision {
        Some(0) if is_zero => String::new(),
        Some(precision) => format!("{digits:0>precision$}"),
        None => digits,
    }
}

fn signed(out: &mut Vec<u8>, field: FormatField, number: i32) {
    let digits = whole_digits(field, number.unsigned_abs().to_string(), number == 0);
    pad_number(out, field, sign_of(field, number < 0), &digits, field.precision.is_none());
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "it is cut to what fits")]
fn unsigned(out: &mut Vec<u8>, field: FormatField, conversion: u8, number: f64) {
    let number = number.clamp(0.0, f64::from(u32::MAX)) as u32;
    let (prefix, digits) = match conversion {
        b'o' => (if field.is_alternate && number != 0 { "0" } else { "" }, format!("{number:o}")),
        b'x' => (if field.is_alternate && number != 0 { "0x" } else { "" }, format!("{number:x}")),
        b'X' => (if field.is_alternate && number != 0 { "0X" } else { "" }, format!("{number:X}")),
        _ => ("", number.to_string()),
    };
    let digits = whole_digits(field, digits, number == 0);
    pad_number(out, field, prefix, &digits, field.precision.is_none());
}

fn float(out: &mut Vec<u8>, field: FormatField, conversion: u8, number: f64) {
    let digits = digits(number, conversion, field.precision.unwrap_or(6), field.is_alternate);
    pad_number(out, field, sign_of(field, number.is_sign_negative()), &digits, number.is_finite());
}

/// Formats a number with a format such as `%.6g`.
pub(super) fn number(format: &[u8], number: f64) -> Vec<u8> {
    let usual = AwkText::from("%.6g");
    let mut out = Vec::new();
    match fill(&mut out, format, &[number], &usual) {
        Ok(()) => out,
        Err(_) => format.to_vec(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory::programs::awk::value::AwkValue;

    fn filled(format: &str, args: &[impl FormatArgument]) -> Result<String, FormatError> {
        let usual = AwkText::from("%.6g");
        let mut out = Vec::new();
        fill(&mut out, format.as_bytes(), args, &usual)?;
        Ok(String::from_utf8_lossy(&out).into_owned())
    }

    #[test]
    fn a_format_is_filled_as_mawk_fills_it() {
        let (number, text) = (AwkValue::Number, |text: &str| AwkValue::text(text.as_bytes()));
        for (format, value, filled_in) in [
            ("%d|", number(3.9), "3|"),
            ("%05d|", number(-42.0), "-0042|"),
            ("%-5d|", number(42.0), "42   |"),
            ("%+d|", number(7.0), "+7|"),
            ("%.3d|", number(7.0), "007|"),
            ("%d|", number(1e18), "2147483647|"),
            ("%x|", number(-1.0), "0|"),
            ("%u|", number(3e9), "3000000000|"),
            ("%#x|", number(255.0), "0xff|"),
            ("%5.2f|", number(2.71459), " 2.71|"),
            ("%c|", number(65.0), "A|"),
            ("%c|", text("hello"), "h|"),
            ("%5.1s|", text("ab"), "    a|"),
            ("%s|", number(1234567.5), "1.23457e+06|"),
            ("%ld%%|", number(1.0), "1%|"),
        ] {
            assert_eq!(filled(format, &[value]).unwrap(), filled_in, "{format}");
        }
        let star = [number(5.0), number(42.0), number(-4.0), number(7.0)];
        assert_eq!(filled("%*d|%*d|", &star).unwrap(), "   42|7   |");
        assert_eq!(filled("%d %d", &[number(1.0)]), Err(FormatError::TooFewArguments));
        assert_eq!(filled("%d %z", &[number(1.0), number(1.0)]), Err(FormatError::Conversion(2)));
    }
}
