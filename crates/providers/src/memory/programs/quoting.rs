//! Names in messages, in the quotes that GNU's programs put around them.

use std::fmt::Write;

/// A name in straight quotes, so that a shell would read it back.
pub(super) fn quoted(name: &str) -> String {
    let is_special = |letter: char| matches!(letter, '"' | '\\' | '$' | '`' | '!') || letter.is_control();
    if name.contains('\'') && !name.contains(is_special) {
        return format!("\"{name}\"");
    }
    let mut text = String::from("'");
    for letter in name.chars() {
        match letter {
            '\'' => text += "'\\''",
            '\n' => text += "'$'\\n''",
            '\t' => text += "'$'\\t''",
            '\r' => text += "'$'\\r''",
            letter if letter.is_ascii_control() => {
                let _ = write!(text, "'$'\\{:03o}''", u32::from(letter));
            }
            letter => text.push(letter),
        }
    }
    text + "'"
}

/// A name in curved quotes.
pub(super) fn curly(name: &str) -> String {
    let mut text = String::from("‘");
    for letter in name.chars() {
        match letter {
            '\n' => text += "\\n",
            '\t' => text += "\\t",
            '\\' => text += "\\\\",
            letter if letter.is_ascii_control() => {
                let _ = write!(text, "\\{:03o}", u32::from(letter));
            }
            letter => text.push(letter),
        }
    }
    text + "’"
}

/// The last part of a path, without slashes behind it.
pub(super) fn base_name(path: &str) -> &str {
    let trimmed = path.trim_end_matches('/');
    if trimmed.is_empty() {
        return if path.is_empty() { "" } else { "/" };
    }
    trimmed.rsplit('/').next().unwrap_or(trimmed)
}

/// A name in a directory.
pub(super) fn joined(directory: &str, name: &str) -> String {
    if directory.ends_with('/') { format!("{directory}{name}") } else { format!("{directory}/{name}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_quoted_so_that_a_shell_reads_them_back() {
        for (name, text) in [
            ("a b", "'a b'"),
            ("it's", "\"it's\""),
            ("it's $x", "'it'\\''s $x'"),
            ("a\nb", "'a'$'\\n''b'"),
            ("\u{1}", "''$'\\001'''"),
        ] {
            assert_eq!(quoted(name), text);
        }
        assert_eq!(curly("a\nb"), "‘a\\nb’");
    }
}
