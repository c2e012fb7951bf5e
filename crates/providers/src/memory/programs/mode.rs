//! Permission bits, as `chmod` and `mkdir -m` read them.

/// A change of permission bits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum ModeChange {
    To(u32),
    By(Vec<ModeClause>),
}

/// A part of a symbolic change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ModeClause {
    /// The bits of those whom it is about.
    whom: u32,
    /// Nobody was named: the mask counts.
    is_masked: bool,
    sign: char,
    bits: u32,
    /// `X`: execution for directories and for what can be executed already.
    is_execution_kept: bool,
    /// The bits of these are copied.
    copied: Option<char>,
}

impl ModeChange {
    /// Reads a mode: octal digits, or clauses like `u+rwx,go-w`.
    pub(super) fn parse(text: &str) -> Option<Self> {
        if text.starts_with(|letter: char| letter.is_ascii_digit()) {
            let mode = u32::from_str_radix(text, 8).ok()?;
            return (mode <= 0o7777).then_some(Self::To(mode));
        }
        let mut clauses = Vec::new();
        for part in text.split(',') {
            read_clauses(part, &mut clauses)?;
        }
        Some(Self::By(clauses))
    }

    /// The mode after the change. Where nobody is named, the shell's mask counts.
    pub(super) fn applied(&self, mode: u32, is_directory: bool, mask: u32) -> u32 {
        match self {
            // Digits that name no special bits leave a directory's as they are.
            Self::To(to) if is_directory => *to | (mode & 0o6000),
            Self::To(to) => *to,
            Self::By(clauses) => {
                clauses.iter().fold(mode, |mode, clause| clause.applied(mode, is_directory, mask))
            }
        }
    }
}

fn read_clauses(part: &str, clauses: &mut Vec<ModeClause>) -> Option<()> {
    let names = part.len() - part.trim_start_matches(['u', 'g', 'o', 'a']).len();
    let (names, mut rest) = part.split_at(names);
    let whom = names.chars().fold(0, |whom, name| {
        whom | match name {
            'u' => 0o4700,
            'g' => 0o2070,
            'o' => 0o1007,
            _ => 0o7777,
        }
    });
    if rest.is_empty() {
        return None;
    }
    while let Some(sign) = rest.chars().next() {
        if !matches!(sign, '+' | '-' | '=') {
            return None;
        }
        rest = &rest[1..];
        let end = rest.find(['+', '-', '=']).unwrap_or(rest.len());
        let (letters, behind) = rest.split_at(end);
        rest = behind;
        let whom_bits = if whom == 0 { 0o7777 } else { whom };
        let mut clause = ModeClause {
            whom: whom_bits,
            is_masked: whom == 0,
            sign,
            bits: 0,
            is_execution_kept: false,
            copied: None,
        };
        if let [letter @ (b'u' | b'g' | b'o')] = letters.as_bytes() {
            clause.copied = Some(char::from(*letter));
        } else {
            for letter in letters.chars() {
                match letter {
                    'r' => clause.bits |= 0o444,
                    'w' => clause.bits |= 0o222,
                    'x' => clause.bits |= 0o111,
                    'X' => clause.is_execution_kept = true,
                    's' => clause.bits |= 0o6000,
                    't' => clause.bits |= 0o1000,
                    _ => return None,
                }
            }
        }
        clauses.push(clause);
    }
    Some(())
}

impl ModeClause {
    fn applied(&self, mode: u32, is_directory: bool, mask: u32) -> u32 {
        let mut bits = self.bits;
        if self.is_execution_kept && (is_directory || mode & 0o111 != 0) {
            bits |= 0o111;
        }
        if let Some(from) = self.copied {
            let shift = match from {
                'u' => 6,
                'g' => 3,
                _ => 0,
            };
            let three = mode >> shift & 7;
            bits |= three << 6 | three << 3 | three;
        }
        bits &= self.whom;
        if self.is_masked {
            bits &= !mask;
        }
        match self.sign {
            '+' => mode | bits,
            '-' => mode & !bits,
            _ => {
                let kept = if is_directory { 0o6000 } else { 0 };
                mode & (!(self.whom & 0o7777) | kept) | bits
            }
        }
    }
}

/// The nine letters of `ls -l`.
pub(super) fn letters(mode: u32) -> String {
    let mut text = String::new();
    for (shift, special, set, alone) in [(6, 0o4000, 's', 'S'), (3, 0o2000, 's', 'S'), (0, 0o1000, 't', 'T')]
    {
        let three = mode >> shift & 7;
        text.push(if three & 4 != 0 { 'r' } else { '-' });
        text.push(if three & 2 != 0 { 'w' } else { '-' });
        text.push(match (three & 1 != 0, mode & special != 0) {
            (true, true) => set,
            (false, true) => alone,
            (true, false) => 'x',
            (false, false) => '-',
        });
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn modes_change_as_chmod_says() {
        for (text, before, is_directory, after) in [
            ("755", 0o644, false, 0o755),
            ("u+x,go-r", 0o644, false, 0o700),
            ("a=rw", 0o700, false, 0o666),
            ("+x", 0o644, false, 0o755),
            ("+w", 0o444, false, 0o644),
            ("u=rwX,g=", 0o654, false, 0o704),
            ("go+X", 0o700, true, 0o711),
            ("go=u", 0o640, false, 0o666),
            ("u+s,+t", 0o755, false, 0o5755),
            ("u-x+r", 0o311, false, 0o611),
        ] {
            let change = ModeChange::parse(text).unwrap();
            assert_eq!(change.applied(before, is_directory, 0o022), after, "{text} of {before:o}");
        }
        for text in ["", "999", "u+q", "u", "77777", "x+r"] {
            assert_eq!(ModeChange::parse(text), None, "{text}");
        }
        assert_eq!((letters(0o4755), letters(0o1666)), ("rwsr-xr-x".into(), "rw-rw-rwT".into()));
    }
}
