//! `bash`: a command, and the end of what it wrote. A deadline that passes is an answer that keeps the output so far.

use eyot::{Error, ErrorKind, ExecOptions, ExecResult, LogStream, Outcome, Result};
use schemars::JsonSchema;
use serde::Deserialize;

use super::{MAX_LINES, MAX_UNITS, units};
use crate::context::ToolContext;
use crate::definition::ToolDef;
use crate::output::ToolOutput;
use crate::running::{OutputTail, run, sandbox};

const DESCRIPTION: &str =
    "Execute a bash command. Returns stdout and stderr. Output is truncated to the last 2000 lines or 50KB.";

/// So much is kept of each stream: more than can be shown, and white space that is trimmed.
const KEPT_BYTES: usize = 256 << 10;

#[derive(Debug, Deserialize, JsonSchema)]
struct Args {
    /// Bash command to execute
    command: String,
    /// Timeout in seconds
    timeout: Option<f64>,
}

pub(super) fn tool() -> Result<ToolDef> {
    let tool = ToolDef::typed("bash", DESCRIPTION, async |context: ToolContext, asked: Args| {
        bash(context, asked).await
    });
    tool.map(ToolDef::handling_cancel)
}

async fn bash(context: ToolContext, asked: Args) -> Result<ToolOutput> {
    let timeout_ms = asked.timeout.map(milliseconds).transpose()?;
    let sandbox = sandbox(&context).await?;
    let (mut stdout, mut stderr) = (OutputTail::new(KEPT_BYTES), OutputTail::new(KEPT_BYTES));
    let options = ExecOptions { timeout_ms, ..ExecOptions::default() };
    let take = |stream, piece: &bytes::Bytes| {
        match stream {
            LogStream::Stdout => stdout.push(piece),
            LogStream::Stderr => stderr.push(piece),
        }
        true
    };
    let result = run(&context, &sandbox, asked.command, options, take).await?;
    let result = result.ok_or_else(|| Error::new(ErrorKind::Internal, "a command ended without a result"))?;
    Ok(answer(&result, asked.timeout, &stdout.text(), &stderr.text()))
}

/// Seconds as milliseconds, rounded up: a deadline is never shorter than it was asked for.
fn milliseconds(seconds: f64) -> Result<u64> {
    if seconds >= 0.0 {
        Ok((seconds * 1000.0).ceil() as u64)
    } else {
        Err(Error::invalid("timeout", format!("must be a non-negative number of seconds, got {seconds}")))
    }
}

/// Returns the answer of `bash` for a command that ran elsewhere and kept its output. `timeout` is its deadline in seconds.
pub fn bash_answer(result: &ExecResult, timeout: Option<f64>) -> ToolOutput {
    answer(result, timeout, &result.stdout_text(), &result.stderr_text())
}

fn answer(result: &ExecResult, timeout: Option<f64>, stdout: &str, stderr: &str) -> ToolOutput {
    let mut parts = vec![stdout.to_owned()];
    parts.extend((!stderr.is_empty()).then(|| stderr.to_owned()));
    if result.outcome == Outcome::TimedOut {
        // Without one of the call's own, it was the sandbox's.
        let seconds = timeout.unwrap_or(result.timeout_ms.unwrap_or_default() as f64 / 1000.0);
        parts.push(format!("[flue] Command timed out after {seconds} seconds."));
    }
    let joined = parts.join("\n");
    let shown = end_of(joined.trim());
    let shown = if shown.is_empty() { "(no output)" } else { shown };
    match result.outcome {
        Outcome::Cancelled => ToolOutput::text(format!("{shown}\n\n{}", aborted(result))).with_error(true),
        outcome => match outcome.exit_code() {
            0 => ToolOutput::text(shown),
            code => ToolOutput::text(format!("{shown}\n\nCommand exited with code {code}")),
        },
    }
}

fn aborted(result: &ExecResult) -> String {
    let unconfirmed = if result.may_still_be_running {
        " The sandbox command could not be confirmed cancelled and may still be running."
    } else {
        ""
    };
    format!("The operation was aborted.{unconfirmed}")
}

/// The last lines of a text, as much of them as may be shown.
fn end_of(text: &str) -> &str {
    let before = text.rmatch_indices('\n').nth(MAX_LINES - 1);
    units::tail(before.map_or(text, |(index, _)| &text[index + 1..]), MAX_UNITS)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn result(outcome: Outcome) -> ExecResult {
        ExecResult {
            outcome,
            stdout: bytes::Bytes::new(),
            stderr: bytes::Bytes::new(),
            stdout_bytes: 0,
            stderr_bytes: 0,
            duration_ms: 0,
            timeout_ms: Some(1_500),
            may_still_be_running: true,
            output_open: false,
        }
    }

    fn text(outcome: Outcome, stdout: &str, stderr: &str) -> String {
        answer(&result(outcome), None, stdout, stderr).as_text()
    }

    #[test]
    fn output_is_stdout_then_stderr_trimmed() {
        assert_eq!(text(Outcome::Exited(0), "\nout\n", "err\n\n"), "out\n\nerr");
        assert_eq!(text(Outcome::Exited(0), " \n", ""), "(no output)");
    }

    #[test]
    fn a_code_other_than_zero_is_said_and_is_no_error() {
        let answer = answer(&result(Outcome::Exited(3)), None, "x", "");
        assert_eq!((answer.as_text().as_str(), answer.is_error), ("x\n\nCommand exited with code 3", false));
        assert_eq!(text(Outcome::Signaled(9), "", ""), "(no output)\n\nCommand exited with code 137");
    }

    #[test]
    fn a_deadline_keeps_the_output_so_far() {
        let sentence = "[flue] Command timed out after 1.5 seconds.\n\nCommand exited with code 124";
        assert_eq!(text(Outcome::TimedOut, "", ""), sentence);
        assert_eq!(text(Outcome::TimedOut, "half\n", ""), format!("half\n\n{sentence}"));
    }

    #[test]
    fn a_cancelled_command_is_an_error_that_keeps_the_output_so_far() {
        let answer = answer(&result(Outcome::Cancelled), None, "half", "");
        let expected = "half\n\nThe operation was aborted. The sandbox command could not be confirmed cancelled and may \
                        still be running.";
        assert_eq!((answer.as_text().as_str(), answer.is_error), (expected, true));
    }

    #[test]
    fn of_long_output_the_last_2000_lines_or_51200_units_are_shown_without_a_marker() {
        let lines: String = (0..2_005).map(|line| format!("{line}\n")).collect();
        let shown = text(Outcome::Exited(0), &lines, "");
        assert!(shown.starts_with("5\n6\n") && shown.ends_with("\n2004"), "{}", &shown[..20]);
        let long = "漢".repeat(51_200);
        assert!(text(Outcome::Exited(0), &format!("a{long}"), "") == long);
    }

    #[test]
    fn a_timeout_rounds_up_and_is_not_negative() {
        assert_eq!((milliseconds(0.0005).unwrap(), milliseconds(1e300).unwrap()), (1, u64::MAX));
        assert!(milliseconds(-1.0).is_err() && milliseconds(f64::NAN).is_err());
    }
}
