//! The words of the real programs in place of the interpreter's, line by line.

use super::quoting::curly;
use crate::memory::odd_names::decoded;

/// A longer line is passed on as it is.
const MAX_LINE_BYTES: usize = 64 * 1024;
const BAD_PATTERN: &str = "rg: invalid pattern: regex parse error:";

/// The standard error of a program, as it comes.
#[derive(Debug)]
pub(super) struct Rewording {
    program: &'static str,
    /// The beginning of a line.
    pending: Vec<u8>,
    /// The lines of the interpreter's message about a pattern, so far.
    pattern: Option<Vec<String>>,
}

impl Rewording {
    pub(super) fn new(program: &'static str) -> Self {
        Self { program, pending: Vec::new(), pattern: None }
    }

    /// Takes bytes, and returns the lines that they complete.
    pub(super) fn take(&mut self, bytes: &[u8]) -> Vec<u8> {
        let mut out = Vec::new();
        for part in bytes.split_inclusive(|byte| *byte == b'\n') {
            self.pending.extend_from_slice(part);
            if part.ends_with(b"\n") {
                let line = std::mem::take(&mut self.pending);
                out.extend(self.line(&line));
            } else if self.pending.len() > MAX_LINE_BYTES {
                out.append(&mut self.pending);
            }
        }
        out
    }

    /// Returns what is left at the end.
    pub(super) fn finish(&mut self) -> Vec<u8> {
        let pattern = self.pattern.take().map(|lines| lines.concat()).unwrap_or_default();
        [pattern.into_bytes(), std::mem::take(&mut self.pending)].concat()
    }

    fn line(&mut self, line: &[u8]) -> Vec<u8> {
        let Ok(text) = std::str::from_utf8(line) else { return line.to_vec() };
        let reworded = match self.program {
            "find" => find_line(text),
            "rg" => self.rg_line(text),
            _ => None,
        };
        reworded.map_or_else(|| line.to_vec(), String::into_bytes)
    }

    fn rg_line(&mut self, line: &str) -> Option<String> {
        if let Some(mut lines) = self.pattern.take() {
            lines.push(line.to_owned());
            if line.starts_with("error: ") {
                return Some(pattern_error(&lines).unwrap_or_else(|| lines.concat()));
            }
            self.pattern = Some(lines);
            return Some(String::new());
        }
        if line.trim_end() == BAD_PATTERN {
            self.pattern = Some(vec![line.to_owned()]);
            return Some(String::new());
        }
        let file = line.strip_prefix("rg: ")?.strip_suffix(": No such file or directory\n")?;
        Some(format!("{file}: No such file or directory (os error 2)\n"))
    }
}

/// Returns the real `rg`'s message about a pattern. The interpreter's `rg` has put the pattern into a group.
fn pattern_error(lines: &[String]) -> Option<String> {
    let shown = lines.get(1)?.strip_prefix("    (?:")?.strip_suffix(")\n")?;
    let pattern = shown.replace(")|(?:", "|");
    let error = regex_syntax::Parser::new().parse(&pattern).err()?;
    Some(format!("{error}\n"))
}

/// `find` quotes names in a pair of its own.
fn find_line(line: &str) -> Option<String> {
    if line.contains('`') || line.contains("invalid expression") {
        return None;
    }
    let rest = line.strip_prefix("find: ")?;
    let (before, quoted) = rest.split_once('\'')?;
    let (name, after) = quoted.rsplit_once('\'')?;
    let name = String::from_utf8_lossy(&decoded(name.as_bytes())).into_owned();
    Some(format!("find: {before}{}{after}", curly(&name)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reworded(program: &'static str, parts: &[&str]) -> String {
        let mut rewording = Rewording::new(program);
        let mut out: Vec<u8> = parts.iter().flat_map(|part| rewording.take(part.as_bytes())).collect();
        out.extend(rewording.finish());
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn find_quotes_names_as_gnu_does() {
        let missing = ["find: 'a'b': No such ", "file or directory\nfind: unknown predicate `-x'\n"];
        assert_eq!(
            reworded("find", &missing),
            "find: ‘a'b’: No such file or directory\nfind: unknown predicate `-x'\n"
        );
    }

    #[test]
    fn rg_says_what_is_wrong_with_a_pattern_and_where() {
        let said = "rg: invalid pattern: regex parse error:\n    (?:a()\n    ^\nerror: unclosed group\n";
        assert_eq!(reworded("rg", &[said]), "regex parse error:\n    a(\n     ^\nerror: unclosed group\n");
        assert_eq!(
            reworded("rg", &["rg: no: No such file or directory\nx"]),
            "no: No such file or directory (os error 2)\nx"
        );
    }
}
