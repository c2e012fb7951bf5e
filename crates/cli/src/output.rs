//! What goes to standard output and standard error, in the form that was asked for: text for people, JSON for programs.

use std::future::Future;
use std::io::{self, IsTerminal, Write};
use std::time::Duration;

use serde::Serialize;

use crate::args::GlobalArgs;
use crate::errors::Failure;

/// How long something may take before a person is told what is going on.
const PATIENCE: Duration = Duration::from_secs(1);

/// The form of what is printed.
#[derive(Debug, Clone, Copy)]
pub struct Output {
    /// Results are JSON.
    pub json: bool,
    /// No notes and no progress.
    pub quiet: bool,
}

impl Output {
    /// In the form that the arguments ask for.
    pub fn new(global: &GlobalArgs) -> Self {
        Self { json: global.json, quiet: global.quiet }
    }

    /// Prints text as it is.
    pub fn text(self, text: &str) -> Result<(), Failure> {
        self.bytes(text.as_bytes())
    }

    /// Prints bytes as they are.
    pub fn bytes(self, bytes: &[u8]) -> Result<(), Failure> {
        let mut stdout = io::stdout().lock();
        stdout.write_all(bytes)?;
        Ok(stdout.flush()?)
    }

    /// Prints a value as JSON and a line end: indented on a terminal, else on one line.
    pub fn value(self, value: &impl Serialize) -> Result<(), Failure> {
        let rendered = match io::stdout().is_terminal() {
            true => serde_json::to_string_pretty(value),
            false => serde_json::to_string(value),
        };
        let text = rendered.map_err(|error| Failure::host("write JSON", error.into()))?;
        self.text(&format!("{text}\n"))
    }

    /// Tells a person something that is not a result.
    pub fn note(self, text: &str) {
        if !self.quiet {
            say(&format!("eyot: {}\n", printable(text)));
        }
    }

    /// Tells that one of several things failed, while the others go on.
    pub fn complain(self, error: &eyot::Error) {
        say(&format!("eyot: {}\n", printable(&error.to_string())));
    }

    /// Whether a person is watching standard error and wants to see progress.
    pub fn shows_progress(self) -> bool {
        !self.quiet && !self.json && io::stderr().is_terminal()
    }

    /// Waits for `work`, and tells a person what it is once it takes longer than a second.
    pub async fn explain_a_wait<T>(self, what: &str, work: impl Future<Output = T>) -> T {
        if !self.shows_progress() {
            return work.await;
        }
        let mut work = std::pin::pin!(work);
        match tokio::time::timeout(PATIENCE, &mut work).await {
            Ok(done) => done,
            Err(_) => {
                self.note(&format!("{what} …"));
                work.await
            }
        }
    }
}

/// Writes to standard error. It may be closed, and then nobody wants to know.
pub fn say(text: &str) {
    drop(io::stderr().lock().write_all(text.as_bytes()));
}

/// The text with its control characters spelt out, so that a name from inside a sandbox can't drive the terminal.
pub fn printable(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    for character in text.chars() {
        match character.is_control() {
            true => shown.extend(character.escape_default()),
            false => shown.push(character),
        }
    }
    shown
}

/// The text as it is for a pipe or a file, and [`printable`] for a terminal.
pub fn for_stdout(text: &str) -> String {
    match io::stdout().is_terminal() {
        true => printable(text),
        false => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn control_characters_are_spelt_out_and_everything_else_stays() {
        assert_eq!(printable("ä\u{1b}[31m\n\u{9b}x"), "ä\\u{1b}[31m\\n\\u{9b}x");
    }
}
