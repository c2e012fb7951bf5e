//! Names as GNU's programs show them in errors.

use super::name_style::NameStyle;

/// A name as a shell would take it: `'a b'`.
pub(super) fn quoted(name: &str) -> String {
    shown(name, NameStyle::ShellEscapeAlways)
}

/// A word between curly quotes: `‘a b’`.
pub(super) fn curly(name: &str) -> String {
    shown(name, NameStyle::Locale)
}

fn shown(name: &str, style: NameStyle) -> String {
    String::from_utf8_lossy(&style.of(name.as_bytes())).into_owned()
}
