//! Sizes as `ls` prints them.

/// The units in which sizes are shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Units {
    /// Blocks of so many bytes, with a letter behind each number.
    Blocks { bytes: u64, letter: &'static str },
    /// The largest unit that fits, by powers of 1024 or of 1000.
    Human(u64),
}

/// The letters of the units, with their powers.
static LETTERS: [(&str, u32); 7] = [("", 0), ("K", 1), ("M", 2), ("G", 3), ("T", 4), ("P", 5), ("E", 6)];

impl Units {
    /// Reads the value of `--block-size`.
    pub(super) fn read(text: &str) -> Option<Self> {
        match text {
            "human-readable" => return Some(Self::Human(1024)),
            "si" => return Some(Self::Human(1000)),
            _ => {}
        }
        let text = text.strip_prefix('\'').unwrap_or(text);
        let digits = text.bytes().take_while(u8::is_ascii_digit).count();
        let number = if digits == 0 { 1 } else { text[..digits].parse::<u64>().ok()? };
        let unit = &text[digits..];
        let (letter, base) = match unit.strip_suffix("iB").or_else(|| unit.strip_suffix('B')) {
            Some(letter) if unit.ends_with("iB") => (letter, 1024),
            Some(letter) => (letter, 1000),
            None => (unit, 1024_u64),
        };
        let letter = letter.to_ascii_uppercase();
        let (letter, power) = LETTERS.iter().find(|(known, _)| *known == letter)?;
        let bytes = number.checked_mul(base.checked_pow(*power)?)?;
        let is_named = digits == 0 && bytes > 1;
        (bytes > 0 && !text.is_empty())
            .then_some(Self::Blocks { bytes, letter: if is_named { letter } else { "" } })
    }

    /// Shows a number of bytes, rounded up.
    pub(super) fn show(self, bytes: u64) -> String {
        match self {
            Self::Blocks { bytes: block, letter } => format!("{}{letter}", bytes.div_ceil(block)),
            Self::Human(base) => human(bytes, base),
        }
    }
}

fn human(bytes: u64, base: u64) -> String {
    let (bytes, base) = (u128::from(bytes), u128::from(base));
    let letters =
        if base == 1000 { ["", "k", "M", "G", "T", "P", "E"] } else { ["", "K", "M", "G", "T", "P", "E"] };
    let mut unit = 1;
    for letter in letters {
        let (tenths, whole) = ((bytes * 10).div_ceil(unit), bytes.div_ceil(unit));
        if whole < base || letter == "E" {
            return if unit > 1 && tenths < 100 {
                format!("{}.{}{letter}", tenths / 10, tenths % 10)
            } else {
                format!("{whole}{letter}")
            };
        }
        unit *= base;
    }
    bytes.to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_rounded_up() {
        for (bytes, by_1024, by_1000) in [
            (0, "0", "0"),
            (999, "999", "999"),
            (1000, "1000", "1.0k"),
            (1024, "1.0K", "1.1k"),
            (1025, "1.1K", "1.1k"),
            (10_240, "10K", "11k"),
            (10_241, "11K", "11k"),
            (1_048_575, "1.0M", "1.1M"),
            (1_048_576, "1.0M", "1.1M"),
            (u64::MAX, "16E", "19E"),
        ] {
            assert_eq!(
                (human(bytes, 1024).as_str(), human(bytes, 1000).as_str()),
                (by_1024, by_1000),
                "{bytes}"
            );
        }
    }

    #[test]
    fn a_block_size_is_a_number_or_a_unit() {
        assert_eq!(Units::read("K").unwrap().show(1025), "2K");
        assert_eq!(Units::read("1K").unwrap().show(1025), "2");
        assert_eq!(Units::read("kB").unwrap().show(1025), "2K");
        assert_eq!(Units::read("1MB").unwrap().show(1), "1");
        for text in ["", "0", "x", "K1", "-1", "99E"] {
            assert_eq!(Units::read(text), None, "{text}");
        }
    }
}
