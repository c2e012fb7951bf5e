//! `glob`: files by the pattern of their name, as `find -name` has it.

use eyot::{Error, ErrorKind, ExecOptions, ExecResult, LogStream, Result};
use schemars::JsonSchema;
use serde::Deserialize;

use crate::context::ToolContext;
use crate::definition::ToolDef;
use crate::names;
use crate::output::ToolOutput;
use crate::running::{OutputTail, no_null, quote, run};

const DESCRIPTION: &str =
    "Find files by filename pattern using shell find -name semantics. Returns matching file paths.";

/// So many paths are shown.
const MAX_RESULTS: usize = 1_000;

#[derive(Debug, Deserialize, JsonSchema)]
struct Args {
    /// Filename pattern, e.g. "*.ts"
    pattern: String,
    /// Directory to search in (default: .)
    path: Option<String>,
}

pub(super) fn tool() -> Result<ToolDef> {
    ToolDef::typed("glob", DESCRIPTION, async |context: ToolContext, asked: Args| glob(context, asked).await)
        .map(ToolDef::read_only)
}

async fn glob(context: ToolContext, asked: Args) -> Result<ToolOutput> {
    no_null("pattern", Some(&asked.pattern))?;
    no_null("path", asked.path.as_deref())?;
    let sandbox = context.sandbox(None).await?;
    let (mut paths, mut said) = (FoundPaths::default(), OutputTail::new(4 << 10));
    let take = |stream, piece: &bytes::Bytes| {
        match stream {
            LogStream::Stdout => paths.take(piece),
            LogStream::Stderr => said.push(piece),
        }
        paths.found.len() < MAX_RESULTS
    };
    let result = run(&context, &sandbox, line(&asked), ExecOptions::default(), take).await?;
    check(result.as_ref(), &said)?;
    Ok(ToolOutput::text(if paths.found.is_empty() {
        "No files found matching pattern.".to_owned()
    } else {
        paths.found.join("\n")
    }))
}

/// The names come with a NUL between them: every other byte may be part of a name.
fn line(asked: &Args) -> String {
    let path = match asked.path.as_deref() {
        None | Some("") => ".".to_owned(),
        // To find, it would be a part of the expression.
        Some(path) if path.starts_with(['-', '(', ')', '!', ',']) => format!("./{path}"),
        Some(path) => path.to_owned(),
    };
    format!("find {} -type f -name {} -print0", quote(&path), quote(&asked.pattern))
}

/// A directory that is missing or closed has no files; a `find` that is missing is another matter.
fn check(result: Option<&ExecResult>, said: &OutputTail) -> Result<()> {
    match result.map(|result| result.outcome.exit_code()) {
        Some(code @ (126 | 127)) => {
            let message = format!("glob failed with code {code}: {}", said.text().trim());
            Err(Error::new(ErrorKind::Unsupported, message))
        }
        _ => Ok(()),
    }
}

/// Names that come piece by piece.
#[derive(Debug, Default)]
struct FoundPaths {
    found: Vec<String>,
    rest: Vec<u8>,
}

impl FoundPaths {
    fn take(&mut self, piece: &[u8]) {
        for part in piece.split_inclusive(|byte| *byte == 0) {
            self.rest.extend_from_slice(part);
            if self.found.len() < MAX_RESULTS && self.rest.last() == Some(&0) {
                self.found.push(names::display_path(&self.rest[..self.rest.len() - 1]));
                self.rest.clear();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_that_looks_like_an_option_is_a_path() {
        let asked = |path: &str| Args { pattern: "*'x".into(), path: Some(path.into()) };
        assert_eq!(line(&asked("-delete")), r"find './-delete' -type f -name '*'\''x' -print0");
        assert_eq!(line(&asked("")), r"find '.' -type f -name '*'\''x' -print0");
    }

    #[test]
    fn names_that_come_in_pieces_are_put_together() {
        let mut paths = FoundPaths::default();
        [&b"./a"[..], b"b\0./c\nd", b"\0"].into_iter().for_each(|piece| paths.take(piece));
        assert_eq!(paths.found, ["./ab", "$'./c\\nd'"]);
    }
}
