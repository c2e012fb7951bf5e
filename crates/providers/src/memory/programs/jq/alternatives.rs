//! Patterns with alternatives, `E as [$a] ?// $b | F`, which the library does not know. They are
//! written as attempts: a pattern or a body that fails goes on to the next pattern.

use std::collections::BTreeSet;

use super::code::code_of;

/// The alternatives that one filter may have. Each copies what stands behind it.
const MAX_ROUNDS: usize = 16;

/// The filter without alternatives.
pub(super) fn without_alternatives(text: &str) -> String {
    let mut text = text.to_owned();
    for round in 0..MAX_ROUNDS {
        match rewritten(&text, round) {
            Some(next) => text = next,
            None => break,
        }
    }
    text
}

fn rewritten(text: &str, round: usize) -> Option<String> {
    let code = code_of(text);
    let (begin, first) =
        code.match_indices("?//").find_map(|(at, _)| Some((pattern_before(&code, at)?, at)))?;
    let pipe = first + find_at_level(&code[first..], |rest| rest.starts_with('|'))?;
    let patterns: Vec<&str> = split_alternatives(&text[begin..pipe], &code[begin..pipe]);
    let body_end = pipe + 1 + find_at_level(&code[pipe + 1..], |_| false).unwrap_or(code.len() - pipe - 1);
    let body = &text[pipe + 1..body_end];
    let names: BTreeSet<&str> = variables(&code[begin..pipe]).collect();
    let (value, input) = (format!("$__value{round}"), format!("$__input{round}"));
    let mut out = format!("{} {value} | . as {input}", &text[..begin]);
    for name in names {
        out += &format!(" | null as {name}");
    }
    out += " | ";
    for (index, pattern) in patterns.iter().enumerate() {
        let attempt = format!("({input} | {value} as {} | {body})", pattern.trim());
        out += &if index + 1 < patterns.len() { format!("try {attempt} catch ") } else { attempt };
    }
    Some(out + &text[body_end..])
}

/// The place behind the `as` of the pattern that ends here, if one does.
fn pattern_before(code: &str, end: usize) -> Option<usize> {
    let mut depth = 0_u32;
    for (at, letter) in code[..end].char_indices().rev() {
        match letter {
            ']' | '}' | ')' => depth += 1,
            '[' | '{' | '(' => depth = depth.checked_sub(1)?,
            _ if depth > 0 => {}
            's' if is_word_at(code, at.checked_sub(1)?, "as") => return Some(at + 1),
            letter if letter.is_alphanumeric() || letter.is_whitespace() || "$_".contains(letter) => {}
            _ => return None,
        }
    }
    None
}

fn is_word_at(code: &str, at: usize, word: &str) -> bool {
    let is_part = |letter: char| letter.is_alphanumeric() || "_$".contains(letter);
    code.get(at..).is_some_and(|rest| {
        rest.starts_with(word) && !rest[word.len()..].starts_with(is_part) && !code[..at].ends_with(is_part)
    })
}

/// The first place at this level that is wanted, or at which the level ends.
fn find_at_level(code: &str, wanted: impl Fn(&str) -> bool) -> Option<usize> {
    let (mut depth, mut conditions) = (0_u32, 0_u32);
    for (at, letter) in code.char_indices() {
        if depth == 0 && conditions == 0 && wanted(&code[at..]) {
            return Some(at);
        }
        match letter {
            '[' | '{' | '(' => depth += 1,
            ']' | '}' | ')' if depth == 0 => return Some(at),
            ']' | '}' | ')' => depth -= 1,
            ';' if depth == 0 => return Some(at),
            'i' if depth == 0 && is_word_at(code, at, "if") => conditions += 1,
            't' | 'e' if depth == 0 => {
                let ends = is_word_at(code, at, "end");
                let goes_on = ["then", "elif", "else"].iter().any(|word| is_word_at(code, at, word));
                if (ends || goes_on) && conditions == 0 {
                    return Some(at);
                }
                conditions -= u32::from(ends);
            }
            _ => {}
        }
    }
    None
}

fn split_alternatives<'t>(text: &'t str, code: &str) -> Vec<&'t str> {
    let mut parts = Vec::new();
    let mut from = 0;
    for (at, mark) in code.match_indices("?//") {
        parts.push(&text[from..at]);
        from = at + mark.len();
    }
    parts.push(&text[from..]);
    parts
}

fn variables(code: &str) -> impl Iterator<Item = &str> {
    code.match_indices('$').map(|(at, _)| {
        let is_part = |letter: char| letter.is_alphanumeric() || letter == '_';
        let len = code[at + 1..].find(|letter| !is_part(letter)).unwrap_or(code.len() - at - 1);
        &code[at..=at + len]
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn alternatives_become_attempts() {
        assert_eq!(
            without_alternatives(".[] as [$a] ?// $b | [$a, $b]"),
            ".[] as $__value0 | . as $__input0 | null as $a | null as $b | \
             try ($__input0 | $__value0 as [$a] |  [$a, $b]) catch ($__input0 | $__value0 as $b |  [$a, $b])"
        );
        let inside = without_alternatives("[if . as {a: $x} ?// [$x] | $x then 1 else 2 end, 3]");
        assert!(inside.ends_with("| $__value0 as [$x] |  $x )then 1 else 2 end, 3]"), "{inside}");
    }

    #[test]
    fn what_is_no_pattern_stays() {
        for text in [".a?//1", "\"as $x ?// $y | 1\"", ". as $x | .a?//2", "# as $a ?// $b"] {
            assert_eq!(without_alternatives(text), text);
        }
    }
}
