//! The question before much is destroyed. Only a person at a terminal is asked: a script goes on.

use std::io::{self, IsTerminal, Write};

use crate::errors::Failure;
use crate::output::{Output, printable};

/// Exit code: the person said no.
pub const DECLINED: u8 = 1;

/// Asks a person whether to go on. Returns `true` without asking where nobody could answer, or where
/// the answer is to be JSON.
pub fn confirm(question: &str, output: Output) -> Result<bool, Failure> {
    if output.json || !io::stdin().is_terminal() || !io::stderr().is_terminal() {
        return Ok(true);
    }
    let mut stderr = io::stderr();
    write!(stderr, "{} [y/N] ", printable(question))?;
    stderr.flush()?;
    let mut answer = String::new();
    io::stdin().read_line(&mut answer).map_err(|error| Failure::host("read the answer", error))?;
    let is_yes = ["y", "yes"].contains(&answer.trim().to_lowercase().as_str());
    if !is_yes {
        output.note("nothing was removed");
    }
    Ok(is_yes)
}
