//! Syntax of `jq` that the library does not know, written in the syntax that it knows.

use std::borrow::Cow;

/// The filter as the library reads it. Nothing is the filter that changes nothing, and so are
/// definitions alone.
pub(super) fn expanded(text: &str) -> Cow<'_, str> {
    let text = if is_without_body(text) { Cow::Owned(format!("{text} .")) } else { Cow::Borrowed(text) };
    if text.contains(LOCATION) { Cow::Owned(with_locations(&text)) } else { text }
}

/// The variable whose value is its own place.
const LOCATION: &str = "$__loc__";

fn is_without_body(text: &str) -> bool {
    let code = code_of(text);
    let code = code.trim_end();
    code.is_empty() || (code.ends_with(';') && code.trim_start().starts_with("def "))
}

/// The text with blanks in place of comments and of what is in strings.
fn code_of(text: &str) -> String {
    let mut code = String::with_capacity(text.len());
    // One for each string that is open: the brackets that are open in what it has spliced in.
    let mut strings: Vec<Option<u32>> = Vec::new();
    let mut letters = text.chars().peekable();
    let blank = |letter: char| if letter == '\n' { "\n".to_owned() } else { " ".repeat(letter.len_utf8()) };
    while let Some(letter) = letters.next() {
        if let Some(None) = strings.last() {
            match letter {
                '"' => {
                    strings.pop();
                    code.push('"');
                }
                '\\' => {
                    code.push(' ');
                    match letters.next() {
                        Some('(') => {
                            code.push('(');
                            if let Some(open) = strings.last_mut() {
                                *open = Some(0);
                            }
                        }
                        Some(letter) => code += &blank(letter),
                        None => {}
                    }
                }
                letter => code += &blank(letter),
            }
            continue;
        }
        code.push(if letter == '#' { ' ' } else { letter });
        match (letter, strings.last_mut()) {
            ('#', _) => {
                while letters.peek().is_some_and(|letter| *letter != '\n') {
                    code += &letters.next().map(blank).unwrap_or_default();
                }
            }
            ('"', _) => strings.push(None),
            ('(', Some(Some(open))) => *open += 1,
            (')', Some(open @ Some(0))) => *open = None,
            (')', Some(Some(open))) => *open -= 1,
            _ => {}
        }
    }
    code
}

fn with_locations(text: &str) -> String {
    let code = code_of(text);
    let mut out = String::with_capacity(text.len());
    let mut from = 0;
    for (at, _) in code.match_indices(LOCATION) {
        let after = code[at + LOCATION.len()..].trim_start();
        if after.starts_with(|letter: char| letter.is_alphanumeric() || letter == '_')
            && code[at + LOCATION.len()..].len() == after.len()
        {
            continue;
        }
        let line = code[..at].matches('\n').count() + 1;
        let is_field = code[..at].trim_end().ends_with(['{', ','])
            && after.starts_with(['}', ','])
            && is_in_object(&code[..at]);
        let place = format!("{{\"file\":\"<top-level>\",\"line\":{line}}}");
        out += &text[from..at];
        out += &if is_field { format!("\"__loc__\":{place}") } else { format!("({place})") };
        from = at + LOCATION.len();
    }
    out + &text[from..]
}

/// Tells whether the innermost bracket that is open is one of an object.
fn is_in_object(code: &str) -> bool {
    let mut depth = 0;
    for letter in code.chars().rev() {
        match letter {
            ')' | ']' | '}' => depth += 1,
            '(' | '[' | '{' if depth > 0 => depth -= 1,
            '(' | '[' => return false,
            '{' => return true,
            _ => {}
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_spelt_out_in_code_alone() {
        assert_eq!(expanded("1\n| $__loc__.line"), "1\n| ({\"file\":\"<top-level>\",\"line\":2}).line");
        assert_eq!(expanded("{a: 1, $__loc__}"), "{a: 1, \"__loc__\":{\"file\":\"<top-level>\",\"line\":1}}");
        assert_eq!(expanded("\"é\\($__loc__)\""), "\"é\\(({\"file\":\"<top-level>\",\"line\":1}))\"");
        for same in ["\"$__loc__\"", "$__loc__x", "1 # $__loc__"] {
            assert_eq!(expanded(same), same);
        }
    }

    #[test]
    fn nothing_is_the_filter_that_changes_nothing() {
        assert_eq!((expanded(""), expanded("def f: 1;")), (" .".into(), "def f: 1; .".into()));
        assert_eq!(expanded("def f: 1; f"), "def f: 1; f");
    }
}
