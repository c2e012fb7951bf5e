//! Names that are not UTF-8, as scripts write them: `"$(printf 'a\377')"`. The interpreter's values are text, so it would lose
//! such bytes. They are written in the form that the files take for them.

use std::borrow::Cow;
use std::ops::Range;

use serde_json::Value;

use super::{read_tree, visit};
use crate::memory::odd_names::{decoded, encoded};

/// The beginning of a substitution that may have such a name.
pub(super) const BEGIN: &str = "$(printf";
/// The most that are changed. Each takes a reading of the script.
const MAX_CHANGES: usize = 8;

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
    let texts = formats.filter_map(|format| Some((with_text(&script[format.clone()])?, format)));
    let mut unchanged = script.len();
    for (text, format) in texts.take(MAX_CHANGES) {
        // One may lie within another's quotes.
        if format.end > unchanged {
            continue;
        }
        let tried = [&changed[..format.start], &text, &changed[format.end..]].concat();
        // Elsewhere, such as in a quoted text, it is no name.
        if byte_names(&tried) == Some(names + 1) {
            names += 1;
            unchanged = format.start;
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
    // In double quotes, two backslashes are one.
    let format = &script[start..end];
    let is_plain = quote == '\'' || !(format.contains(['$', '`']) || format.contains("\\\\"));
    (is_plain && script[end + 1..].starts_with([')', ' '])).then_some(start..end)
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

/// Writes the bytes that are no ASCII as text, those that no text has by their stand-ins. `None`: there are none of those.
fn with_text(format: &str) -> Option<String> {
    let mut text = String::with_capacity(format.len());
    let mut bytes = Vec::new();
    let mut has_odd = false;
    let mut rest = format;
    while let Some(letter) = rest.chars().next() {
        if let Some((byte, length)) = escape(rest).filter(|(byte, _)| !byte.is_ascii()) {
            bytes.push(byte);
            rest = &rest[length..];
            continue;
        }
        has_odd |= add(&mut text, &std::mem::take(&mut bytes));
        // An escape of another kind, such as `\\`, is one letter.
        let length = if rest.starts_with("\\\\") { 2 } else { letter.len_utf8() };
        text += &rest[..length];
        rest = &rest[length..];
    }
    has_odd |= add(&mut text, &bytes);
    has_odd.then_some(text)
}

/// Adds bytes to a text. Tells whether some are no text.
fn add(text: &mut String, bytes: &[u8]) -> bool {
    let mut has_odd = false;
    for chunk in bytes.utf8_chunks() {
        *text += chunk.valid();
        *text += &encoded(chunk.invalid());
        has_odd |= !chunk.invalid().is_empty();
    }
    has_odd
}

/// Counts the substitutions by a `printf` with such a name. `None`: the script can't be parsed.
fn byte_names(script: &str) -> Option<usize> {
    let mut count = 0;
    let is_name =
        |text: &Value| text.as_str().is_some_and(|text| matches!(decoded(text.as_bytes()), Cow::Owned(_)));
    let prints_name = |command: &Value| {
        let command = &command["Simple"];
        // A file would get the stand-ins.
        let redirects = command["redirects"].as_array();
        command["name"]["parts"][0]["Literal"] == "printf"
            && redirects.is_some_and(Vec::is_empty)
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
            (r#"touch $(printf "\303\251\351%s" a)"#, b"touch $(printf \"\xc3\xa9\xe9%s\" a)"),
            (r#"x=$(printf 'a $(printf "\303\251\377")')"#, b"x=$(printf 'a $(printf \"\xc3\xa9\xff\")')"),
        ] {
            assert_eq!(bytes_of(script), kept, "{script}");
        }
    }

    #[test]
    fn anything_else_stays_as_it_is() {
        for script in [
            r"printf '\377' | od",
            r"x=$(printf '\377' >f)",
            r#"x=$(printf "\\351")"#,
            r"BOM=$(printf '\357\273\277'); z=$(printf '\342\200\213'); n=$(printf '\302\205')",
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
