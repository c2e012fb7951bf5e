//! The ways in which GNU's programs show a name: `--quoting-style` of `ls` names them.

/// A way to show a name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum NameStyle {
    Literal,
    /// As a shell takes it, quoted where it must be.
    Shell,
    ShellAlways,
    /// Quoted so, with bytes that can't be printed as `$'\n'`.
    ShellEscape,
    ShellEscapeAlways,
    /// As a C string.
    C,
    /// As a C string where it must be.
    CMaybe,
    /// As in a C string, without quotes.
    Escape,
    /// As in a C string, between curly quotes.
    Locale,
}

/// The styles by their names.
pub(super) static STYLES: [(&str, NameStyle); 10] = [
    ("literal", NameStyle::Literal),
    ("shell", NameStyle::Shell),
    ("shell-always", NameStyle::ShellAlways),
    ("shell-escape", NameStyle::ShellEscape),
    ("shell-escape-always", NameStyle::ShellEscapeAlways),
    ("c", NameStyle::C),
    ("c-maybe", NameStyle::CMaybe),
    ("escape", NameStyle::Escape),
    ("locale", NameStyle::Locale),
    ("clocale", NameStyle::Locale),
];

/// A character of a name, or a byte that is none.
enum NamePiece<'a> {
    Text(char, &'a [u8]),
    Byte(u8),
}

impl NameStyle {
    /// Shows a name.
    pub(super) fn of(self, name: &[u8]) -> Vec<u8> {
        match self {
            Self::Literal => name.to_vec(),
            Self::C => c_string(name, "\"", "\"", false),
            Self::Locale => c_string(name, "‘", "’", false),
            Self::Escape => c_string(name, "", "", true),
            Self::CMaybe => {
                let string = c_string(name, "\"", "\"", false);
                if string.len() == name.len() + 2 { name.to_vec() } else { string }
            }
            Self::Shell | Self::ShellEscape if !needs_quotes(name, self == Self::ShellEscape) => {
                name.to_vec()
            }
            Self::Shell | Self::ShellAlways => shell_word(name, false),
            Self::ShellEscape | Self::ShellEscapeAlways => shell_word(name, true),
        }
    }
}

/// Shows a name with `?` for what can't be printed.
pub(super) fn with_marks(name: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(name.len());
    for piece in pieces(name) {
        match piece {
            NamePiece::Text(letter, bytes) if !letter.is_control() => out.extend_from_slice(bytes),
            _ => out.push(b'?'),
        }
    }
    out
}

fn pieces(name: &[u8]) -> impl Iterator<Item = NamePiece<'_>> {
    name.utf8_chunks().flat_map(|chunk| {
        let valid = chunk.valid();
        let piece = move |(at, letter): (usize, char)| {
            NamePiece::Text(letter, &valid.as_bytes()[at..at + letter.len_utf8()])
        };
        valid.char_indices().map(piece).chain(chunk.invalid().iter().map(|byte| NamePiece::Byte(*byte)))
    })
}

/// Writes what can't be printed as C does, without any quotes.
fn escape(letter: char, bytes: &[u8]) -> Vec<u8> {
    let short = match letter {
        '\x07' => Some('a'),
        '\x08' => Some('b'),
        '\x0c' => Some('f'),
        '\n' => Some('n'),
        '\r' => Some('r'),
        '\t' => Some('t'),
        '\x0b' => Some('v'),
        _ => None,
    };
    match short {
        Some(short) => format!("\\{short}").into_bytes(),
        None => bytes.iter().flat_map(|byte| format!("\\{byte:03o}").into_bytes()).collect(),
    }
}

fn c_string(name: &[u8], open: &str, close: &str, escapes_blanks: bool) -> Vec<u8> {
    let mut out = open.as_bytes().to_vec();
    for piece in pieces(name) {
        match piece {
            NamePiece::Byte(byte) => out.extend(escape('\0', &[byte])),
            NamePiece::Text(letter, bytes) if letter.is_control() => out.extend(escape(letter, bytes)),
            NamePiece::Text(letter, bytes) => {
                let is_close = !close.is_empty() && close.starts_with(letter);
                if letter == '\\' || is_close || (escapes_blanks && letter == ' ') {
                    out.push(b'\\');
                }
                out.extend_from_slice(bytes);
            }
        }
    }
    out.extend_from_slice(close.as_bytes());
    out
}

/// Tells whether a shell would take the name for something else.
fn needs_quotes(name: &[u8], escapes: bool) -> bool {
    if name.is_empty() || name == b"{" || name == b"}" || matches!(name[0], b'#' | b'~') {
        return true;
    }
    pieces(name).any(|piece| match piece {
        NamePiece::Text(letter, _) if " !\"$&'()*;<=>?[\\^`|\n\r\t".contains(letter) => true,
        NamePiece::Text(letter, _) => escapes && letter.is_control(),
        NamePiece::Byte(_) => escapes,
    })
}

/// Writes a word of a shell. Double quotes stand around a name with an apostrophe, where they can.
fn shell_word(name: &[u8], escapes: bool) -> Vec<u8> {
    let is_plain = |piece: NamePiece<'_>| match piece {
        NamePiece::Text(letter, _) => !letter.is_control() && !"!\"$&()*;<=>?[\\^`|{}".contains(letter),
        NamePiece::Byte(_) => false,
    };
    if name.contains(&b'\'') && pieces(name).all(is_plain) {
        return [b"\"", name, b"\""].concat();
    }
    let mut out = vec![b'\''];
    let mut is_escaped = false;
    for piece in pieces(name) {
        let (letter, bytes) = match &piece {
            NamePiece::Text(letter, bytes) => (*letter, *bytes),
            NamePiece::Byte(byte) => ('\0', std::slice::from_ref(byte)),
        };
        let is_odd = escapes && letter.is_control();
        if is_odd != is_escaped {
            out.extend_from_slice(if is_odd { b"'$'" } else { b"''" });
            is_escaped = is_odd;
        }
        match letter {
            _ if is_odd => out.extend(escape(letter, bytes)),
            '\'' => out.extend_from_slice(b"'\\''"),
            _ => out.extend_from_slice(bytes),
        }
    }
    out.push(b'\'');
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(style: NameStyle, name: &str) -> String {
        String::from_utf8(style.of(name.as_bytes())).unwrap()
    }

    #[test]
    fn a_name_is_quoted_as_a_shell_takes_it() {
        for (name, quoted) in [
            ("plain", "plain"),
            ("a b", "'a b'"),
            ("it's", "\"it's\""),
            ("it's $5", "'it'\\''s $5'"),
            ("tab\tname", "'tab'$'\\t''name'"),
            ("\n", "''$'\\n'"),
            ("ünï", "ünï"),
            ("#a", "'#a'"),
            ("a#", "a#"),
            ("{", "'{'"),
            ("a=b", "'a=b'"),
        ] {
            assert_eq!(shown(NameStyle::ShellEscape, name), quoted);
        }
        assert_eq!(shown(NameStyle::ShellEscapeAlways, ""), "''");
        assert_eq!(NameStyle::ShellEscape.of(b"\xff"), b"''$'\\377'");
    }

    #[test]
    fn the_other_styles_escape_what_they_must() {
        let name = "a \"b\\\n’";
        assert_eq!(shown(NameStyle::C, name), "\"a \\\"b\\\\\\n’\"");
        assert_eq!(shown(NameStyle::Escape, name), "a\\ \"b\\\\\\n’");
        assert_eq!(shown(NameStyle::Locale, name), "‘a \"b\\\\\\n\\’’");
        assert_eq!(shown(NameStyle::CMaybe, "a b"), "a b");
        assert_eq!(with_marks(b"a\tb\xff"), b"a?b?");
    }
}
