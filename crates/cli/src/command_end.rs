//! The end of a command that was attached: our exit code, and the sentences on standard error that
//! tell what the exit code does not.

use eyot::{ExecResult, Outcome};

use crate::errors::FAILED;
use crate::output::say;

/// The number of the signal that Ctrl-C sends.
const SIGINT: i32 = 2;
/// The number of the signal that a command gets which writes to a reader that has left.
const SIGPIPE: i32 = 13;

/// The result of the command.
pub struct CommandEnd {
    /// The result.
    pub result: ExecResult,
    /// The signal after which we killed it.
    pub killed_for: Option<i32>,
    /// Ctrl-C may have been pressed: we passed one on, or the command had a terminal of its own.
    pub may_be_interrupted: bool,
}

impl CommandEnd {
    /// Returns our exit code.
    pub fn exit_code(&self) -> u8 {
        let code = match (self.result.outcome, self.killed_for) {
            (Outcome::Cancelled, Some(signal)) => 128 + signal,
            (outcome, _) => outcome.exit_code(),
        };
        u8::try_from(code).unwrap_or(FAILED)
    }

    /// Explains on stderr what the exit code does not tell.
    pub fn explain(&self) {
        if let Some(sentence) = self.sentence() {
            say(&format!("[eyot] {sentence}\n"));
        }
        if self.result.may_still_be_running {
            say("[eyot] The kill could not be confirmed: the command may still be running.\n");
        }
    }

    fn sentence(&self) -> Option<String> {
        match self.result.outcome {
            Outcome::TimedOut => {
                let deadline = self.result.timeout_ms.unwrap_or_default();
                Some(format!("Command timed out after {deadline} milliseconds."))
            }
            Outcome::OutOfMemory => Some("Command was ended by the memory limit.".to_owned()),
            Outcome::Signaled(signal) if !self.is_expected(signal) => {
                let name = name(signal).map(|name| format!(" (SIG{name})")).unwrap_or_default();
                Some(format!("Command was ended by signal {signal}{name}."))
            }
            _ => None,
        }
    }

    /// Tells whether the person knows already, as a shell sees it: Ctrl-C was pressed, or the reader
    /// of a pipe has left.
    fn is_expected(&self, signal: i32) -> bool {
        signal == SIGPIPE || (signal == SIGINT && self.may_be_interrupted)
    }
}

/// Returns the name of a signal that ends a command.
fn name(signal: i32) -> Option<&'static str> {
    Some(match signal {
        1 => "HUP",
        2 => "INT",
        3 => "QUIT",
        4 => "ILL",
        5 => "TRAP",
        6 => "ABRT",
        7 => "BUS",
        8 => "FPE",
        9 => "KILL",
        10 => "USR1",
        11 => "SEGV",
        12 => "USR2",
        14 => "ALRM",
        15 => "TERM",
        24 => "XCPU",
        25 => "XFSZ",
        31 => "SYS",
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;

    use super::*;

    fn end(outcome: Outcome, killed_for: Option<i32>, may_be_interrupted: bool) -> CommandEnd {
        let result = ExecResult {
            outcome,
            stdout: Bytes::new(),
            stderr: Bytes::new(),
            stdout_bytes: 0,
            stderr_bytes: 0,
            duration_ms: 0,
            timeout_ms: None,
            may_still_be_running: false,
            output_open: false,
        };
        CommandEnd { result, killed_for, may_be_interrupted }
    }

    #[test]
    fn a_command_that_was_killed_for_a_signal_makes_us_exit_like_that_signal() {
        let code = |outcome, killed_for| end(outcome, killed_for, false).exit_code();
        assert_eq!(code(Outcome::Cancelled, Some(15)), 143);
        assert_eq!(code(Outcome::Cancelled, Some(2)), 130);
        assert_eq!(code(Outcome::Exited(3), Some(15)), 3);
        assert_eq!(code(Outcome::TimedOut, None), 124);
    }

    #[test]
    fn a_signal_is_told_unless_the_person_knows_of_it() {
        let said = |signal, interrupted| end(Outcome::Signaled(signal), None, interrupted).sentence();
        assert_eq!(said(9, true).unwrap(), "Command was ended by signal 9 (SIGKILL).");
        assert_eq!(said(40, false).unwrap(), "Command was ended by signal 40.");
        assert_eq!(said(2, false).unwrap(), "Command was ended by signal 2 (SIGINT).");
        assert_eq!((said(2, true), said(13, false)), (None, None));
        assert_eq!(end(Outcome::Exited(137), None, false).sentence(), None);
        assert_eq!(end(Outcome::Cancelled, Some(2), false).sentence(), None);
    }
}
