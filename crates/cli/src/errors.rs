//! Failures of a command: one sentence, a hint if there is one, and an exit code. `-v` also shows
//! the source chain.

mod flag_names;

use std::error::Error as _;
use std::io::{self, Write};

use clap::error::ErrorKind::{DisplayHelp, DisplayHelpOnMissingArgumentOrSubcommand, MissingSubcommand};
use eyot::internal::system_reason;
use eyot::{Error, ErrorKind};

use crate::args::GlobalArgs;
use crate::output::{escaped_json, printable, say};
use flag_names::in_flags;

/// Exit code: the arguments or the configuration are wrong.
pub const USAGE: u8 = 2;
/// Exit code: Eyot could not do its part.
pub const FAILED: u8 = 125;
/// Exit code: the program exists but may not be executed.
pub const NOT_EXECUTABLE: u8 = 126;
/// Exit code: there is no such program.
pub const COMMAND_NOT_FOUND: u8 = 127;
/// Exit code: the reader of our output is gone. A shell reports a death by SIGPIPE with the same
/// code.
const OUTPUT_CLOSED: u8 = 141;

/// The reason why a command of this program ended early.
#[derive(Debug)]
pub enum Failure {
    /// An error. The exit code tells whose fault it is.
    Error {
        /// The sentence, the hint and the source chain.
        error: Error,
        /// The exit code of the process.
        exit_code: u8,
    },
    /// The reader of our output is gone. This is not reported.
    OutputClosed,
    /// A signal ended us; the exit code is 128 + its number.
    Interrupted(i32),
}

impl Failure {
    /// Makes the failure for wrong arguments or a wrong configuration.
    pub fn usage(message: impl Into<String>) -> Self {
        Self::with_code(Error::new(ErrorKind::Invalid, message), USAGE)
    }

    /// Makes a failure of this error with this exit code.
    pub fn with_code(error: Error, exit_code: u8) -> Self {
        Self::Error { error, exit_code }
    }

    /// Tells whether it says how to fix it.
    pub fn has_hint(&self) -> bool {
        matches!(self, Self::Error { error, .. } if error.hint().is_some())
    }

    /// Adds a hint about how to fix it.
    #[must_use]
    pub fn hint(self, hint: impl Into<String>) -> Self {
        match self {
            Self::Error { error, exit_code } => Self::Error { error: error.with_hint(hint), exit_code },
            other => other,
        }
    }

    /// Makes the failure of an operation on the host's own files. `what` is verb and object, such
    /// as `read env file .env`.
    pub fn host(what: impl std::fmt::Display, error: io::Error) -> Self {
        let kind = match error.kind() {
            io::ErrorKind::NotFound => ErrorKind::NotFound,
            io::ErrorKind::PermissionDenied => ErrorKind::Permission,
            io::ErrorKind::AlreadyExists => ErrorKind::AlreadyExists,
            io::ErrorKind::IsADirectory => ErrorKind::IsDirectory,
            io::ErrorKind::NotADirectory => ErrorKind::NotDirectory,
            _ => ErrorKind::Internal,
        };
        Error::new(kind, format!("{what}: {}", system_reason(&error))).with_source(error).into()
    }

    /// Returns the exit code of the process.
    pub fn exit_code(&self) -> u8 {
        match self {
            Self::Error { exit_code, .. } => *exit_code,
            Self::OutputClosed => OUTPUT_CLOSED,
            Self::Interrupted(signal) => u8::try_from(128 + signal).unwrap_or(FAILED),
        }
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Self::with_code(error, FAILED)
    }
}

/// Converts an error of writing our own output.
impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::BrokenPipe => Self::OutputClosed,
            _ => Self::host("write the output", error),
        }
    }
}

/// Prints what the parser says about the arguments, with `--json` also as a line for programs, and
/// ends the process. `words` are the arguments.
pub fn exit_with(error: &clap::Error, words: &[String]) -> ! {
    match in_our_form(error) {
        Some(text) => say(&text),
        // A page of help. Its output may be closed; there is no third place to complain in.
        None => drop(error.print()),
    }
    if let Some(hint) = host_name_hint(words).filter(|_| error.kind() == DisplayHelp) {
        say(hint);
    }
    let is_json = words.iter().take_while(|word| *word != "--").any(|word| word == "--json");
    if is_json && error.use_stderr() {
        say(&parser_line(error));
    }
    std::process::exit(error.exit_code())
}

/// Says what `-h` is, where it was meant as Docker's: before a host name and a command.
fn host_name_hint(words: &[String]) -> Option<&'static str> {
    let mut options = words.iter().take_while(|word| *word != "--").skip_while(|word| *word != "-h").skip(1);
    let is_meant = words.iter().any(|word| word == "--") && options.next().is_some();
    is_meant.then_some("hint: -h shows this help; the host name of a sandbox is its name: --name NAME\n")
}

/// Renders an error of the parser in the form of every other error, if it is one and not help.
fn in_our_form(error: &clap::Error) -> Option<String> {
    let text = error.render().to_string();
    let said = text.strip_prefix("error: ")?;
    Some(format!("eyot: {said}").replace("\n\n  tip: ", "\nhint: ").replace("\n  tip: ", "\nhint: "))
}

/// Renders an error of the parser as a line for programs.
fn parser_line(error: &clap::Error) -> String {
    let text = error.render().to_string();
    let words = |lines: &str| lines.split_whitespace().collect::<Vec<_>>().join(" ");
    let message = match error.kind() {
        MissingSubcommand | DisplayHelpOnMissingArgumentOrSubcommand => "a command is missing".to_owned(),
        _ => words(text.split("\n\n").next().unwrap_or_default().trim_start_matches("error: ")),
    };
    let hint = text.lines().find_map(|line| line.trim_start().strip_prefix("tip: "));
    json_error(ErrorKind::Invalid, &message, hint)
}

/// Renders an error as a line for programs.
fn json_error(kind: ErrorKind, message: &str, hint: Option<&str>) -> String {
    let json = serde_json::json!({ "error": { "kind": kind, "message": message, "hint": hint } });
    format!("{}\n", escaped_json(&json.to_string()))
}

/// The hint of what a provider does not support, where the provider gives none.
const WHAT_A_PROVIDER_CAN: &str = "`eyot providers` lists what each provider can do";

/// Reports failures on standard error.
pub struct Reporter {
    json: bool,
    verbose: bool,
    /// The arguments of the command line.
    words: Vec<String>,
}

impl Reporter {
    /// Makes a reporter in the form that the arguments ask for.
    pub fn new(global: &GlobalArgs, words: Vec<String>) -> Self {
        Self { json: global.json, verbose: global.verbose > 0, words }
    }

    /// Reports the sentence and the hint, with `--json` also a line for programs, and with `-v` the
    /// source chain.
    pub fn report(&self, failure: &Failure) {
        let Failure::Error { error, .. } = failure else {
            return;
        };
        let text = self.render(error);
        // Standard error may be closed; there is no third place to complain in.
        drop(io::stderr().lock().write_all(text.as_bytes()));
    }

    fn render(&self, error: &Error) -> String {
        let sentence = in_flags(error, &self.words);
        let mut text = format!("eyot: {}\n", printable(&sentence));
        let usual = || (error.kind() == ErrorKind::Unsupported).then_some(WHAT_A_PROVIDER_CAN);
        let hint = error.hint().or_else(usual);
        if let Some(hint) = hint {
            text.push_str(&format!("hint: {}\n", printable(hint)));
        }
        if self.verbose {
            let mut source = error.source();
            while let Some(cause) = source {
                text.push_str(&format!("caused by: {}\n", printable(&cause.to_string())));
                source = cause.source();
            }
        }
        if self.json {
            text.push_str(&json_error(error.kind(), &sentence, hint));
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn error() -> Error {
        Error::new(ErrorKind::NotFound, "open sandbox `x\u{1b}[2J`: not found")
            .with_hint("`eyot ls` shows what there is")
            .with_source(io::Error::other("secret path"))
    }

    #[test]
    fn a_failure_is_one_sentence_and_a_hint_with_control_characters_made_harmless() {
        let text = Reporter { json: false, verbose: false, words: Vec::new() }.render(&error());
        assert_eq!(
            text,
            "eyot: open sandbox `x\\u{1b}[2J`: not found\nhint: `eyot ls` shows what there is\n"
        );
    }

    #[test]
    fn the_source_chain_is_shown_only_when_asked_for() {
        assert!(
            Reporter { json: false, verbose: true, words: Vec::new() }
                .render(&error())
                .contains("caused by: secret path\n")
        );
    }

    #[test]
    fn with_json_the_last_line_is_an_object_with_kind_message_and_hint() {
        let text = Reporter { json: true, verbose: false, words: Vec::new() }.render(&error());
        let value: serde_json::Value = serde_json::from_str(text.lines().last().unwrap()).unwrap();
        assert_eq!(value["error"]["kind"], "not_found");
        assert_eq!(value["error"]["hint"], "`eyot ls` shows what there is");
    }

    #[test]
    fn a_closed_output_is_silent_and_exits_like_a_death_by_sigpipe() {
        let failure = Failure::from(io::Error::from(io::ErrorKind::BrokenPipe));
        assert_eq!(failure.exit_code(), 141);
    }

    #[test]
    fn a_host_error_names_the_operation_and_the_reason_without_a_number() {
        let error = io::Error::from_raw_os_error(2);
        let Failure::Error { error, exit_code } = Failure::host("read `a`", error) else {
            panic!("an error")
        };
        assert_eq!((error.to_string().as_str(), exit_code), ("read `a`: no such file or directory", FAILED));
    }
}
