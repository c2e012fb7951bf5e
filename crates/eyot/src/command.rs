//! Commands: what to run, on which terminal, the signals that reach it, and how its process ends.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};

/// A command to run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Command {
    /// Shell source, run by `bash -c`, else `sh -c`; never a login shell. Without either it is refused.
    Shell(String),
    /// A program, searched for in `PATH` if it has no slash, and its arguments; no shell.
    Argv(Vec<String>),
}

impl Command {
    /// Shell source.
    pub fn shell(line: impl Into<String>) -> Self {
        Self::Shell(line.into())
    }

    /// A program and its arguments.
    pub fn argv<S: Into<String>>(argv: impl IntoIterator<Item = S>) -> Self {
        Self::Argv(argv.into_iter().map(Into::into).collect())
    }

    /// Refuses what can't be run: no program, an empty program, a NUL.
    pub fn validate(&self) -> Result<()> {
        let (field, parts): (_, &[String]) = match self {
            Self::Shell(line) => ("command", std::slice::from_ref(line)),
            Self::Argv(argv) => ("argv", argv),
        };
        if parts.iter().any(|part| part.contains('\0')) {
            return Err(Error::invalid(field, "must not contain a null byte"));
        }
        match parts.first() {
            None => Err(Error::invalid(field, "must not be empty")),
            Some(first) if first.trim().is_empty() => Err(Error::invalid(field, "must not be empty")),
            Some(_) => Ok(()),
        }
    }
}

impl From<&str> for Command {
    fn from(line: &str) -> Self {
        Self::shell(line)
    }
}

impl From<String> for Command {
    fn from(line: String) -> Self {
        Self::Shell(line)
    }
}

impl fmt::Display for Command {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Shell(line) => f.write_str(line),
            Self::Argv(argv) => f.write_str(&argv.join(" ")),
        }
    }
}

/// The size of a terminal, in character cells. 0 is a size that is not known, as it is for the kernel: programs then use one of their own.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct PtySize {
    /// Rows.
    pub rows: u16,
    /// Columns.
    pub cols: u16,
}

impl Default for PtySize {
    fn default() -> Self {
        Self { rows: 24, cols: 80 }
    }
}

/// The way a process ended, as the kernel reported it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum ExitStatus {
    /// It exited with this code, 0–255.
    Exited(i32),
    /// This signal ended it.
    Signaled(i32),
    /// The memory limit ended it.
    OutOfMemory,
}

/// A POSIX signal by its Linux number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Signal(pub i32);

impl Signal {
    /// SIGHUP.
    pub const HUP: Self = Self(1);
    /// SIGINT, what Ctrl-C sends.
    pub const INT: Self = Self(2);
    /// SIGKILL, which can't be caught.
    pub const KILL: Self = Self(9);
    /// SIGTERM, the polite one.
    pub const TERM: Self = Self(15);

    const NAMES: [(&'static str, i32); 14] = [
        ("HUP", 1),
        ("INT", 2),
        ("QUIT", 3),
        ("ABRT", 6),
        ("KILL", 9),
        ("USR1", 10),
        ("USR2", 12),
        ("PIPE", 13),
        ("ALRM", 14),
        ("TERM", 15),
        ("CONT", 18),
        ("STOP", 19),
        ("TSTP", 20),
        ("WINCH", 28),
    ];

    /// Parses a name with or without `SIG`, in any case, or a number from 1 to 64.
    pub fn parse(text: &str) -> Result<Self> {
        if let Ok(number) = text.parse::<i32>() {
            return Self(number).check();
        }
        let upper = text.to_ascii_uppercase();
        let name = upper.strip_prefix("SIG").unwrap_or(&upper);
        let found = Self::NAMES.iter().find(|(known, _)| *known == name);
        let unknown =
            || Error::invalid("signal", format!("is unknown: {text}; use TERM, KILL, INT, HUP or a number"));
        found.map(|(_, number)| Self(*number)).ok_or_else(unknown)
    }

    /// Refuses a number that no signal has; 0 would only ask whether the process is there.
    pub(crate) fn check(self) -> Result<Self> {
        match self.0 {
            1..=64 => Ok(self),
            number => Err(Error::invalid("signal", format!("must be from 1 to 64, not {number}"))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_that_is_empty_or_has_a_null_byte_is_refused() {
        for command in
            [Command::shell("  "), Command::argv(Vec::<String>::new()), Command::argv(["a", "b\0"])]
        {
            assert!(command.validate().is_err(), "{command:?}");
        }
    }

    #[test]
    fn a_signal_is_read_by_name_or_number() {
        for text in ["TERM", "sigterm", "15"] {
            assert_eq!(Signal::parse(text).unwrap(), Signal::TERM);
        }
        assert!(
            Signal::parse("0").is_err() && Signal::parse("65").is_err() && Signal::parse("NOPE").is_err()
        );
    }
}
