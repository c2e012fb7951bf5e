//! Processes that outlive their call, started as Anvia starts them: a program and its arguments, below the workspace.

use std::collections::BTreeMap;

use super::Workspace;
use crate::error::{Error, ErrorKind, Result};
use crate::exec::Command;
use crate::process::ProcessInfo;
use crate::sandbox::StartOptions;

/// A process to start in a workspace. Everything but `command` has a default.
#[derive(Debug, Clone, Default)]
#[doc(alias = "SandboxProcessStartOptions")]
pub struct WorkspaceStart {
    /// The program, searched for in `PATH` if it has no slash. No shell.
    pub command: String,
    /// The arguments.
    pub args: Vec<String>,
    /// Working directory, relative to the workspace.
    pub cwd: Option<String>,
    /// Variables layered over the sandbox's.
    pub env: BTreeMap<String, String>,
}

impl Workspace {
    /// Starts a process that outlives the call; see [`crate::Sandbox::start`]. A working directory that leads out of the
    /// workspace is `invalid`, or `permission` where a symbolic link does.
    #[doc(alias = "startProcess")]
    pub async fn start_process(&self, start: WorkspaceStart) -> Result<ProcessInfo> {
        self.sandbox.check_alive()?;
        let WorkspaceStart { command, args, cwd, env } = start;
        if command.trim().is_empty() {
            return Err(Error::new(ErrorKind::Invalid, "sandbox process command cannot be empty"));
        }
        let place = match &cwd {
            Some(path) => self.directory("start", path)?.1,
            None => self.workdir().clone().into(),
        };
        let command = Command::argv(std::iter::once(command).chain(args));
        self.sandbox.start_at(command, place, StartOptions { cwd, env, ..StartOptions::default() }).await
    }
}
