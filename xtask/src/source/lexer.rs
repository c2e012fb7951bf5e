//! Rust as tokens, as far as the guards need them: comments are gone, literals are one token each,
//! doc comments are kept.

/// The kind of a token.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// A word or a number.
    Word,
    /// A string or a character, with its quotes.
    Literal,
    /// A line of a doc comment, without `///` or `//!`.
    Doc,
    /// One character of punctuation.
    Mark,
}

/// A token.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Token {
    /// The kind.
    pub kind: Kind,
    /// The text.
    pub text: String,
    /// The line, counted from 1.
    pub line: usize,
}

impl Token {
    /// Returns `true` for a word or a mark of this text.
    pub fn is(&self, text: &str) -> bool {
        matches!(self.kind, Kind::Word | Kind::Mark) && self.text == text
    }
}

/// Splits a text into tokens. It never fails: a text that is not Rust gives tokens that mean
/// nothing.
pub fn tokens(text: &str) -> Vec<Token> {
    let mut lexer = Lexer { rest: text, line: 1, found: Vec::new() };
    while !lexer.rest.is_empty() {
        lexer.step();
    }
    lexer.found
}

struct Lexer<'a> {
    rest: &'a str,
    line: usize,
    found: Vec<Token>,
}

impl Lexer<'_> {
    fn step(&mut self) {
        let first = self.rest.chars().next().unwrap_or_default();
        if self.rest.starts_with("//") {
            self.comment();
        } else if self.rest.starts_with("/*") {
            let length = block_comment(self.rest);
            self.skip(length);
        } else if let Some(length) = literal(self.rest) {
            self.take(Kind::Literal, length);
        } else if first.is_alphanumeric() || first == '_' {
            let is_word = |letter: char| letter.is_alphanumeric() || letter == '_';
            let length = self.rest.find(|letter| !is_word(letter)).unwrap_or(self.rest.len());
            self.take(Kind::Word, length);
        } else if first.is_whitespace() {
            self.skip(first.len_utf8());
        } else {
            self.take(Kind::Mark, first.len_utf8());
        }
    }

    fn comment(&mut self) {
        let length = self.rest.find('\n').unwrap_or(self.rest.len());
        let line = &self.rest[..length];
        let doc = line.strip_prefix("//!").or_else(|| line.strip_prefix("///"));
        if let Some(doc) = doc.filter(|_| !line.starts_with("////")) {
            self.found.push(Token { kind: Kind::Doc, text: doc.trim().to_owned(), line: self.line });
        }
        self.skip(length);
    }

    fn take(&mut self, kind: Kind, length: usize) {
        self.found.push(Token { kind, text: self.rest[..length].to_owned(), line: self.line });
        self.skip(length);
    }

    fn skip(&mut self, length: usize) {
        self.line += self.rest[..length].matches('\n').count();
        self.rest = &self.rest[length..];
    }
}

fn block_comment(text: &str) -> usize {
    let mut depth = 0_usize;
    let mut at = 0;
    while let Some(found) = text[at..].find(['/', '*']) {
        at += found;
        if text[at..].starts_with("/*") {
            depth += 1;
            at += 2;
        } else if text[at..].starts_with("*/") {
            depth -= 1;
            at += 2;
        } else {
            at += 1;
        }
        if depth == 0 {
            return at;
        }
    }
    text.len()
}

/// Returns the length of the string or the character that the text begins with.
fn literal(text: &str) -> Option<usize> {
    let bare = text.strip_prefix(['b', 'c']).unwrap_or(text);
    let before = text.len() - bare.len();
    if let Some(raw) = bare.strip_prefix('r') {
        let hashes = raw.len() - raw.trim_start_matches('#').len();
        let inside = raw[hashes..].strip_prefix('"')?;
        let end = format!("\"{}", "#".repeat(hashes));
        let length = inside.find(&end).map_or(inside.len(), |at| at + end.len());
        return Some(before + 1 + hashes + 1 + length);
    }
    match bare.chars().next()? {
        '"' => Some(before + quoted(bare, '"')),
        '\'' if is_character(bare) => Some(before + quoted(bare, '\'')),
        _ => None,
    }
}

/// Tells `'a'` from the lifetime `'a`.
fn is_character(text: &str) -> bool {
    let mut letters = text.chars().skip(1);
    letters.next() == Some('\\') || letters.next() == Some('\'')
}

fn quoted(text: &str, quote: char) -> usize {
    let mut is_escaped = false;
    for (at, letter) in text.char_indices().skip(1) {
        if letter == quote && !is_escaped {
            return at + quote.len_utf8();
        }
        is_escaped = letter == '\\' && !is_escaped;
    }
    text.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(text: &str) -> Vec<String> {
        tokens(text).into_iter().map(|token| token.text).collect()
    }

    #[test]
    fn comments_are_gone_and_literals_are_one_token() {
        let text = "a /* x /* y */ z */ \"b \\\" // c\" // d\nr#\"e \" f\"# 'g' '\\'' 'h b\"i\"";
        let expected = ["a", "\"b \\\" // c\"", "r#\"e \" f\"#", "'g'", "'\\''", "'", "h", "b\"i\""];
        assert_eq!(texts(text), expected);
    }

    #[test]
    fn doc_comments_are_kept_with_their_lines() {
        let found = tokens("//! Of the file.\n\n/// Of `a`.\n//// none\nfn a() {}");
        let docs: Vec<(&str, usize)> = found
            .iter()
            .filter(|token| token.kind == Kind::Doc)
            .map(|token| (token.text.as_str(), token.line))
            .collect();
        assert_eq!(docs, [("Of the file.", 1), ("Of `a`.", 3)]);
    }
}
