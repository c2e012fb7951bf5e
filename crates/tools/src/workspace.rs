//! Anvia's tools over a sandbox's working directory: programs with arguments instead of shell lines, relative paths that
//! stay beneath it; names, schemas, texts and policies as its 0.6 has them.
//!
//! Four of the ten are there unless others are asked for. A policy is a guard rail, not a wall: it is checked on the
//! program that will run, and that program may be a shell, or start what it likes. What holds whatever runs is the sandbox.
//!
//! Nothing is published here as Docker publishes ports. A port that the options name can be reached from this host through
//! the pool's `browse`, which needs no network and dials the sandbox's own loopback: `list_ports` opens those ports and
//! says where they are, and a server is ready once something listens, be it on 127.0.0.1 alone.

mod answer;
mod exec_command;
mod list_files;
mod list_ports;
mod list_processes;
mod options;
mod policy;
mod read_file;
mod read_process_logs;
mod start_process;
mod stop_process;
mod wait_for_port;
mod write_file;

use std::sync::Arc;

use eyot::{Capabilities, Capability, Error, ErrorKind, Result};

use super::definition::ToolDef;
use super::set::Toolset;

pub use options::{ProcessPolicy, ReadFilePolicy, WorkspaceTool, WorkspaceToolsOptions, WriteFilePolicy};
pub use policy::ExecPolicy;

/// The toolset `workspace` with these options, for sandboxes that can do so much. `invalid`: a policy contradicts itself;
/// `unsupported`: a tool is asked for that the sandboxes have nothing for.
#[doc(alias = "createSandboxTools")]
pub fn workspace_tools(options: WorkspaceToolsOptions, capabilities: &Capabilities) -> Result<Toolset> {
    let names = options.tools();
    let asked = |tools: &[WorkspaceTool]| tools.iter().any(|tool| names.contains(tool));
    if asked(&WorkspaceTool::PORTS) && !capabilities.has(Capability::Dial) {
        return Err(unsupported_error("published port tools"));
    }
    options.check()?;
    if asked(&WorkspaceTool::PROCESSES) && !capabilities.has(Capability::Processes) {
        return Err(unsupported_error("managed process tools"));
    }
    let options = Arc::new(options);
    let tools = names.into_iter().map(|name| tool(name, &options)).collect::<Result<Vec<_>>>()?;
    Toolset::new("workspace", tools)
}

/// The four tools that are there unless others are asked for, without a policy.
pub(super) fn default_tools() -> Result<Toolset> {
    workspace_tools(WorkspaceToolsOptions::default(), &Capabilities::default())
}

fn tool(name: WorkspaceTool, options: &Arc<WorkspaceToolsOptions>) -> Result<ToolDef> {
    let options = options.clone();
    match name {
        WorkspaceTool::ExecCommand => exec_command::tool(options),
        WorkspaceTool::ReadFile => read_file::tool(options),
        WorkspaceTool::WriteFile => write_file::tool(options),
        WorkspaceTool::ListFiles => list_files::tool(),
        WorkspaceTool::ListPorts => list_ports::tool(options),
        WorkspaceTool::StartProcess => start_process::tool(options),
        WorkspaceTool::ListProcesses => list_processes::tool(),
        WorkspaceTool::ReadProcessLogs => read_process_logs::tool(options),
        WorkspaceTool::StopProcess => stop_process::tool(options),
        WorkspaceTool::WaitForPort => wait_for_port::tool(options),
    }
}

fn unsupported_error(what: &str) -> Error {
    Error::new(ErrorKind::Unsupported, format!("The sandbox session does not support {what}."))
}

/// A refusal by policy.
fn policy_error(message: String) -> Error {
    Error::new(ErrorKind::Permission, message)
}
