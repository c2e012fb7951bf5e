//! Started processes: they survive the call, the handle and the process that asked for them.

use std::time::Duration;

use futures_util::StreamExt;
use futures_util::stream::{self, BoxStream};
use tokio::time::timeout;

use super::{KILL_CONFIRM_MS, Sandbox, StartOptions};
use crate::capabilities::Capability;
use crate::driver::ExecRequest;
use crate::error::{Error, ErrorKind, Result};
use crate::exec::{Command, Signal};
use crate::observer::ExecStartEvent;
use crate::path::ConfinedPath;
use crate::process::{Log, LogChunk, LogQuery, ProcessId, ProcessInfo};

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
        let cwd = self.exec_cwd(options.cwd.as_deref())?;
        self.start_at(command.into(), cwd, options).await
    }

    /// The same at a place that was checked.
    pub(crate) async fn start_at(
        &self,
        command: Command,
        cwd: ConfinedPath,
        options: StartOptions,
    ) -> Result<ProcessInfo> {
        self.check_processes("start")?;
        self.check_command("start", &command, options.user.as_deref())?;
        let shown = super::run::shorten(&command.to_string());
        let start =
            ExecStartEvent { sandbox: self.event().clone(), command: command.clone(), cwd: options.cwd };
        let request = ExecRequest {
            command,
            cwd,
            env: self.exec_env(&options.env)?,
            user: options.user,
            stdin: false,
            pty: None,
        };
        let info = self.driver().start(request).await.map_err(self.failed("start", shown))?;
        self.notify_start(&info, start).await?;
        Ok(info)
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

    /// Waits for the end as an observer. This does not count as activity: the sandbox may fall
    /// asleep meanwhile.
    pub async fn observe_end(&self, process: ProcessId) -> Result<ProcessInfo> {
        self.check_processes("wait")?;
        self.driver().observe_end(process).await.map_err(self.failed("wait for process", process))
    }

    /// A started process's log, to its end or as long as the process runs. `invalid` when both tails are asked for.
    pub async fn logs(&self, process: ProcessId, query: LogQuery) -> Result<Log> {
        self.check_processes("logs")?;
        if query.tail_bytes.is_some() && query.tail_lines.is_some() {
            return Err(Error::invalid("log query", "must have one of tail_bytes and tail_lines, not both"));
        }
        let log = self.driver().logs(process, query).await;
        let Log { range, chunks } = log.map_err(self.failed("read the log of process", process))?;
        let chunks = match query.limit_bytes {
            Some(limit) => limit_chunks(chunks, limit),
            None => chunks,
        };
        Ok(Log { range, chunks })
    }

    /// Sends a signal to a started process's group; `None` kills its whole tree, and returns when nothing of it is left.
    /// `timeout`: something of it still was [`KILL_CONFIRM_MS`] after that was ordered.
    pub async fn kill(&self, process: ProcessId, signal: Option<Signal>) -> Result<()> {
        self.check_processes("kill")?;
        if let Some(signal) = signal {
            signal.check()?;
            self.require(Capability::Signals, "kill", &["signal"])?;
        }
        let killing = async {
            let killed = self.driver().kill(process, signal).await;
            killed.map_err(self.failed("kill process", process))
        };
        if signal.is_some() {
            return killing.await;
        }
        timeout(Duration::from_millis(KILL_CONFIRM_MS), killing).await.map_err(|_| {
            let message = format!(
                "kill process {process} in sandbox `{}`: it is not known to be dead after {KILL_CONFIRM_MS} ms",
                self.name()
            );
            Error::new(ErrorKind::Timeout, message)
        })?
    }

    fn check_processes(&self, operation: &str) -> Result<()> {
        self.check_alive()?;
        self.require(Capability::Processes, operation, &[])
    }
}

type LogChunks = BoxStream<'static, Result<LogChunk>>;

/// The first `limit` bytes of these chunks; with the last of them the source is dropped.
fn limit_chunks(chunks: LogChunks, limit: u64) -> LogChunks {
    stream::unfold((Some(chunks), limit), async |(chunks, left)| {
        let mut chunks = chunks.filter(|_| left > 0)?;
        let mut chunk = match chunks.next().await? {
            Ok(chunk) => chunk,
            Err(error) => return Some((Err(error), (None, 0))),
        };
        let taken = left.min(chunk.data.len() as u64);
        chunk.data.truncate(taken as usize);
        let left = left - taken;
        Some((Ok(chunk), ((left > 0).then_some(chunks), left)))
    })
    .boxed()
}
