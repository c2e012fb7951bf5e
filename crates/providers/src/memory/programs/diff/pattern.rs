//! Shell patterns: `*`, `?`, sets in brackets, and a backslash before what stands for itself.

/// Tells whether a name is as a pattern says, in time that grows with both alone.
pub(super) fn is_match(pattern: &[u8], name: &[u8]) -> bool {
    let (mut at, mut from) = (0, 0);
    // Where to go on behind the last star, if the rest does not fit.
    let mut star = None;
    loop {
        if pattern.get(at) == Some(&b'*') {
            at += 1;
            star = Some((at, from));
            continue;
        }
        match name.get(from) {
            None if at == pattern.len() => return true,
            None => return false,
            Some(byte) => {
                if let Some(len) = one(&pattern[at..], *byte) {
                    (at, from) = (at + len, from + 1);
                    continue;
                }
            }
        }
        let Some((behind, start)) = star else { return false };
        star = Some((behind, start + 1));
        (at, from) = (behind, start + 1);
    }
}

/// The length of the part of a pattern that a byte fits.
fn one(pattern: &[u8], byte: u8) -> Option<usize> {
    match *pattern.first()? {
        b'?' => Some(1),
        b'[' => match set(&pattern[1..], byte) {
            Some((len, fits)) => fits.then_some(len + 1),
            None => (byte == b'[').then_some(1),
        },
        b'\\' if pattern.len() > 1 => (pattern[1] == byte).then_some(2),
        letter => (letter == byte).then_some(1),
    }
}

/// The length of a set with its end, and whether it has a byte. `None` is a set without end.
fn set(pattern: &[u8], byte: u8) -> Option<(usize, bool)> {
    let is_negated = matches!(pattern.first(), Some(b'!' | b'^'));
    let start = usize::from(is_negated);
    let mut at = start;
    let mut fits = false;
    loop {
        match pattern.get(at..)? {
            [] => return None,
            [b']', ..] if at > start => return Some((at + 1, fits != is_negated)),
            [from, b'-', to, ..] if *to != b']' => {
                fits |= (*from..=*to).contains(&byte);
                at += 3;
            }
            [b'\\', letter, ..] => {
                fits |= *letter == byte;
                at += 2;
            }
            [letter, ..] => {
                fits |= *letter == byte;
                at += 1;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_fit_the_patterns_of_a_shell() {
        for (pattern, name, fits) in [
            ("*.o", "a.o", true),
            ("*.o", ".o", true),
            ("*.o", "a.oo", false),
            ("a*b*c", "a-b-b-c", true),
            ("?", "ab", false),
            ("[a-c]x", "bx", true),
            ("[!a-c]x", "bx", false),
            ("[]]", "]", true),
            ("[", "[", true),
            ("\\*", "*", true),
            ("\\*", "a", false),
        ] {
            assert_eq!(is_match(pattern.as_bytes(), name.as_bytes()), fits, "{pattern} {name}");
        }
    }
}
