//! `shell`: a command, its output and its true exit code.

use std::time::{Duration, Instant};

use bytes::Bytes;
use eyot::{Error, ErrorKind, ExecOptions, ExecResult, ExecStream, LogStream, Outcome, Result};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{ClippedText, MAX_TEXT_BYTES, ToolContext, ToolDef, ToolOutput, ToolProgress};

/// A command's deadline when a call names none, in milliseconds.
const DEFAULT_TIMEOUT_MS: u64 = 30_000;
/// The pause between two reports of progress.
const PROGRESS_PAUSE: Duration = Duration::from_millis(200);

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Args {
    #[serde(default)]
    #[schemars(extend("default" = "default"))]
    sandbox: Option<String>,
    /// Run by bash
    command: String,
    /// The command and everything that it started is killed after so many milliseconds; exit_code is 124 then
    #[serde(default = "default_timeout_ms")]
    timeout_ms: u64,
    #[serde(default)]
    #[schemars(extend("default" = "/home/user"))]
    working_dir: Option<String>,
}

fn default_timeout_ms() -> u64 {
    DEFAULT_TIMEOUT_MS
}

#[derive(Serialize, JsonSchema)]
struct Answer {
    stdout: String,
    stderr: String,
    exit_code: i32,
}

pub(super) fn tool() -> Result<ToolDef> {
    let description = format!(
        "Execute a shell command in the sandbox. What it starts with `&` keeps running when it returns. Of an output \
         longer than {} KiB the first and the last part are shown.",
        MAX_TEXT_BYTES >> 10
    );
    Ok(ToolDef::typed("shell", &description, run)?.returns::<Answer>().with_plain_numbers().handling_cancel())
}

async fn run(context: ToolContext, args: Args) -> Result<ToolOutput> {
    let sandbox = tokio::select! {
        biased;
        sandbox = context.sandbox(args.sandbox.as_deref()) => sandbox?,
        () = context.cancel.cancelled() => return Err(Error::new(ErrorKind::Cancelled, "the call of `shell` was cancelled")),
    };
    let options = ExecOptions {
        cwd: args.working_dir,
        timeout_ms: Some(args.timeout_ms),
        // The output is collected here: its end matters as much as its beginning.
        max_output_bytes: Some(0),
        cancel: Some(context.cancel.clone()),
        ..ExecOptions::default()
    };
    let stream = sandbox.exec_stream(args.command, options).await?;
    let (output, result) = collect(&context, stream).await?;
    let how = |_| "send it to a file (`command > out.txt 2>&1`) and read that with `read_file`".to_owned();
    let answer = Answer {
        stdout: output.stdout.text(how),
        stderr: with_note(output.stderr.text(how), &result),
        exit_code: result.outcome.exit_code(),
    };
    Ok(ToolOutput::json(&answer).with_error(!result.success()))
}

#[derive(Default)]
struct ShellOutput {
    stdout: ClippedText,
    stderr: ClippedText,
}

async fn collect(context: &ToolContext, stream: ExecStream) -> Result<(ShellOutput, ExecResult)> {
    let mut output = ShellOutput::default();
    let mut last_report: Option<Instant> = None;
    let take = |stream, piece: &Bytes| {
        match stream {
            LogStream::Stdout => output.stdout.push(piece),
            LogStream::Stderr => output.stderr.push(piece),
        }
        if context.progress.is_some() && last_report.is_none_or(|last| last.elapsed() >= PROGRESS_PAUSE) {
            last_report = Some(Instant::now());
            let done = output.stdout.total_bytes() + output.stderr.total_bytes();
            context.report(ToolProgress::new(done, &last_line(piece)));
        }
    };
    let result = stream.collect(take).await?;
    Ok((output, result))
}

fn last_line(bytes: &[u8]) -> String {
    let text = String::from_utf8_lossy(bytes);
    text.trim_end().lines().next_back().unwrap_or_default().to_owned()
}

/// Adds to standard error what the exit code alone would not say.
fn with_note(mut stderr: String, result: &ExecResult) -> String {
    let note = match result.outcome {
        Outcome::TimedOut => {
            format!("Command timed out after {} milliseconds.", result.timeout_ms.unwrap_or_default())
        }
        Outcome::Cancelled => "Command was cancelled.".to_owned(),
        Outcome::OutOfMemory => "Command was killed by the sandbox's memory limit.".to_owned(),
        Outcome::Exited(_) | Outcome::Signaled(_) => return stderr,
    };
    if !stderr.is_empty() && !stderr.ends_with('\n') {
        stderr.push('\n');
    }
    stderr.push_str(&format!("[eyot] {note}\n"));
    if result.may_still_be_running {
        stderr.push_str("[eyot] It may still be running.\n");
    }
    stderr
}
