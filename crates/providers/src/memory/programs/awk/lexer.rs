//! The lexer of `awk`.

use super::number::decimal;

/// A token. Signs and keywords are kept as their text.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum AwkToken {
    Sign(&'static str),
    Number(f64, String),
    Text(Vec<u8>),
    Pattern(Vec<u8>),
    Name(String),
    /// A name directly before `(`.
    CalledName(String),
    /// A closing sign without an opening one.
    Extra(&'static str),
    /// An error, with its text.
    Wrong(String),
    End,
}

/// A token and its line.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct PlacedToken {
    pub token: AwkToken,
    pub line: usize,
}

const KEYWORDS: [&str; 17] = [
    "BEGIN", "END", "function", "if", "else", "while", "for", "do", "break", "continue", "next", "exit",
    "return", "delete", "in", "getline", "print",
];
const MORE_KEYWORDS: [&str; 2] = ["printf", "nextfile"];

/// The signs, longer ones first.
const SIGNS: [&str; 43] = [
    "&&", "||", "++", "--", "+=", "-=", "*=", "/=", "%=", "^=", "==", "<=", ">=", "!=", "!~", ">>", "{", "}",
    "(", ")", "[", "]", ";", "\n", ",", "+", "-", "*", "/", "%", "^", "!", ">", "<", "|", "?", ":", "~", "$",
    "=", "&", "`", "'",
];

/// Reads all tokens of a program.
pub(super) fn tokens(program: &[u8]) -> Vec<PlacedToken> {
    let mut lexer = AwkLexer { rest: program, line: 1, can_divide: false };
    let mut all = Vec::new();
    let (mut parentheses, mut braces) = (0_usize, 0_usize);
    loop {
        let line = lexer.line;
        let mut token = lexer.next();
        match token {
            AwkToken::Sign("(") => parentheses += 1,
            AwkToken::Sign("{") => (parentheses, braces) = (0, braces + 1),
            AwkToken::Sign(sign @ ")") if parentheses == 0 => token = AwkToken::Extra(sign),
            AwkToken::Sign(sign @ "}") if braces == 0 => token = AwkToken::Extra(sign),
            AwkToken::Sign(")") => parentheses -= 1,
            AwkToken::Sign("}") => braces -= 1,
            _ => {}
        }
        let line = if matches!(token, AwkToken::Sign("\n")) { line } else { lexer.token_line(line) };
        lexer.can_divide = ends_operand(&token);
        let is_last = matches!(token, AwkToken::End | AwkToken::Wrong(_));
        all.push(PlacedToken { token, line });
        if is_last {
            return all;
        }
    }
}

/// Returns whether a `/` after this token means division.
fn ends_operand(token: &AwkToken) -> bool {
    match token {
        AwkToken::Sign(sign) => matches!(*sign, ")" | "]" | "$" | "++" | "--"),
        AwkToken::Number(..) | AwkToken::Text(_) | AwkToken::Name(_) => true,
        _ => false,
    }
}

struct AwkLexer<'a> {
    rest: &'a [u8],
    line: usize,
    can_divide: bool,
}

impl AwkLexer<'_> {
    /// Returns the line of a token that began at line `begun`, or later if continued lines came before it.
    fn token_line(&self, begun: usize) -> usize {
        begun.max(self.line)
    }

    fn next(&mut self) -> AwkToken {
        self.skip_blanks();
        let Some(byte) = self.rest.first().copied() else {
            return AwkToken::End;
        };
        match byte {
            b'"' => self.text(),
            b'/' if !self.can_divide => self.pattern(),
            b'0'..=b'9' => self.number(),
            b'.' if self.rest.get(1).is_some_and(u8::is_ascii_digit) => self.number(),
            b'_' | b'a'..=b'z' | b'A'..=b'Z' => self.name(),
            _ => self.sign(),
        }
    }

    fn skip_blanks(&mut self) {
        loop {
            match self.rest {
                [b' ' | b'\t' | b'\r' | 0x0b | 0x0c, behind @ ..] => self.rest = behind,
                [b'\\', b'\n', behind @ ..] | [b'\\', b'\r', b'\n', behind @ ..] => {
                    self.rest = behind;
                    self.line += 1;
                }
                [b'#', ..] => {
                    let end = self.rest.iter().position(|byte| *byte == b'\n').unwrap_or(self.rest.len());
                    self.rest = &self.rest[end..];
                }
                _ => return,
            }
        }
    }

    fn sign(&mut self) -> AwkToken {
        let sign = SIGNS.iter().find(|sign| self.rest.starts_with(sign.as_bytes()));
        match sign.filter(|sign| !matches!(**sign, "&" | "`" | "'")) {
            Some(sign) => {
                self.rest = &self.rest[sign.len()..];
                self.line += usize::from(*sign == "\n");
                AwkToken::Sign(sign)
            }
            None => {
                let byte = self.rest[0];
                let shown = if (b' '..0x7f).contains(&byte) {
                    format!("'{}'", char::from(byte))
                } else {
                    format!("0x{byte:02x}")
                };
                AwkToken::Wrong(format!("{}: unexpected character {shown}", self.line))
            }
        }
    }

    fn name(&mut self) -> AwkToken {
        let len = self.rest.iter().take_while(|byte| **byte == b'_' || byte.is_ascii_alphanumeric()).count();
        let (name, behind) = self.rest.split_at(len);
        self.rest = behind;
        let name = String::from_utf8_lossy(name).into_owned();
        if let Some(keyword) = KEYWORDS.iter().chain(&MORE_KEYWORDS).find(|keyword| **keyword == name) {
            return AwkToken::Sign(keyword);
        }
        if behind.first() == Some(&b'(') { AwkToken::CalledName(name) } else { AwkToken::Name(name) }
    }

    fn number(&mut self) -> AwkToken {
        let (len, number) = decimal(self.rest);
        let shown = String::from_utf8_lossy(&self.rest[..len]).into_owned();
        if number.is_infinite() {
            return AwkToken::Wrong(format!("line {}: {shown} : decimal overflow", self.line));
        }
        self.rest = &self.rest[len..];
        AwkToken::Number(number, shown)
    }

    /// Returns the error for a text or a pattern that does not end in its line.
    fn runaway(&self, kind: &str, begin: char, text: &[u8]) -> AwkToken {
        let shown: String = String::from_utf8_lossy(text).chars().take(10).collect();
        AwkToken::Wrong(format!("line {}: runaway {kind} {begin}{shown} ...", self.line))
    }

    fn text(&mut self) -> AwkToken {
        let start = &self.rest[1..];
        let mut at = 0;
        loop {
            match start.get(at) {
                Some(b'"') => break,
                Some(b'\\') => at += 2,
                Some(byte) if *byte != b'\n' => at += 1,
                _ => {
                    let line = start.split(|byte| *byte == b'\n').next().unwrap_or_default();
                    return self.runaway("string constant", '"', line);
                }
            }
        }
        let text = &start[..at];
        self.rest = &start[at + 1..];
        self.line += text.iter().filter(|byte| **byte == b'\n').count();
        AwkToken::Text(unescaped(text))
    }

    fn pattern(&mut self) -> AwkToken {
        let start = &self.rest[1..];
        let mut pattern = Vec::new();
        let mut at = 0;
        // The position after the opening bracket of the current set.
        let mut set = None;
        loop {
            match start.get(at) {
                Some(b'/') if set.is_none() => break,
                Some(b'[') if set.is_none() => {
                    let negated = usize::from(start.get(at + 1) == Some(&b'^'));
                    set = Some(at + 1 + negated);
                    pattern.extend_from_slice(&start[at..=at + negated]);
                    at += 1 + negated;
                }
                Some(b']') if set.is_some_and(|first| at > first) => {
                    set = None;
                    pattern.push(b']');
                    at += 1;
                }
                Some(b'\\') if start.get(at + 1) == Some(&b'/') => {
                    pattern.push(b'/');
                    at += 2;
                }
                Some(b'\\') if start.get(at + 1).is_some_and(|next| *next != b'\n') => {
                    pattern.extend_from_slice(&start[at..at + 2]);
                    at += 2;
                }
                Some(byte) if *byte != b'\n' => {
                    pattern.push(*byte);
                    at += 1;
                }
                _ => {
                    let line = start.split(|byte| *byte == b'\n').next().unwrap_or_default();
                    return self.runaway("regular expression", '/', line);
                }
            }
        }
        self.rest = &start[at + 1..];
        AwkToken::Pattern(pattern)
    }
}

/// Returns whether this is a name.
pub(super) fn is_name(name: &[u8]) -> bool {
    let is_letter = |byte: &u8| *byte == b'_' || byte.is_ascii_alphabetic();
    name.first().is_some_and(is_letter) && name.iter().all(|byte| is_letter(byte) || byte.is_ascii_digit())
}

/// Resolves the escapes in a text. Unknown escapes stay unchanged.
pub(super) fn unescaped(text: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(text.len());
    let mut rest = text;
    while let Some((byte, behind)) = rest.split_first() {
        rest = behind;
        if *byte != b'\\' {
            out.push(*byte);
            continue;
        }
        let Some((letter, behind)) = rest.split_first() else {
            out.push(b'\\');
            break;
        };
        rest = behind;
        match letter {
            b'"' | b'\\' => out.push(*letter),
            b'a' => out.push(7),
            b'b' => out.push(8),
            b'f' => out.push(12),
            b'n' => out.push(b'\n'),
            b'r' => out.push(b'\r'),
            b't' => out.push(b'\t'),
            b'v' => out.push(11),
            b'\n' => {}
            b'0'..=b'7' => out.push(digits(*letter, &mut rest, 8, 2)),
            b'x' if rest.first().is_some_and(u8::is_ascii_hexdigit) => {
                out.push(digits(b'0', &mut rest, 16, 2))
            }
            other => out.extend([b'\\', *other]),
        }
    }
    out
}

/// Reads the remaining digits of a byte.
fn digits(first: u8, rest: &mut &[u8], radix: u32, most: usize) -> u8 {
    let digit = |byte: u8| char::from(byte).to_digit(radix);
    let mut value = digit(first).unwrap_or(0);
    for _ in 0..most {
        let Some((byte, behind)) = rest.split_first() else { break };
        let Some(digit) = digit(*byte) else { break };
        value = value * radix + digit;
        *rest = behind;
    }
    value.to_le_bytes()[0]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slash_divides_behind_an_operand_and_begins_a_pattern_elsewhere() {
        let kinds = |program: &str| -> Vec<AwkToken> {
            tokens(program.as_bytes()).into_iter().map(|placed| placed.token).collect()
        };
        assert_eq!(kinds("a / 2")[1], AwkToken::Sign("/"));
        assert_eq!(kinds("$1 ~ /a\\/[]b/]/")[3], AwkToken::Pattern(b"a/[]b/]".to_vec()));
        assert_eq!(kinds("f(x)")[0], AwkToken::CalledName("f".to_owned()));
        assert_eq!(
            kinds("\"abc")[0],
            AwkToken::Wrong("line 1: runaway string constant \"abc ...".to_owned())
        );
        assert_eq!(kinds("@")[0], AwkToken::Wrong("1: unexpected character '@'".to_owned()));
    }

    #[test]
    fn unknown_escapes_stay() {
        assert_eq!(unescaped(br#"\/ \" \101 \x41 \q \\ \t"#), b"\\/ \" A A \\q \\ \t");
    }
}
