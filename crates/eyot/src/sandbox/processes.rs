//! Started processes: they survive the call, the handle and the process that asked for them.

use std::time::Duration;

use bytes::Bytes;
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
use crate::process::{Log, LogChunk, LogQuery, MAX_STDIN_BYTES, ProcessId, ProcessInfo, StartTerms};

impl Sandbox {
    /// Starts a process that outlives the call. Its output is kept in a ring. Refused for the same reasons as a command,
    /// and with `invalid` when its first input is longer than [`MAX_STDIN_BYTES`].
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
        check_stdin(&options.stdin)?;
        if options.pty.is_some() {
            self.require(Capability::Pty, "start", &["pty"])?;
        }
        let start =
            ExecStartEvent { sandbox: self.event().clone(), command: command.clone(), cwd: options.cwd };
        let request = ExecRequest {
            command,
            cwd,
            env: self.exec_env(&options.env)?,
            user: options.user,
            stdin: options.stdin_follows || !options.stdin.is_empty(),
            pty: options.pty,
        };
        let terms = StartTerms {
            stdin: options.stdin,
            stdin_follows: options.stdin_follows,
            timeout_ms: options.timeout_ms,
        };
        let info = self.driver().start(request, terms).await.map_err(self.failed("start", shown))?;
        self.notify_start(&info, start).await?;
        Ok(info)
    }

    /// Writes to a process that was started with `stdin_follows`; `ends`: end of file comes behind it. Returns before it is
    /// read. `invalid`: more than [`MAX_STDIN_BYTES`]; `conflict`: it takes no more input, or has 256 KiB still to read.
    pub async fn write_stdin(
        &self,
        process: ProcessId,
        data: impl Into<Bytes> + Send,
        ends: bool,
    ) -> Result<()> {
        self.check_processes("write_stdin")?;
        let data = data.into();
        check_stdin(&data)?;
        let written = self.driver().write_stdin(process, data, ends).await;
        written.map_err(self.failed("write to process", process))
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

fn check_stdin(stdin: &Bytes) -> Result<()> {
    if stdin.len() <= MAX_STDIN_BYTES {
        return Ok(());
    }
    let error = Error::invalid("stdin", format!("must have at most {MAX_STDIN_BYTES} bytes at once"));
    Err(error.with_hint("write the rest later, or write a file and redirect it: `program < file`"))
}
