//! `exec_command`: a program and its arguments, to its end.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use eyot::{OutputCallback, Result, Stdin, WorkspaceExec, WorkspaceExecResult};
use schemars::JsonSchema;
use serde::Deserialize;

use super::answer;
use super::options::WorkspaceToolsOptions;
use super::policy::ProgramRequest;
use crate::clip::ClippedText;
use crate::context::ToolContext;
use crate::definition::ToolDef;
use crate::output::ToolOutput;
use crate::running::{ProgressReporter, sandbox};

const DESCRIPTION: &str =
    "Run a command inside the sandbox workspace. Use structured args instead of shell quoting.";

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Args {
    /// Executable to run inside the sandbox workspace.
    #[schemars(length(min = 1))]
    command: String,
    /// Command arguments.
    args: Option<Vec<String>>,
    /// Relative working directory inside the sandbox.
    cwd: Option<String>,
    /// Environment variables for this command.
    #[schemars(extend("propertyNames" = { "type": "string" }))]
    env: Option<BTreeMap<String, String>>,
    /// Optional command timeout in milliseconds.
    #[schemars(extend("exclusiveMinimum" = 0, "maximum" = 300_000))]
    timeout_ms: Option<i64>,
    /// Optional stdin text to pass to the command.
    input: Option<String>,
}

pub(super) fn tool(options: Arc<WorkspaceToolsOptions>) -> Result<ToolDef> {
    let tool = ToolDef::typed("exec_command", DESCRIPTION, move |context: ToolContext, asked: Args| {
        run(context, asked, options.clone())
    });
    tool.map(ToolDef::handling_cancel)
}

async fn run(context: ToolContext, asked: Args, options: Arc<WorkspaceToolsOptions>) -> Result<ToolOutput> {
    let workspace = sandbox(&context).await?.workspace();
    let Args { command, args, cwd, env, timeout_ms, input } = asked;
    let env = env.unwrap_or_default();
    let program = ProgramRequest { command: &command, cwd: cwd.as_deref(), env: &env };
    options.exec.check_program(workspace.workdir(), program)?;
    let asked_ms = timeout_ms.and_then(|timeout| u64::try_from(timeout).ok());
    let seen = SharedOutput::default();
    let exec = WorkspaceExec {
        args: args.unwrap_or_default(),
        timeout_ms: options.exec.timeout_ms(asked_ms, options.exec_timeout_ms)?,
        input: input.map_or(Stdin::Closed, |text| Stdin::Bytes(text.into())),
        cancel: Some(context.cancel.clone()),
        on_stdout: Some(seen.callback(&context, |kept| &mut kept.stdout)),
        on_stderr: Some(seen.callback(&context, |kept| &mut kept.stderr)),
        command,
        cwd,
        env,
    };
    let result = workspace.exec(exec).await?;
    Ok(seen.answer(&result))
}

/// The output of a command: as much as fits into an answer, from both ends.
#[derive(Clone, Default)]
struct SharedOutput(Arc<Mutex<CommandOutput>>);

#[derive(Default)]
struct CommandOutput {
    stdout: ClippedText,
    stderr: ClippedText,
    seen: ProgressReporter,
}

impl SharedOutput {
    fn callback(
        &self,
        context: &ToolContext,
        stream: fn(&mut CommandOutput) -> &mut ClippedText,
    ) -> OutputCallback {
        let (kept, context) = (self.0.clone(), context.clone());
        Box::new(move |piece: &Bytes| {
            let mut kept = kept.lock().unwrap_or_else(PoisonError::into_inner);
            stream(&mut kept).push(piece);
            kept.seen.report(&context, piece);
        })
    }

    fn answer(&self, result: &WorkspaceExecResult) -> ToolOutput {
        let kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let (stdout, stderr) = (text(&kept.stdout, &result.stdout), text(&kept.stderr, &result.stderr));
        let clipped = kept.stdout.is_clipped() || kept.stderr.is_clipped();
        let truncated = clipped || result.stdout_truncated || result.stderr_truncated;
        let parts = [
            Some(format!("exit_code: {}", result.exit_code)),
            answer::flag("timed_out", result.timed_out),
            answer::flag("aborted", result.aborted),
            answer::output("stdout", &stdout),
            answer::output("stderr", &stderr),
            answer::flag("output_truncated", truncated),
        ];
        ToolOutput::text(answer::joined(parts))
    }
}

/// The result's text, which also says what kept a program from being run, or both ends of a longer one.
fn text(kept: &ClippedText, result: &str) -> String {
    if kept.is_clipped() {
        kept.text(|_| "run it again with its output in a file, and read that with read_file".to_owned())
    } else {
        result.to_owned()
    }
}
