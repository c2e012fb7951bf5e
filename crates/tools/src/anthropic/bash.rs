//! `bash`: a command in the sandbox's shell session.

use std::sync::Arc;

use eyot::{Error, ErrorKind, ExecOptions, ExecResult, LogStream, Outcome, Result, Sandbox};
use schemars::JsonSchema;
use serde::Deserialize;

use super::{AnthropicToolsOptions, session};
use crate::clip::ClippedText;
use crate::context::ToolContext;
use crate::definition::ToolDef;
use crate::locks::lock_shell;
use crate::output::ToolOutput;
use crate::running::{run, sandbox};

const DESCRIPTION: &str = "Run a command in a bash session that keeps its working directory, variables and functions from \
                           one call to the next. Returns stdout and stderr. What is started with `&` keeps running; \
                           commands read no input. Restart the session to begin anew.";

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Args {
    /// The bash command to run. Required unless the session is restarted.
    command: Option<String>,
    /// Set to true to restart the session.
    restart: Option<bool>,
}

pub(super) fn tool(options: Arc<AnthropicToolsOptions>) -> Result<ToolDef> {
    let tool = ToolDef::typed("bash", DESCRIPTION, move |context: ToolContext, asked: Args| {
        bash(context, asked, options.bash_timeout_ms)
    });
    Ok(tool?.with_anthropic_type("bash_20250124").handling_cancel())
}

async fn bash(context: ToolContext, asked: Args, timeout_ms: u64) -> Result<ToolOutput> {
    let sandbox = sandbox(&context).await?;
    match asked {
        Args { restart: Some(true), .. } => restart(&sandbox).await,
        Args { command: Some(command), .. } => run_in_session(&context, &sandbox, &command, timeout_ms).await,
        Args { command: None, .. } => Err(Error::new(ErrorKind::Invalid, "no command provided.")),
    }
}

async fn restart(sandbox: &Sandbox) -> Result<ToolOutput> {
    let _turn = lock_shell(sandbox).await;
    let result = sandbox.exec(session::restart(), ExecOptions::default()).await?;
    if result.success() {
        Ok(ToolOutput::text("tool has been restarted."))
    } else {
        Ok(ToolOutput::error(format!("tool could not be restarted: {}", result.stderr_text().trim())))
    }
}

async fn run_in_session(
    context: &ToolContext,
    sandbox: &Sandbox,
    command: &str,
    timeout_ms: u64,
) -> Result<ToolOutput> {
    let _turn = tokio::select! {
        biased;
        turn = lock_shell(sandbox) => turn,
        () = context.cancel.cancelled() => return Err(Error::new(ErrorKind::Cancelled, "Operation aborted")),
    };
    let mut output = BashOutput::default();
    let options = ExecOptions { timeout_ms: Some(timeout_ms), ..ExecOptions::default() };
    let take = |stream, piece: &bytes::Bytes| {
        match stream {
            LogStream::Stdout => output.stdout.push(piece),
            LogStream::Stderr => output.stderr.push(piece),
        }
        true
    };
    let result = run(context, sandbox, session::line(command), options, take).await?;
    let result = result.ok_or_else(|| Error::new(ErrorKind::Internal, "a command ended without a result"))?;
    Ok(output.answer(&result))
}

/// The output of a command, as much as fits into an answer.
#[derive(Debug, Default)]
struct BashOutput {
    stdout: ClippedText,
    stderr: ClippedText,
}

impl BashOutput {
    fn answer(&self, result: &ExecResult) -> ToolOutput {
        let how = |_| "run it again with its output in a file, and view that".to_owned();
        let (stdout, stderr) = (self.stdout.text(how), self.stderr.text(how));
        let ended = match result.outcome {
            Outcome::TimedOut => {
                let seconds = result.timeout_ms.unwrap_or_default() as f64 / 1000.0;
                Some((format!("Error: Command timed out after {seconds} seconds"), true))
            }
            Outcome::Cancelled => Some(("Error: Command was cancelled".to_owned(), true)),
            Outcome::Exited(0) => None,
            outcome => Some((format!("Command exited with code {}", outcome.exit_code()), false)),
        };
        let (note, is_error) = ended.map_or((None, false), |(note, is_error)| (Some(note), is_error));
        let parts =
            [Some(without_final_newline(&stdout)), Some(without_final_newline(&stderr)), note.as_deref()];
        let parts: Vec<_> = parts.into_iter().flatten().filter(|part| !part.is_empty()).collect();
        ToolOutput::text(parts.join("\n")).with_error(is_error)
    }
}

fn without_final_newline(text: &str) -> &str {
    text.strip_suffix('\n').unwrap_or(text)
}
