//! `start_process`: a program that outlives the call.

use std::collections::BTreeMap;
use std::sync::Arc;

use eyot::{Error, ErrorKind, ProcessStatus, Result, Sandbox, WorkspaceStart};
use schemars::JsonSchema;
use serde::Deserialize;

use super::answer;
use super::options::WorkspaceToolsOptions;
use super::policy::ProgramRequest;
use crate::context::ToolContext;
use crate::definition::ToolDef;
use crate::locks::lock_starts;
use crate::output::ToolOutput;

const DESCRIPTION: &str = "Start a managed long-running process inside the sandbox. Use list_ports first and bind web \
                           servers to 0.0.0.0.";

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Args {
    /// Executable to run as a managed sandbox process.
    #[schemars(length(min = 1))]
    command: String,
    /// Command arguments.
    args: Option<Vec<String>>,
    /// Relative working directory inside the sandbox.
    cwd: Option<String>,
    /// Environment variables for this process.
    #[schemars(extend("propertyNames" = { "type": "string" }))]
    env: Option<BTreeMap<String, String>>,
}

pub(super) fn tool(options: Arc<WorkspaceToolsOptions>) -> Result<ToolDef> {
    ToolDef::typed("start_process", DESCRIPTION, move |context: ToolContext, asked: Args| {
        start(context, asked, options.clone())
    })
}

async fn start(context: ToolContext, asked: Args, options: Arc<WorkspaceToolsOptions>) -> Result<ToolOutput> {
    let sandbox = context.sandbox(None).await?;
    let Args { command, args, cwd, env } = asked;
    let (args, env) = (args.unwrap_or_default(), env.unwrap_or_default());
    let program = ProgramRequest { command: &command, cwd: cwd.as_deref(), env: &env };
    options.exec.check_program(sandbox.cwd(), program)?;
    let _guard = lock_starts(&sandbox).await;
    check_room(&sandbox, options.process.max_processes).await?;
    let started = sandbox.workspace().start_process(WorkspaceStart { command, args, cwd, env }).await?;
    Ok(ToolOutput::text(answer::process(&started, false)))
}

/// Refuses one process more than may run. Those that ended, or that could not be started, do not count.
async fn check_room(sandbox: &Sandbox, most: usize) -> Result<()> {
    let processes = sandbox.processes().await?;
    let running = processes.iter().filter(|process| process.status == ProcessStatus::Running).count();
    if running < most {
        Ok(())
    } else {
        let message = format!("Sandbox process limit reached ({running} >= {most}).");
        Err(Error::new(ErrorKind::Quota, message).with_hint("stop one with stop_process first"))
    }
}
