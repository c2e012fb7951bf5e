//! Syntax of `jq` that the library does not know, written in the syntax that it knows.

use std::borrow::Cow;

use super::alternatives::without_alternatives;
use super::code::code_of;

/// The filter as the library reads it. Nothing is the filter that changes nothing, and so are
/// definitions alone.
pub(super) fn expanded(text: &str) -> Cow<'_, str> {
    let text = if is_without_body(text) { Cow::Owned(format!("{text} .")) } else { Cow::Borrowed(text) };
    let text = if text.contains(LOCATION) { Cow::Owned(with_locations(&text)) } else { text };
    let text = if text.contains("?//") { Cow::Owned(without_alternatives(&text)) } else { text };
    if text.contains("\\u") { Cow::Owned(with_letters(&text)) } else { text }
}

/// The filter with definitions that take filters made so that they do not call themselves last. The
/// library would go on without end there, and keep the filters of all calls; so the stack bounds
/// them.
pub(super) fn bounded(text: &str) -> Cow<'_, str> {
    if !text.contains("def") {
        return Cow::Borrowed(text);
    }
    let code = code_of(text);
    let mut out = String::with_capacity(text.len());
    // The definitions that are open: how deep they are in brackets, and whether they take filters.
    let mut open: Vec<(u32, bool)> = Vec::new();
    let (mut depth, mut from) = (0_u32, 0);
    let mut words = code.char_indices().peekable();
    let is_word = |letter: char| letter.is_alphanumeric() || "_$@.".contains(letter);
    while let Some((at, letter)) = words.next() {
        match letter {
            '(' | '[' | '{' => depth += 1,
            ')' | ']' | '}' => depth = depth.saturating_sub(1),
            ';' => {
                let ends = open.pop_if(|(level, _)| *level == depth);
                if ends.is_some_and(|(_, takes_filters)| takes_filters) {
                    out += &text[from..at];
                    out += " | .";
                    from = at;
                }
            }
            letter if is_word(letter) => {
                while words.next_if(|(_, letter)| is_word(*letter)).is_some() {}
                let end = words.peek().map_or(code.len(), |(end, _)| *end);
                if &code[at..end] == "def" {
                    // Its parameters are gone over first, whose signs are not those of its body.
                    let head = code[end..].split(':').next().unwrap_or_default();
                    let takes_filters = head.split_once('(').is_some_and(|(_, parameters)| {
                        parameters.split(';').any(|parameter| !parameter.trim().starts_with('$'))
                    });
                    let body = end + head.len();
                    while words.next_if(|(at, _)| *at < body).is_some() {}
                    open.push((depth, takes_filters));
                }
            }
            _ => {}
        }
    }
    out += &text[from..];
    Cow::Owned(out)
}

/// The text with the letters beyond the first 65,536 in place of their two escapes each.
fn with_letters(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut left = text;
    while let Some(at) = left.find('\\') {
        out += &left[..at];
        left = &left[at..];
        let unit = |from: usize| {
            let digits = left.get(from..from + 6)?.strip_prefix("\\u")?;
            u16::from_str_radix(digits, 16).ok()
        };
        let pair = unit(0).zip(unit(6));
        let letter = pair.and_then(|(high, low)| {
            char::decode_utf16([high, low]).next()?.ok().filter(|letter| letter.len_utf16() == 2)
        });
        if let Some(letter) = letter {
            out.push(letter);
            left = &left[12..];
        } else {
            let len = 1 + left[1..].chars().next().map_or(0, char::len_utf8);
            out += &left[..len];
            left = &left[len..];
        }
    }
    out + left
}

/// The variable whose value is its own place.
const LOCATION: &str = "$__loc__";

fn is_without_body(text: &str) -> bool {
    let code = code_of(text);
    let code = code.trim_end();
    code.is_empty() || (code.ends_with(';') && code.trim_start().starts_with("def "))
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
    fn definitions_that_take_filters_do_not_call_themselves_last() {
        for (text, bound) in [
            ("def f(g): f(g|g); f(1)", "def f(g): f(g|g) | .; f(1)"),
            ("def f($x; $y): f(1; 2); f(1; 2)", "def f($x; $y): f(1; 2); f(1; 2)"),
            (
                "def f(g): def h: g; reduce h as $x (0; 1); f(.)",
                "def f(g): def h: g; reduce h as $x (0; 1) | .; f(.)",
            ),
            ("[def f(g; $x): \"\\(g);\"; f(1; 2)] | .def", "[def f(g; $x): \"\\(g);\" | .; f(1; 2)] | .def"),
        ] {
            assert_eq!(bounded(text), bound);
        }
    }

    #[test]
    fn letters_of_two_escapes_are_one() {
        assert_eq!(expanded("\"\\ud83d\\ude00\\u00e9\\\\ud83d\""), "\"😀\\u00e9\\\\ud83d\"");
    }

    #[test]
    fn nothing_is_the_filter_that_changes_nothing() {
        assert_eq!((expanded(""), expanded("def f: 1;")), (" .".into(), "def f: 1; .".into()));
        assert_eq!(expanded("def f: 1; f"), "def f: 1; f");
    }
}
