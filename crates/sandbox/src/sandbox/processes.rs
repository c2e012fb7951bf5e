//! Started processes: they survive the call, the handle and the process that asked for them.

use futures_util::stream::BoxStream;

use super::{Sandbox, StartOptions};
use crate::capabilities::Capability;
use crate::driver::ExecRequest;
use crate::error::Result;
use crate::exec::{Command, Signal};
use crate::process::{LogChunk, LogQuery, ProcessId, ProcessInfo};

impl Sandbox {
    /// Starts a process that outlives the call. It reads end of file, and its output is kept in a ring. Refused for the
    /// same reasons as a command.
    #[doc(alias = "startProcess")]
    pub async fn start(
        &self,
        command: impl Into<Command> + Send,
        options: StartOptions,
    ) -> Result<ProcessInfo> {
        self.check_processes("start")?;
        let command = command.into();
        self.check_command("start", &command, options.user.as_deref())?;
        let shown = super::run::shorten(&command.to_string());
        let request = ExecRequest {
            command,
            cwd: self.exec_cwd(options.cwd.as_deref())?,
            env: self.exec_env(&options.env)?,
            user: options.user,
            stdin: false,
            pty: None,
        };
        self.driver().start(request).await.map_err(self.failed("start", shown))
    }

    /// Every started process that is still known, oldest first.
    pub async fn processes(&self) -> Result<Vec<ProcessInfo>> {
        self.check_processes("processes")?;
        self.driver().processes().await
    }

    /// Waits until a started process has ended; `not_found` if there is none.
    pub async fn wait(&self, process: ProcessId) -> Result<ProcessInfo> {
        self.check_processes("wait")?;
        self.driver().wait(process).await.map_err(self.failed("wait for process", process))
    }

    /// A started process's log, to its end or as long as the process runs.
    pub async fn logs(
        &self,
        process: ProcessId,
        query: LogQuery,
    ) -> Result<BoxStream<'static, Result<LogChunk>>> {
        self.check_processes("logs")?;
        self.driver().logs(process, query).await.map_err(self.failed("read the log of process", process))
    }

    /// Sends a signal to a started process's group; `None` kills its whole tree.
    pub async fn kill(&self, process: ProcessId, signal: Option<Signal>) -> Result<()> {
        self.check_processes("kill")?;
        if let Some(signal) = signal {
            signal.check()?;
            self.require(Capability::Signals, "kill", &["signal"])?;
        }
        self.driver().kill(process, signal).await.map_err(self.failed("kill process", process))
    }

    fn check_processes(&self, operation: &str) -> Result<()> {
        self.check_alive()?;
        self.require(Capability::Processes, operation, &[])
    }
}
