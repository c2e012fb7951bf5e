//! The patterns of `--ignore` and `--hide`: `*`, `?` and `[a-z]`.

/// Tells whether a name matches. A dot in front is matched by a dot alone.
pub(super) fn matches(pattern: &str, name: &[u8]) -> bool {
    let name: Vec<char> = String::from_utf8_lossy(name).chars().collect();
    let pattern: Vec<char> = pattern.chars().collect();
    if name.first() == Some(&'.') && pattern.first() != Some(&'.') {
        return false;
    }
    let (mut at, mut next) = (0, 0);
    // The star that was met last, and where its match ends.
    let mut star: Option<(usize, usize)> = None;
    while next < name.len() {
        if pattern.get(at) == Some(&'*') {
            star = Some((at + 1, next));
            at += 1;
            continue;
        }
        if let Some(length) = one(&pattern[at..], name[next]) {
            at += length;
            next += 1;
            continue;
        }
        let Some((behind, end)) = star else { return false };
        star = Some((behind, end + 1));
        (at, next) = (behind, end + 1);
    }
    pattern[at..].iter().all(|letter| *letter == '*')
}

/// The length of the pattern's part that one letter matches.
fn one(pattern: &[char], letter: char) -> Option<usize> {
    match pattern.first()? {
        '?' => Some(1),
        '\\' if pattern.len() > 1 => (pattern[1] == letter).then_some(2),
        '[' => match set(pattern, letter) {
            Some((is_in, length)) => is_in.then_some(length),
            None => (letter == '[').then_some(1),
        },
        same => (*same == letter).then_some(1),
    }
}

/// Reads a set. `None` if it has no end.
fn set(pattern: &[char], letter: char) -> Option<(bool, usize)> {
    let is_not = matches!(pattern.get(1), Some('!' | '^'));
    let first = if is_not { 2 } else { 1 };
    let end = first + 1 + pattern.get(first + 1..)?.iter().position(|letter| *letter == ']')?;
    let (mut at, mut is_in) = (first, false);
    while at < end {
        if at + 2 < end && pattern[at + 1] == '-' {
            is_in |= (pattern[at]..=pattern[at + 2]).contains(&letter);
            at += 3;
        } else {
            is_in |= pattern[at] == letter;
            at += 1;
        }
    }
    Some((is_in != is_not, end + 1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_match_as_a_shell_matches_names() {
        for (pattern, name) in [
            ("*", "a"),
            ("*.o", "x.o"),
            ("a*b*c", "aXbYbc"),
            ("?", "ü"),
            ("[a-c]x", "bx"),
            ("[!a]", "b"),
            ("[]]", "]"),
            ("\\*", "*"),
            (".*", ".a"),
            ("[", "["),
        ] {
            assert!(matches(pattern, name.as_bytes()), "{pattern} {name}");
        }
        for (pattern, name) in
            [("*", ".a"), ("?a", ".a"), ("*.o", "x.oo"), ("[a-c]", "d"), ("a", "ab"), ("[!a]", "a")]
        {
            assert!(!matches(pattern, name.as_bytes()), "{pattern} {name}");
        }
    }
}
