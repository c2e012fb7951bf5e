//! Values of an `awk` program.

use std::cmp::Ordering;

use super::number::{as_whole, looks_numeric, number_of};
use super::printf::{self, FormatArgument};
use super::text::AwkText;

/// A value.
#[derive(Clone)]
pub(super) enum AwkValue {
    Unset,
    Number(f64),
    Text(AwkText),
    /// Text from the input, which counts as a number if it looks like one.
    Input(AwkText),
}

impl AwkValue {
    pub(super) fn text(bytes: impl Into<Box<[u8]>>) -> Self {
        Self::Text(AwkText::new(bytes))
    }

    pub(super) fn input(bytes: impl Into<Box<[u8]>>) -> Self {
        Self::Input(AwkText::new(bytes))
    }

    pub(super) fn truth(is_true: bool) -> Self {
        Self::Number(f64::from(u8::from(is_true)))
    }

    pub(super) fn number(&self) -> f64 {
        match self {
            Self::Unset => 0.0,
            Self::Number(number) => *number,
            Self::Text(text) | Self::Input(text) => number_of(text.bytes()),
        }
    }

    /// Returns the value as a number, if the whole value is one.
    pub(super) fn as_number(&self) -> Option<f64> {
        match self {
            Self::Unset => Some(0.0),
            Self::Number(number) => Some(*number),
            Self::Text(_) => None,
            Self::Input(text) => looks_numeric(text.bytes()),
        }
    }

    pub(super) fn is_true(&self) -> bool {
        match self {
            Self::Unset => false,
            Self::Number(number) => *number != 0.0,
            Self::Text(text) => !text.bytes().is_empty(),
            Self::Input(text) => {
                looks_numeric(text.bytes()).map_or(!text.bytes().is_empty(), |number| number != 0.0)
            }
        }
    }

    /// Returns the value as text. Numbers that are not whole are formatted.
    pub(super) fn to_text(&self, format: &AwkText) -> AwkText {
        match self {
            Self::Unset => AwkText::from(""),
            Self::Number(number) => AwkText::new(number_text(*number, format.bytes())),
            Self::Text(text) | Self::Input(text) => text.clone(),
        }
    }

    /// Adds the value's text to bytes.
    pub(super) fn append_to(&self, out: &mut Vec<u8>, format: &AwkText) {
        match self {
            Self::Unset => {}
            Self::Number(number) => out.extend_from_slice(&number_text(*number, format.bytes())),
            Self::Text(text) | Self::Input(text) => out.extend_from_slice(text.bytes()),
        }
    }

    /// Compares two values, as numbers if both are numbers.
    pub(super) fn compare(&self, other: &Self, format: &AwkText) -> Ordering {
        if let (Some(left), Some(right)) = (self.as_number(), other.as_number())
            && !matches!((self, other), (Self::Text(_), _) | (_, Self::Text(_)))
        {
            return left.partial_cmp(&right).unwrap_or(Ordering::Equal);
        }
        self.to_text(format).bytes().cmp(other.to_text(format).bytes())
    }
}

impl FormatArgument for AwkValue {
    fn number(&self) -> f64 {
        self.number()
    }

    fn code(&self) -> Option<f64> {
        if matches!(self, Self::Unset) { None } else { self.as_number() }
    }

    fn text(&self, format: &AwkText) -> AwkText {
        self.to_text(format)
    }
}

/// Returns the text of a number.
pub(super) fn number_text(number: f64, format: &[u8]) -> Vec<u8> {
    match as_whole(number) {
        Some(whole) => whole.to_string().into_bytes(),
        None => printf::number(format, number),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_of_the_input_is_compared_as_the_number_that_it_looks_like() {
        let format = AwkText::from("%.6g");
        let input = |text: &str| AwkValue::input(text.as_bytes());
        let text = |text: &str| AwkValue::text(text.as_bytes());
        assert_eq!(input("10").compare(&input("9"), &format), Ordering::Greater);
        assert_eq!(input("10").compare(&text("9"), &format), Ordering::Less);
        assert_eq!(AwkValue::Number(2.0).compare(&text("10"), &format), Ordering::Greater);
        assert_eq!(AwkValue::Unset.compare(&AwkValue::Number(0.0), &format), Ordering::Equal);
        assert_eq!(AwkValue::Unset.compare(&text(""), &format), Ordering::Equal);
        assert!(!input("0.0").is_true() && text("0").is_true() && input(" ").is_true());
    }

    #[test]
    fn whole_numbers_print_whole_as_far_as_mawk_prints_them() {
        for (number, text) in [
            (2_147_483_647.0, "2147483647"),
            (2_147_483_648.0, "2.14748e+09"),
            (-0.0, "0"),
            (0.1 + 0.2, "0.3"),
        ] {
            assert_eq!(number_text(number, b"%.6g"), text.as_bytes());
        }
    }
}
