//! The numbers in the names of pieces.

use crate::memory::programs::run::Ending;

/// The most digits of a number in a name.
pub(super) const MAX_DIGITS: usize = 200;

/// The number in a name, as `printf` writes it.
#[derive(Debug)]
pub(super) struct Suffix {
    before: String,
    width: usize,
    has_zeros: bool,
    is_left: bool,
    conversion: char,
    behind: String,
}

impl Suffix {
    /// A number of so many digits, with zeros in front.
    pub(super) fn digits(width: usize) -> Self {
        Self {
            before: String::new(),
            width,
            has_zeros: true,
            is_left: false,
            conversion: 'd',
            behind: String::new(),
        }
    }

    /// Reads the format of `-b`.
    pub(super) fn parse(format: &str) -> Result<Self, Ending> {
        let missing = || Ending::refused("missing % conversion specification in suffix");
        let at = format.replace("%%", "\0\0").find('%').ok_or_else(missing)?;
        let rest = &format[at + 1..];
        let flags = rest.len() - rest.trim_start_matches(['-', '+', ' ', '#', '0', '\'']).len();
        let digits =
            rest[flags..].len() - rest[flags..].trim_start_matches(|l: char| l.is_ascii_digit()).len();
        let (flags, width, behind) = (&rest[..flags], &rest[flags..flags + digits], &rest[flags + digits..]);
        let conversion =
            behind.chars().next().ok_or_else(|| Ending::refused("missing conversion specifier in suffix"))?;
        if !"diuoxX".contains(conversion) {
            return Err(Ending::refused(format!("invalid conversion specifier in suffix: {conversion}")));
        }
        if behind[1..].replace("%%", "").contains('%') {
            return Err(Ending::refused("too many % conversion specifications in suffix"));
        }
        Ok(Self {
            before: format[..at].replace("%%", "%"),
            width: width.parse().unwrap_or(0).min(MAX_DIGITS),
            has_zeros: flags.contains('0') && !flags.contains('-'),
            is_left: flags.contains('-'),
            conversion,
            behind: behind[1..].replace("%%", "%"),
        })
    }

    pub(super) fn of(&self, number: usize) -> String {
        let digits = match self.conversion {
            'o' => format!("{number:o}"),
            'x' => format!("{number:x}"),
            'X' => format!("{number:X}"),
            _ => number.to_string(),
        };
        let width = self.width;
        let padded = match (self.has_zeros, self.is_left) {
            (true, _) => format!("{digits:0>width$}"),
            (_, true) => format!("{digits:<width$}"),
            _ => format!("{digits:>width$}"),
        };
        format!("{}{padded}{}", self.before, self.behind)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_carry_a_number_in_their_format() {
        for (format, name) in [("%03d.txt", "007.txt"), ("-%x-", "-7-"), ("%3d%%", "  7%"), ("%-3u|", "7  |")]
        {
            assert_eq!(Suffix::parse(format).unwrap().of(7), name, "{format}");
        }
        for format in ["x", "%q", "%d%d", "%"] {
            assert!(Suffix::parse(format).is_err(), "{format}");
        }
    }
}
