//! Names that are not UTF-8, as scripts write them: `"$(printf 'a\377')"`. The interpreter's values are text, so it would lose
//! such bytes. They are written in the form that the files take for them.

use std::borrow::Cow;
use std::ops::Range;

use serde_json::Value;

use super::{read_tree, visit};
use crate::memory::odd_names::{decoded, encoded};

/// The beginning of a substitution that may have such a name.
const BEGIN: &str = "$(printf";
/// So many of them are changed. Each takes a reading of the script.
const MAX_CHANGES: usize = 32;

/// Returns a script in which such names are text.
pub(super) fn with_byte_names(script: &str) -> Cow<'_, str> {
    if !script.contains(BEGIN) {
        return Cow::Borrowed(script);
    }
    let mut changed = Cow::Borrowed(script);
    let mut names = 0;
    // The last one first, so that the places of the others stay.
    let places: Vec<usize> = script.match_indices(BEGIN).map(|(at, _)| at + BEGIN.len()).collect();
    let formats = places.iter().rev().filter_map(|at| format_at(script, *at));
    for format in formats.filter(|format| has_byte(&script[format.clone()])).take(MAX_CHANGES) {
        let text = with_text(&script[format.clone()]);
        let tried = [&changed[..format.start], &text, &changed[format.end..]].concat();
        // Elsewhere, such as in a quoted text, it is no name.
        if byte_names(&tried) == Some(names + 1) {
            names += 1;
            changed = Cow::Owned(tried);
        }
    }
    changed
}

/// Returns the place of the quoted format that follows the name of the program.
fn format_at(script: &str, behind: usize) -> Option<Range<usize>> {
    let rest = &script[behind..];
    let word = rest.trim_start_matches([' ', '\t']);
    let word = word.strip_prefix("-- ").unwrap_or(word);
    let quote = word.chars().next().filter(|quote| matches!(quote, '\'' | '"'))?;
    let start = behind + rest.len() - word.len() + 1;
    let end = start + script[start..].find(quote)?;
    let is_plain = quote == '\'' || !script[start..end].contains(['$', '`']);
    (is_plain && script[end + 1..].starts_with([')', ' '])).then_some(start..end)
}

fn has_byte(format: &str) -> bool {
    format.match_indices('\\').any(|(at, _)| escape(&format[at..]).is_some_and(|(byte, _)| !byte.is_ascii()))
}

/// Returns the byte of the escape that a format begins with, and the length of the escape.
fn escape(format: &str) -> Option<(u8, usize)> {
    let digits = format.strip_prefix('\\')?;
    let (digits, base, most) = match digits.strip_prefix('x') {
        Some(digits) => (digits, 16, 2),
        None => (digits, 8, 3),
    };
    let count = digits.chars().take(most).take_while(|digit| digit.is_digit(base)).count();
    let value = u32::from_str_radix(&digits[..count], base).ok()?;
    Some((u8::try_from(value).ok()?, format.len() - digits.len() + count))
}

/// Replaces the bytes that are no ASCII: text where they are text, and the stand-ins of the others.
fn with_text(format: &str) -> String {
    let mut text = String::with_capacity(format.len());
    let mut bytes = Vec::new();
    let mut rest = format;
    while let Some(letter) = rest.chars().next() {
        match escape(rest).filter(|(byte, _)| !byte.is_ascii()) {
            Some((byte, length)) => {
                bytes.push(byte);
                rest = &rest[length..];
            }
            None => {
                text += &encoded(&std::mem::take(&mut bytes));
                // An escape of another kind, such as `\\`, is one letter.
                let length = if rest.starts_with("\\\\") { 2 } else { letter.len_utf8() };
                text += &rest[..length];
                rest = &rest[length..];
            }
        }
    }
    text + &encoded(&bytes)
}

/// Counts the substitutions by a `printf` with such a name. `None`: the script can't be parsed.
fn byte_names(script: &str) -> Option<usize> {
    let mut count = 0;
    let is_name =
        |text: &Value| text.as_str().is_some_and(|text| matches!(decoded(text.as_bytes()), Cow::Owned(_)));
    let prints_name = |command: &Value| {
        let command = &command["Simple"];
        command["name"]["parts"][0]["Literal"] == "printf"
            && command["args"].as_array().is_some_and(|args| {
                let parts = args.iter().filter_map(|arg| arg["parts"].as_array()).flatten();
                parts.into_iter().any(|part| is_name(&part["Literal"]))
            })
    };
    visit(&read_tree(script)?, &mut |part| {
        if let Some([command]) = part["CommandSubstitution"].as_array().map(Vec::as_slice) {
            count += usize::from(prints_name(command));
        }
    });
    Some(count)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bytes_of(script: &str) -> Vec<u8> {
        decoded(with_byte_names(script).as_bytes()).into_owned()
    }

    #[test]
    fn the_bytes_of_a_name_are_kept() {
        for (script, kept) in [
            (r#"echo x > "$(printf 'bad\377name')""#, &b"echo x > \"$(printf 'bad\xffname')\""[..]),
            (r"mv d/$(printf '\377') d/$(printf -- '\xFe')", b"mv d/$(printf '\xff') d/$(printf -- '\xfe')"),
            (r#"touch $(printf "\303\251\\\351%s" a)"#, b"touch $(printf \"\xc3\xa9\\\\\xe9%s\" a)"),
        ] {
            assert_eq!(bytes_of(script), kept, "{script}");
        }
    }

    #[test]
    fn anything_else_stays_as_it_is() {
        for script in [
            r"printf '\377' | od",
            r"echo '$(printf \377)'; echo '$(printf '\377')'x",
            "cat <<'E'\n$(printf '\\377')\nE",
            r"x=$(printf 'a\n\101'); y=$(printf 'Zoë %s' é); printf \377é",
            r"x=$(printf '\377' | od)",
            r#"x=$(printf "$y\377")"#,
            r"x=$(printf '\377'; echo)",
            r"x=$(printf '\377'); if",
        ] {
            assert_eq!(with_byte_names(script), script);
        }
    }
}
