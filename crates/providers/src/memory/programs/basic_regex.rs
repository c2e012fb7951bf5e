//! POSIX's basic patterns with GNU's additions, as `expr`, `csplit` and `diff -I` take them,
//! rewritten for the crate `regex`. References back to a group are refused.

use regex::bytes::{Regex, RegexBuilder};

/// The most bytes that a compiled pattern may take.
const MAX_PATTERN_BYTES: usize = 4 << 20;

/// Compiles a pattern. With `is_anchored` it matches at the beginning alone.
///
/// # Errors
/// The reason in the words of the C library.
pub(super) fn compile(pattern: &str, is_anchored: bool) -> Result<Regex, &'static str> {
    let rewritten = rewrite(pattern)?;
    let whole = if is_anchored { format!("\\A(?:{rewritten})") } else { rewritten };
    RegexBuilder::new(&whole)
        .dot_matches_new_line(true)
        .size_limit(MAX_PATTERN_BYTES)
        .build()
        .map_err(|_| "Invalid regular expression")
}

fn rewrite(pattern: &str) -> Result<String, &'static str> {
    let mut out = String::new();
    let mut rest = pattern.chars().peekable();
    let mut depth = 0_usize;
    // Nothing stands before it that could be repeated.
    let mut is_start = true;
    while let Some(letter) = rest.next() {
        let was_start = std::mem::replace(&mut is_start, false);
        match letter {
            '\\' => {
                let letter = rest.next().ok_or("Trailing backslash")?;
                escaped(letter, &mut out, &mut depth)?;
                is_start = matches!(letter, '(' | '|');
                if letter == '{' {
                    out.push_str(&interval(&mut rest)?);
                }
            }
            '*' if was_start => out.push_str("\\*"),
            '*' => out.push('*'),
            '^' if was_start => {
                out.push('^');
                is_start = true;
            }
            '$' if is_end(rest.clone()) => out.push('$'),
            '[' => out.push_str(&bracket(&mut rest)?),
            '.' => out.push('.'),
            other => out.push_str(&regex::escape(other.encode_utf8(&mut [0; 4]))),
        }
    }
    if depth == 0 { Ok(out) } else { Err("Unmatched ( or \\(") }
}

/// Writes what stands for a letter behind a backslash, but for the end of an interval.
fn escaped(letter: char, out: &mut String, depth: &mut usize) -> Result<(), &'static str> {
    match letter {
        '(' => *depth += 1,
        ')' => *depth = depth.checked_sub(1).ok_or("Unmatched ) or \\)")?,
        _ => {}
    }
    match letter {
        '(' | ')' | '|' | '+' | '?' => out.push(letter),
        '{' => {}
        '<' => out.push_str("\\b{start}"),
        '>' => out.push_str("\\b{end}"),
        '`' => out.push_str("\\A"),
        '\'' => out.push_str("\\z"),
        'w' | 'W' | 's' | 'S' | 'b' | 'B' => out.extend(['\\', letter]),
        '1'..='9' => return Err("Invalid back reference"),
        other => out.push_str(&regex::escape(other.encode_utf8(&mut [0; 4]))),
    }
    Ok(())
}

/// Tells whether a `$` with this behind it is the end of a line.
fn is_end(mut rest: std::iter::Peekable<std::str::Chars<'_>>) -> bool {
    match rest.next() {
        None => true,
        Some('\\') => matches!(rest.next(), Some(')' | '|')),
        Some(_) => false,
    }
}

fn interval(rest: &mut impl Iterator<Item = char>) -> Result<String, &'static str> {
    let mut inside = String::new();
    loop {
        match rest.next().ok_or("Unmatched \\{")? {
            '\\' if rest.next() == Some('}') => break,
            letter if letter.is_ascii_digit() || letter == ',' => inside.push(letter),
            _ => return Err("Invalid content of \\{\\}"),
        }
    }
    if inside.starts_with(',') {
        inside.insert(0, '0');
    }
    Ok(format!("{{{inside}}}"))
}

/// Rewrites a set of characters: in a basic pattern a backslash is itself there.
fn bracket(rest: &mut std::iter::Peekable<impl Iterator<Item = char>>) -> Result<String, &'static str> {
    const UNMATCHED: &str = "Unmatched [, [^, [:, [., or [=";
    if rest.peek().is_none() {
        return Err("Invalid regular expression");
    }
    let mut out = String::from("[");
    if rest.next_if_eq(&'^').is_some() {
        out.push('^');
    }
    let mut is_first = true;
    loop {
        let letter = rest.next().ok_or(UNMATCHED)?;
        match letter {
            ']' if !is_first => break,
            '[' if rest.peek() == Some(&':') => {
                let class: String = rest.by_ref().take_while(|letter| *letter != ']').collect();
                out.push_str(&format!("[{class}]"));
            }
            '-' if !is_first && rest.peek() != Some(&']') => out.push('-'),
            '\\' | '[' | ']' | '^' | '-' | '&' | '~' => out.extend(['\\', letter]),
            other => out.push(other),
        }
        is_first = false;
    }
    out.push(']');
    Ok(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_basic_pattern_finds_what_gnu_finds() {
        for (pattern, text, found) in [
            ("a*b", "xaab", Some("aab")),
            ("*a", "b*a", Some("*a")),
            ("a\\+", "baaa", Some("aaa")),
            ("a+", "aa+", Some("a+")),
            ("^\\(x\\|y\\)z$", "yz", Some("yz")),
            ("a^b$c", "a^b$c", Some("a^b$c")),
            ("[]x\\]*z", "]\\]z", Some("]\\]z")),
            ("[[:digit:]]\\{2,3\\}", "a1234", Some("123")),
            ("\\<b", "ab b", Some("b")),
            ("(a|b){2}", "(a|b){2}", Some("(a|b){2}")),
        ] {
            let regex = compile(pattern, false).unwrap();
            let got = regex.find(text.as_bytes()).map(|found| found.as_bytes());
            assert_eq!(got, found.map(str::as_bytes), "{pattern}");
        }
    }

    #[test]
    fn a_wrong_pattern_is_refused_with_its_reason() {
        for (pattern, reason) in [
            ("\\(a", "Unmatched ( or \\("),
            ("a\\)", "Unmatched ) or \\)"),
            ("[a", "Unmatched [, [^, [:, [., or [="),
            ("[", "Invalid regular expression"),
            ("a\\", "Trailing backslash"),
            ("\\(a\\)\\1", "Invalid back reference"),
        ] {
            assert_eq!(compile(pattern, false).err(), Some(reason), "{pattern}");
        }
    }
}
