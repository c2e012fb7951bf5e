//! `grep`: lines that match a pattern, found by ripgrep where the sandbox has it and by grep elsewhere.

use eyot::internal::SandboxInternals;
use eyot::{Error, ErrorKind, ExecOptions, LogStream, Result, Sandbox};
use schemars::JsonSchema;
use serde::Deserialize;

use super::units;
use crate::context::ToolContext;
use crate::definition::ToolDef;
use crate::output::ToolOutput;
use crate::running::{OutputTail, no_null, quote, run};

const DESCRIPTION: &str =
    "Search file contents for a regex pattern. Returns matching lines with file paths and line numbers.";

/// So many lines are shown.
const MAX_MATCHES: usize = 100;
/// So much of a line is shown, in UTF-16 units.
const MAX_LINE_UNITS: usize = 500;
/// So many bytes have more than [`MAX_LINE_UNITS`] units, even without a half character at their end.
const ENOUGH_BYTES: usize = 3 * (MAX_LINE_UNITS + 2);

#[derive(Debug, Deserialize, JsonSchema)]
struct Args {
    /// Search pattern (regex)
    pattern: String,
    /// Directory or file to search (default: .)
    path: Option<String>,
    /// Glob filter, e.g. "*.ts"
    include: Option<String>,
    /// Match the pattern as literal text
    literal: Option<bool>,
}

pub(super) fn tool() -> Result<ToolDef> {
    ToolDef::typed("grep", DESCRIPTION, async |context: ToolContext, asked: Args| grep(context, asked).await)
        .map(ToolDef::read_only)
}

async fn grep(context: ToolContext, asked: Args) -> Result<ToolOutput> {
    no_null("pattern", Some(&asked.pattern))?;
    no_null("path", asked.path.as_deref())?;
    no_null("include", asked.include.as_deref())?;
    let sandbox = context.sandbox(None).await?;
    check_searchable(&sandbox, asked.path.as_deref().filter(|path| !path.is_empty())).await?;
    let (mut lines, mut said) = (MatchLines::default(), OutputTail::new(16 << 10));
    let take = |stream, piece: &bytes::Bytes| {
        match stream {
            LogStream::Stdout => lines.take(piece),
            LogStream::Stderr => said.push(piece),
        }
        true
    };
    let result = run(&context, &sandbox, line(&asked), ExecOptions::default(), take).await?;
    match result.map_or(0, |result| result.outcome.exit_code()) {
        0 | 1 => Ok(ToolOutput::text(lines.render())),
        code if said.text().trim().is_empty() => {
            let message = format!("grep failed: it exited with code {code}");
            Err(Error::new(ErrorKind::Invalid, message)
                .with_hint("a pattern with large repetitions needs more memory than there is"))
        }
        _ => Err(Error::new(ErrorKind::Invalid, format!("grep failed: {}", said.text()))),
    }
}

/// Refuses a path that names a FIFO, a socket or a device: the search would wait for it, or never end. What is missing is
/// the search's own to tell.
async fn check_searchable(sandbox: &Sandbox, path: Option<&str>) -> Result<()> {
    let Some(path) = path else { return Ok(()) };
    match sandbox.stat(path).await {
        Ok(stat) if !stat.is_file && !stat.is_directory => {
            let why = Error::new(ErrorKind::Invalid, "is neither a file nor a directory");
            Err(sandbox.failed("search", path)(why))
        }
        _ => Ok(()),
    }
}

/// One command that finds out what there is and becomes it.
fn line(asked: &Args) -> String {
    let literal = asked.literal.unwrap_or_default();
    let include = asked.include.as_deref().filter(|include| !include.is_empty()).map(quote);
    let path = match asked.path.as_deref() {
        None | Some("") => ".",
        // To both, it would be standard input.
        Some("-") => "./-",
        Some(path) => path,
    };
    let (pattern, path) = (quote(&asked.pattern), quote(path));
    let mut rg = "rg --line-number --with-filename --color never".to_owned();
    let mut grep = format!("grep -rnH {}", if literal { "-F" } else { "-E" });
    if literal {
        rg.push_str(" --fixed-strings");
    }
    if let Some(include) = include {
        rg.push_str(&format!(" --glob {include}"));
        grep.push_str(&format!(" --include={include}"));
    }
    format!(
        "if rg --version >/dev/null 2>&1; then exec {rg} -- {pattern} {path}; else exec {grep} -- {pattern} {path}; fi"
    )
}

/// The first lines of what was found, and how many there are.
#[derive(Debug, Default)]
struct MatchLines {
    kept: Vec<Vec<u8>>,
    total: u64,
    /// The last line has not ended.
    open: bool,
}

impl MatchLines {
    fn take(&mut self, piece: &[u8]) {
        for part in piece.split_inclusive(|byte| *byte == b'\n') {
            let (text, ended) = match part.strip_suffix(b"\n") {
                Some(text) => (text, true),
                None => (part, false),
            };
            if !self.open {
                self.total += 1;
                if self.kept.len() < MAX_MATCHES {
                    self.kept.push(Vec::new());
                }
            }
            self.open = !ended;
            if self.total > self.kept.len() as u64 {
                continue;
            }
            if let Some(line) = self.kept.last_mut() {
                let room = ENOUGH_BYTES.saturating_sub(line.len()).min(text.len());
                line.extend_from_slice(&text[..room]);
            }
        }
    }

    fn render(&self) -> String {
        let lines: Vec<_> = self.kept.iter().map(|line| cut(&String::from_utf8_lossy(line))).collect();
        let text = lines.join("\n");
        match (text.trim().is_empty(), self.total > MAX_MATCHES as u64) {
            (true, _) => "No matches found.".to_owned(),
            (false, false) => text.trim().to_owned(),
            (false, true) => {
                let total = self.total;
                format!("{text}\n\n[Showing {MAX_MATCHES} of {total} matches. Narrow your search.]")
            }
        }
    }
}

fn cut(line: &str) -> String {
    if units::length(line) > MAX_LINE_UNITS {
        format!("{}...", units::head(line, MAX_LINE_UNITS))
    } else {
        line.to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn render(output: &[u8]) -> String {
        let mut whole = MatchLines::default();
        whole.take(output);
        let mut pieces = MatchLines::default();
        output.chunks(3).for_each(|piece| pieces.take(piece));
        assert_eq!(whole.render(), pieces.render());
        whole.render()
    }

    #[test]
    fn nothing_found_is_said() {
        assert_eq!(render(b""), "No matches found.");
    }

    #[test]
    fn a_hundred_lines_are_shown_and_how_many_there_are() {
        let output: String = (1..=123).map(|line| format!("f:{line}:x\n")).collect();
        let answer = render(output.as_bytes());
        assert!(answer.ends_with("f:100:x\n\n[Showing 100 of 123 matches. Narrow your search.]"), "{answer}");
        let exact: String = (1..=100).map(|line| format!("f:{line}:x\n")).collect();
        assert_eq!(render(exact.as_bytes()), exact.trim_end());
    }

    #[test]
    fn a_long_line_is_cut() {
        let answer = render(format!("f:1:{}\nf:2:b\n", "漢".repeat(5_000)).as_bytes());
        assert_eq!(answer, format!("f:1:{}...\nf:2:b", "漢".repeat(496)));
    }

    #[test]
    fn what_is_asked_for_is_quoted_and_can_not_be_an_option() {
        let asked =
            Args { pattern: "-e '".into(), path: None, include: Some("*.rs".into()), literal: Some(true) };
        let expected = r"if rg --version >/dev/null 2>&1; then exec rg --line-number --with-filename --color never --fixed-strings --glob '*.rs' -- '-e '\''' '.'; else exec grep -rnH -F --include='*.rs' -- '-e '\''' '.'; fi";
        assert_eq!(line(&asked), expected);
        let asked = Args { pattern: "x".into(), path: Some("-".into()), include: None, literal: None };
        assert!(line(&asked).contains("-- 'x' './-'; else"), "{}", line(&asked));
    }
}
