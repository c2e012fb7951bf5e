//! The result of a command: its outcome, its output as it was kept, and the seeds' flat form of both.

use std::fmt;

use bytes::Bytes;
use serde::{Deserialize, Serialize};

use crate::command::ExitStatus;

/// The outcome of a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// It exited with this code.
    Exited(i32),
    /// This signal ended it.
    Signaled(i32),
    /// The deadline passed; the whole process tree was killed.
    TimedOut,
    /// The caller cancelled; the whole process tree was killed, unless [`ExecResult::may_still_be_running`].
    Cancelled,
    /// The memory limit ended it.
    OutOfMemory,
}

impl Outcome {
    /// Returns whether it exited with code 0.
    pub fn success(self) -> bool {
        self == Self::Exited(0)
    }

    /// The seeds' single number: the code, 128 + signal, 124 for a deadline, 137 for out of memory, 130 for a cancel.
    pub fn exit_code(self) -> i32 {
        match self {
            Self::Exited(code) => code,
            Self::Signaled(signal) => 128 + signal,
            Self::TimedOut => 124,
            Self::Cancelled => 130,
            Self::OutOfMemory => 137,
        }
    }
}

impl From<ExitStatus> for Outcome {
    fn from(status: ExitStatus) -> Self {
        match status {
            ExitStatus::Exited(code) => Self::Exited(code),
            ExitStatus::Signaled(signal) => Self::Signaled(signal),
            ExitStatus::OutOfMemory => Self::OutOfMemory,
        }
    }
}

/// The output and the outcome of a command. The bytes are the command's own.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExecResult {
    /// The outcome.
    pub outcome: Outcome,
    /// The first bytes it wrote to standard output, up to the cap.
    pub stdout: Bytes,
    /// The first bytes it wrote to standard error, up to the cap.
    pub stderr: Bytes,
    /// The number of bytes it wrote to standard output in all.
    pub stdout_bytes: u64,
    /// The number of bytes it wrote to standard error in all.
    pub stderr_bytes: u64,
    /// From the start to the outcome, in milliseconds.
    pub duration_ms: u64,
    /// The deadline that it had, in milliseconds.
    pub timeout_ms: Option<u64>,
    /// It was to be killed and the kill could not be confirmed.
    pub may_still_be_running: bool,
    /// Something that it left behind still held its output open when reading stopped, so more may have been written
    /// after that.
    pub output_open: bool,
}

impl ExecResult {
    /// Returns whether it exited with code 0.
    pub fn success(&self) -> bool {
        self.outcome.success()
    }

    /// Returns the result itself of a command that exited with 0.
    ///
    /// ```no_run
    /// # async fn build(sandbox: eyot::Sandbox) -> Result<(), Box<dyn std::error::Error>> {
    /// let built = sandbox.exec("make", eyot::ExecOptions::default()).await?.check()?;
    /// println!("{}", built.stdout_text());
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`CommandFailed`] for every other outcome. It has the result, and tells what the command wrote last.
    pub fn check(self) -> Result<Self, CommandFailed> {
        if self.success() { Ok(self) } else { Err(CommandFailed(Box::new(self))) }
    }

    /// Standard output as text; invalid UTF-8 becomes U+FFFD.
    pub fn stdout_text(&self) -> String {
        String::from_utf8_lossy(&self.stdout).into_owned()
    }

    /// Standard error as text; invalid UTF-8 becomes U+FFFD.
    pub fn stderr_text(&self) -> String {
        String::from_utf8_lossy(&self.stderr).into_owned()
    }

    /// Returns whether standard output was longer than what was kept.
    pub fn stdout_truncated(&self) -> bool {
        self.stdout_bytes > self.stdout.len() as u64
    }

    /// Returns whether standard error was longer than what was kept.
    pub fn stderr_truncated(&self) -> bool {
        self.stderr_bytes > self.stderr.len() as u64
    }

    /// The seeds' flat form. A deadline adds its sentence to standard error here, and only here.
    pub fn flatten(&self) -> FlatResult {
        let mut stderr = self.stderr_text();
        if self.outcome == Outcome::TimedOut {
            if !stderr.is_empty() && !stderr.ends_with('\n') {
                stderr.push('\n');
            }
            let deadline = self.timeout_ms.unwrap_or_default();
            stderr.push_str(&format!("[eyot] Command timed out after {deadline} milliseconds.\n"));
        }
        FlatResult {
            stdout: self.stdout_text(),
            stderr,
            exit_code: self.outcome.exit_code(),
            duration_ms: self.duration_ms,
            timed_out: self.outcome == Outcome::TimedOut,
            aborted: self.outcome == Outcome::Cancelled,
            stdout_truncated: self.stdout_truncated(),
            stderr_truncated: self.stderr_truncated(),
        }
    }
}

/// A command did not exit with 0, and [`ExecResult::check`] was asked. The result is inside.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CommandFailed(pub Box<ExecResult>);

/// The most of a command's output that an error tells, in characters.
const LAST_WORDS_CHARS: usize = 2_000;

impl fmt::Display for CommandFailed {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0.outcome {
            Outcome::Exited(code) => write!(out, "the command exited with {code}")?,
            Outcome::Signaled(signal) => write!(out, "the command was killed by signal {signal}")?,
            Outcome::TimedOut => out.write_str("the command timed out")?,
            Outcome::Cancelled => out.write_str("the command was cancelled")?,
            Outcome::OutOfMemory => out.write_str("the command ran out of memory")?,
        }
        let (stderr, stdout) = (self.0.stderr_text(), self.0.stdout_text());
        let words = if stderr.trim().is_empty() { stdout.trim() } else { stderr.trim() };
        let left_out = words.chars().count().saturating_sub(LAST_WORDS_CHARS);
        let last: String = words.chars().skip(left_out).collect();
        if last.is_empty() { Ok(()) } else { write!(out, ": {last}") }
    }
}

impl std::error::Error for CommandFailed {}

/// A result as the seeds have it on the wire.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[doc(alias = "SandboxExecResult")]
pub struct FlatResult {
    /// Standard output as text, up to the cap.
    pub stdout: String,
    /// Standard error as text, up to the cap, with the deadline's sentence.
    pub stderr: String,
    /// The command's own code; 124 on a deadline, 128 + n on a signal.
    pub exit_code: i32,
    /// From the start to the outcome, in milliseconds.
    pub duration_ms: u64,
    /// The deadline passed.
    pub timed_out: bool,
    /// The caller cancelled.
    pub aborted: bool,
    /// Standard output was longer than what was kept.
    pub stdout_truncated: bool,
    /// Standard error was longer than what was kept.
    pub stderr_truncated: bool,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn result(outcome: Outcome, stderr: &'static str) -> ExecResult {
        ExecResult {
            outcome,
            stdout: Bytes::new(),
            stderr: Bytes::from_static(stderr.as_bytes()),
            stdout_bytes: 0,
            stderr_bytes: stderr.len() as u64,
            duration_ms: 5,
            timeout_ms: Some(50),
            may_still_be_running: false,
            output_open: false,
        }
    }

    #[test]
    fn a_deadline_flattens_to_124_and_adds_its_sentence_to_stderr_only_there() {
        let result = result(Outcome::TimedOut, "half a line");
        let flat = result.flatten();
        assert_eq!((flat.exit_code, flat.timed_out), (124, true));
        assert_eq!(flat.stderr, "half a line\n[eyot] Command timed out after 50 milliseconds.\n");
        assert_eq!(&result.stderr[..], b"half a line");
    }

    #[test]
    fn a_signal_flattens_to_128_plus_its_number() {
        assert_eq!(result(Outcome::Signaled(9), "").flatten().exit_code, 137);
    }

    #[test]
    fn a_checked_result_is_itself_or_an_error_with_the_last_words() {
        let exited = |code| result(Outcome::Exited(code), "no such target\n");
        assert_eq!(exited(0).check(), Ok(exited(0)));
        let error = exited(2).check().unwrap_err();
        assert_eq!(error.to_string(), "the command exited with 2: no such target");
        assert_eq!(*error.0, exited(2));
        let late = result(Outcome::TimedOut, "").check().unwrap_err();
        assert_eq!(late.to_string(), "the command timed out");
        let long = ExecResult { stderr: "x".repeat(9_000).into(), ..exited(1) };
        assert!(long.check().unwrap_err().to_string().len() < 2_100);
    }
}
