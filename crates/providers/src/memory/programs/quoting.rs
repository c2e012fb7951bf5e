//! Names as GNU's programs show them in errors.

use super::name_style::NameStyle;

/// A name as a shell would take it: `'a b'`.
pub(super) fn quoted(name: &str) -> String {
    shown(name, NameStyle::ShellEscapeAlways)
}

/// A name that is quoted only where its end would not be clear.
pub(super) fn plain(name: &str) -> String {
    let quoted = quoted(name);
    if quoted == format!("'{name}'") && !name.contains([' ', ':']) { name.to_owned() } else { quoted }
}

/// Quotes a word for a shell, if needed.
pub(super) fn shell_word(word: &str) -> String {
    shown(word, NameStyle::ShellEscape)
}

/// A word between curly quotes: `‘a b’`.
pub(super) fn curly(name: &str) -> String {
    shown(name, NameStyle::Locale)
}

fn shown(name: &str, style: NameStyle) -> String {
    String::from_utf8_lossy(&style.of(name.as_bytes())).into_owned()
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
            ("\u{1}", "''$'\\001'"),
        ] {
            assert_eq!(quoted(name), text);
        }
        assert_eq!(curly("a\nb"), "‘a\\nb’");
    }
}
