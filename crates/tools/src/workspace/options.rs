//! Options of the tools: which ones there are, and what they may do.

use eyot::{Error, ErrorKind, Result};
use serde::{Deserialize, Serialize};

use super::policy::ExecPolicy;

/// The most lines that a page may have.
const MAX_LINES: u64 = 10_000;
/// The largest page, and the largest part of a log, in bytes.
const MAX_BYTES: u64 = 1 << 20;
/// The longest wait, in milliseconds.
const MAX_WAIT_MS: u64 = 300_000;
/// The wait that neither the options nor a call name, in milliseconds.
pub(super) const DEFAULT_WAIT_MS: u64 = 30_000;

/// One of the ten tools.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[doc(alias = "SandboxToolName")]
pub enum WorkspaceTool {
    /// Runs a program.
    ExecCommand,
    /// Reads a page of a text file.
    ReadFile,
    /// Writes a text file.
    WriteFile,
    /// Lists a directory.
    ListFiles,
    /// Lists the ports that can be reached from this host.
    ListPorts,
    /// Starts a process that outlives the call.
    StartProcess,
    /// Lists the started processes.
    ListProcesses,
    /// Reads what a started process wrote last.
    ReadProcessLogs,
    /// Stops a started process.
    StopProcess,
    /// Waits until something listens on a port.
    WaitForPort,
}

impl WorkspaceTool {
    /// Every tool, in the order in which a model is shown them.
    pub const ALL: [Self; 10] = [
        Self::ExecCommand,
        Self::ReadFile,
        Self::WriteFile,
        Self::ListFiles,
        Self::ListPorts,
        Self::StartProcess,
        Self::ListProcesses,
        Self::ReadProcessLogs,
        Self::StopProcess,
        Self::WaitForPort,
    ];
    /// Those that are there unless others are asked for.
    pub const DEFAULT: [Self; 4] = [Self::ExecCommand, Self::ReadFile, Self::WriteFile, Self::ListFiles];

    pub(super) const PORTS: [Self; 2] = [Self::ListPorts, Self::WaitForPort];
    pub(super) const PROCESSES: [Self; 4] =
        [Self::StartProcess, Self::ListProcesses, Self::ReadProcessLogs, Self::StopProcess];
    const UNDER_PROCESS_POLICY: [Self; 5] = [
        Self::StartProcess,
        Self::ListProcesses,
        Self::ReadProcessLogs,
        Self::StopProcess,
        Self::WaitForPort,
    ];
}

/// Options of the tools: which ones there are, and what they may do.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase", deny_unknown_fields)]
#[doc(alias = "SandboxToolsOptions")]
pub struct WorkspaceToolsOptions {
    /// The tools there are, in whatever order. `None`: what `include` says.
    pub allow: Option<Vec<WorkspaceTool>>,
    /// The same where `allow` says nothing. `None`: [`WorkspaceTool::DEFAULT`].
    pub include: Option<Vec<WorkspaceTool>>,
    /// The deadline of a command that is given none, in milliseconds; `exec.default_timeout_ms` goes before it.
    pub exec_timeout_ms: Option<u64>,
    /// The programs that may be run, and for how long.
    pub exec: ExecPolicy,
    /// Limits on reading a file.
    pub read_file: ReadFilePolicy,
    /// Limits on writing a file.
    pub write_file: WriteFilePolicy,
    /// Limits on started processes.
    pub process: ProcessPolicy,
    /// The ports of a sandbox that can be reached from this host. See the module about what that means.
    pub ports: Vec<u16>,
}

/// Limits on reading a file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase", deny_unknown_fields)]
pub struct ReadFilePolicy {
    /// The lines of a page when the call does not say; 500.
    pub default_line_count: u64,
    /// The most lines that a call may ask for; 2,000, at most 10,000.
    pub max_line_count: u64,
    /// The most bytes of a page, cut at a whole character; 65,536, at most 1,048,576.
    pub max_bytes: u64,
}

impl Default for ReadFilePolicy {
    fn default() -> Self {
        Self { default_line_count: 500, max_line_count: 2_000, max_bytes: 65_536 }
    }
}

/// Limits on writing a file.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase", deny_unknown_fields)]
pub struct WriteFilePolicy {
    /// The most bytes of a file's content, as UTF-8. `None`: what the sandbox allows.
    pub max_bytes: Option<u64>,
}

/// Limits on started processes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase", deny_unknown_fields)]
pub struct ProcessPolicy {
    /// The most processes that may run at once in a sandbox, whoever started them; 4.
    pub max_processes: usize,
    /// The most bytes of each stream of a log that a call may ask for; 65,536, at most 1,048,576.
    pub max_log_bytes: u64,
    /// The time that a port is waited for when the call does not say, in milliseconds. `None`: 30,000, which is refused
    /// where `max_wait_timeout_ms` is less.
    pub default_wait_timeout_ms: Option<u64>,
    /// The longest wait that a call may ask for, in milliseconds; 300,000, which is also the most.
    pub max_wait_timeout_ms: u64,
    /// The time that a process has to end once it was asked to, in milliseconds; 5,000.
    pub stop_grace_period_ms: u64,
}

impl Default for ProcessPolicy {
    fn default() -> Self {
        Self {
            max_processes: 4,
            max_log_bytes: 65_536,
            default_wait_timeout_ms: None,
            max_wait_timeout_ms: MAX_WAIT_MS,
            stop_grace_period_ms: 5_000,
        }
    }
}

impl WorkspaceToolsOptions {
    /// The tools there are, in the order in which a model is shown them, each once.
    pub(super) fn tools(&self) -> Vec<WorkspaceTool> {
        let asked = self.allow.as_ref().or(self.include.as_ref());
        let asked = asked.map_or(&WorkspaceTool::DEFAULT[..], Vec::as_slice);
        WorkspaceTool::ALL.into_iter().filter(|tool| asked.contains(tool)).collect()
    }

    /// Refuses what contradicts itself, in the policies of the tools there are.
    pub(super) fn check(&self) -> Result<()> {
        let tools = self.tools();
        if tools.contains(&WorkspaceTool::ReadFile) {
            self.read_file.check()?;
        }
        if tools.iter().any(|tool| WorkspaceTool::UNDER_PROCESS_POLICY.contains(tool)) {
            self.process.check()?;
        }
        self.check_ports()
    }

    fn check_ports(&self) -> Result<()> {
        for (index, port) in self.ports.iter().enumerate() {
            if *port == 0 {
                return Err(Error::invalid("ports", "has 0; a port is from 1 to 65535"));
            }
            if self.ports[..index].contains(port) {
                return Err(Error::invalid("ports", format!("has {port} twice")));
            }
        }
        Ok(())
    }
}

impl ReadFilePolicy {
    fn check(&self) -> Result<()> {
        let Self { default_line_count: default, max_line_count: most, max_bytes } = *self;
        ensure(default > 0, || "File defaultLineCount must be a positive integer.".to_owned())?;
        ensure((1..=MAX_LINES).contains(&most), || {
            format!("File maxLineCount must be a positive integer no greater than {MAX_LINES}.")
        })?;
        ensure(default <= most, || {
            format!("File defaultLineCount exceeds maxLineCount ({default} > {most}).")
        })?;
        ensure((1..=MAX_BYTES).contains(&max_bytes), || {
            format!("File maxBytes must be a positive integer no greater than {MAX_BYTES}.")
        })
    }
}

impl ProcessPolicy {
    fn check(&self) -> Result<()> {
        let most = self.max_wait_timeout_ms;
        ensure(self.max_log_bytes <= MAX_BYTES, || {
            format!("Process maxLogBytes must be an integer from 0 to {MAX_BYTES}.")
        })?;
        ensure((1..=MAX_WAIT_MS).contains(&most), || {
            format!("Process maxWaitTimeoutMs must be an integer from 1 to {MAX_WAIT_MS}.")
        })?;
        ensure(self.default_wait_timeout_ms.is_none_or(|default| (1..=most).contains(&default)), || {
            "Process defaultWaitTimeoutMs must be positive and no greater than maxWaitTimeoutMs.".to_owned()
        })
    }
}

/// Refuses options in Anvia's words where they do not hold.
fn ensure(holds: bool, message: impl FnOnce() -> String) -> Result<()> {
    if holds { Ok(()) } else { Err(Error::new(ErrorKind::Invalid, message())) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use WorkspaceTool as T;

    #[test]
    fn four_tools_are_there_unless_others_are_asked_for() {
        assert_eq!(WorkspaceToolsOptions::default().tools(), WorkspaceTool::DEFAULT);
    }

    #[test]
    fn allow_goes_before_include_and_the_order_is_fixed() {
        let include = Some(vec![T::WaitForPort, T::ReadFile, T::ReadFile]);
        let options = WorkspaceToolsOptions { include: include.clone(), ..WorkspaceToolsOptions::default() };
        assert_eq!(options.tools(), [T::ReadFile, T::WaitForPort]);
        let allow = Some(vec![T::ListFiles, T::ExecCommand]);
        let options = WorkspaceToolsOptions { include, allow, ..WorkspaceToolsOptions::default() };
        assert_eq!(options.tools(), [T::ExecCommand, T::ListFiles]);
    }

    #[test]
    fn a_policy_that_contradicts_itself_is_refused() {
        let refused = [
            r#"{"readFile": {"defaultLineCount": 3000}}"#,
            r#"{"readFile": {"maxLineCount": 10001}}"#,
            r#"{"readFile": {"maxBytes": 1048577}}"#,
            r#"{"allow": ["stop_process"], "process": {"maxLogBytes": 1048577}}"#,
            r#"{"allow": ["wait_for_port"], "process": {"defaultWaitTimeoutMs": 2, "maxWaitTimeoutMs": 1}}"#,
            r#"{"allow": ["wait_for_port"], "process": {"maxWaitTimeoutMs": 300001}}"#,
            r#"{"ports": [0]}"#,
            r#"{"ports": [80, 81, 80]}"#,
        ];
        for options in refused {
            let read: WorkspaceToolsOptions = serde_json::from_str(options).unwrap();
            assert_eq!(read.check().unwrap_err().kind(), ErrorKind::Invalid, "{options}");
        }
        let unused =
            r#"{"allow": ["list_files"], "readFile": {"maxBytes": 0}, "process": {"maxWaitTimeoutMs": 0}}"#;
        let read: WorkspaceToolsOptions = serde_json::from_str(unused).unwrap();
        assert!(read.check().is_ok() && WorkspaceToolsOptions::default().check().is_ok());
    }

    #[test]
    fn every_tool_is_read_by_its_name() {
        let names: Vec<String> =
            WorkspaceTool::ALL.iter().map(|tool| serde_json::to_string(tool).unwrap()).collect();
        assert_eq!(names[0], "\"exec_command\"");
        assert_eq!(names[7], "\"read_process_logs\"");
    }
}
