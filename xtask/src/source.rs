//! The Rust sources of the workspace, as the guards read them: files, tokens, and what of them is a
//! test.

mod lexer;

use std::fs;
use std::path::{Path, PathBuf};

pub use lexer::{Kind, Token, tokens};

use crate::process::root;

/// A file of Rust.
pub struct Source {
    /// The path from the repository's root, such as `crates/cli/src/main.rs`.
    pub path: String,
    /// The text.
    pub text: String,
    /// The tokens of all of it.
    pub tokens: Vec<Token>,
}

impl Source {
    /// Reads a text as the file of this path.
    pub fn new(path: &str, text: &str) -> Self {
        Self { path: path.to_owned(), text: text.to_owned(), tokens: tokens(text) }
    }

    /// Returns the folder below `crates/` that the file is in, or `xtask`.
    pub fn package(&self) -> &str {
        let inside = self.path.strip_prefix("crates/").unwrap_or(&self.path);
        inside.split('/').next().unwrap_or_default()
    }

    /// Returns `true` for a file of `src/` that is no file of tests.
    pub fn is_production(&self) -> bool {
        let is_test = |part: &str| matches!(part, "tests" | "tests.rs" | "testing.rs");
        self.path.contains("/src/") && !self.path.split('/').any(is_test)
    }

    /// Returns the tokens without the items that are compiled for tests alone.
    pub fn production(&self) -> Vec<Token> {
        without_tests(&self.tokens)
    }
}

/// Reads every Rust file of the workspace, in the order of their paths.
pub fn all() -> Result<Vec<Source>, String> {
    let mut files = Vec::new();
    for folder in ["crates", "xtask"] {
        collect(&root().join(folder), &mut files)?;
    }
    files.sort();
    files.iter().map(|file| read(file)).collect()
}

fn read(file: &Path) -> Result<Source, String> {
    let text = fs::read_to_string(file).map_err(|error| format!("read {}: {error}", file.display()))?;
    let path = file.strip_prefix(root()).unwrap_or(file);
    Ok(Source::new(&path.display().to_string(), &text))
}

fn collect(folder: &Path, files: &mut Vec<PathBuf>) -> Result<(), String> {
    let entries = fs::read_dir(folder).map_err(|error| format!("read {}: {error}", folder.display()))?;
    for path in entries.flatten().map(|entry| entry.path()) {
        let is_build = path.file_name().is_some_and(|name| name == "target" || name == "node_modules");
        if path.is_dir() && !is_build {
            collect(&path, files)?;
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            files.push(path);
        }
    }
    Ok(())
}

/// Drops each item below `#[cfg(test)]`, `#[test]` and their like.
fn without_tests(tokens: &[Token]) -> Vec<Token> {
    let mut kept = Vec::new();
    let mut at = 0;
    while at < tokens.len() {
        match attribute_end(tokens, at) {
            Some(end) if is_for_tests(&tokens[at..end]) => at = item_end(tokens, end),
            Some(end) => {
                kept.extend_from_slice(&tokens[at..end]);
                at = end;
            }
            None => {
                kept.push(tokens[at].clone());
                at += 1;
            }
        }
    }
    kept
}

/// Returns the index behind the attribute that begins at `at`, if one does.
fn attribute_end(tokens: &[Token], at: usize) -> Option<usize> {
    let opens = tokens[at].is("#") && tokens.get(at + 1).is_some_and(|next| next.is("["));
    opens.then(|| closing(tokens, at + 1) + 1)
}

fn is_for_tests(attribute: &[Token]) -> bool {
    let words: Vec<&str> = attribute.iter().map(|token| token.text.as_str()).collect();
    let is_cfg = words.windows(4).any(|part| part == ["cfg", "(", "test", ")"]);
    is_cfg || words == ["#", "[", "test", "]"] || words.starts_with(&["#", "[", "tokio", ":", ":", "test"])
}

/// Returns the index behind the item that begins at `at`: behind its `;`, or behind the block that
/// ends it.
fn item_end(tokens: &[Token], at: usize) -> usize {
    let mut at = at;
    while at < tokens.len() {
        match tokens[at].text.as_str() {
            ";" => return at + 1,
            "{" => return closing(tokens, at) + 1,
            "(" | "[" => at = closing(tokens, at) + 1,
            _ => at += 1,
        }
    }
    at
}

/// Returns the index of the bracket that closes the one at `at`, or of the last token.
pub fn closing(tokens: &[Token], at: usize) -> usize {
    let mut depth = 0_usize;
    for (index, token) in tokens.iter().enumerate().skip(at) {
        match (token.kind, token.text.as_str()) {
            (Kind::Mark, "(" | "[" | "{") => depth += 1,
            (Kind::Mark, ")" | "]" | "}") => depth = depth.saturating_sub(1),
            _ => {}
        }
        if depth == 0 {
            return index;
        }
    }
    tokens.len().saturating_sub(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tests_are_no_production_code() {
        let text =
            "fn a() { b(\"}\") }\n#[cfg(test)]\nmod tests { fn c() {} }\n#[test]\nfn d() {}\nfn e() {}";
        let source = Source::new("crates/x/src/lib.rs", text);
        let words: Vec<String> = source.production().into_iter().map(|token| token.text).collect();
        assert!(words.contains(&"a".to_owned()) && words.contains(&"e".to_owned()));
        assert!(!words.contains(&"c".to_owned()) && !words.contains(&"d".to_owned()));
    }

    #[test]
    fn a_file_of_tests_is_not_production() {
        assert!(Source::new("crates/x/src/a/lib.rs", "").is_production());
        for path in ["crates/x/tests/a.rs", "crates/x/src/a/tests.rs", "crates/x/src/tests/a.rs"] {
            assert!(!Source::new(path, "").is_production(), "{path}");
        }
    }
}
