//! Started processes, as an observer hears of them: the start once it is confirmed, and the end
//! when it comes, as long as this process lives. Both are observed without counting as activity of
//! the sandbox.

use std::sync::Arc;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use futures_util::StreamExt;

use super::Sandbox;
use crate::driver::SandboxDriver;
use crate::error::{Error, ErrorKind, Result};
use crate::exec::ExecResult;
use crate::observer::{ExecEndEvent, ExecStartEvent, Observer};
use crate::process::{LogQuery, LogStream, ProcessId, ProcessInfo};

/// The most that is told of each stream of a process that has ended: its last bytes.
const MAX_TAIL_BYTES: u64 = 64 << 10;
/// The number of times that the end of a process is waited for, where the guest stops to answer.
const MOST_TRIES: usize = 5;
/// The pause between two of them.
const PAUSE: Duration = Duration::from_secs(1);

impl Sandbox {
    /// A process was started. An observer's error ends it: what can't be recorded does not run.
    pub(super) async fn notify_start(&self, info: &ProcessInfo, start: ExecStartEvent) -> Result<()> {
        let Some(observer) = self.observer() else { return Ok(()) };
        if let Err(error) = observer.exec_started(&start).await {
            if let Err(error) = self.driver().kill(info.id, None).await {
                tracing::warn!(%error, process = %info.id, "end a process that an observer objected to");
            }
            return Err(error);
        }
        let (driver, observer) = (Arc::clone(self.driver()), Arc::clone(observer));
        let process = info.id;
        tokio::spawn(async move {
            if let Err(error) = notify_end(driver.as_ref(), observer.as_ref(), process, start).await {
                // The sandbox was destroyed, or sleeps; that is an event of its own.
                tracing::debug!(%error, %process, "nobody will hear of a started process's end");
            }
        });
        Ok(())
    }
}

async fn notify_end(
    driver: &dyn SandboxDriver,
    observer: &dyn Observer,
    process: ProcessId,
    start: ExecStartEvent,
) -> Result<()> {
    let ended = end_of(driver, process).await?;
    let running = || Error::new(ErrorKind::Internal, "a process that was waited for runs on");
    let outcome = ended.outcome().ok_or_else(running)?;
    let (stdout, stdout_bytes) = stream_tail(driver, process, LogStream::Stdout).await?;
    let (stderr, stderr_bytes) = stream_tail(driver, process, LogStream::Stderr).await?;
    let lived = ended.ended_ms.unwrap_or(ended.started_ms).saturating_sub(ended.started_ms);
    let result = ExecResult {
        outcome,
        stdout,
        stderr,
        stdout_bytes,
        stderr_bytes,
        duration_ms: u64::try_from(lived).unwrap_or(0),
        timeout_ms: None,
        may_still_be_running: false,
        output_open: false,
    };
    observer.exec_ended(&ExecEndEvent { start, result }).await
}

/// Waits for the end of a process. A guest that does not answer for a while may answer later; one that sleeps or is gone
/// has ended its processes, which is an event of its own.
async fn end_of(driver: &dyn SandboxDriver, process: ProcessId) -> Result<ProcessInfo> {
    let mut tries_left = MOST_TRIES;
    loop {
        tries_left -= 1;
        match driver.observe_end(process).await {
            Err(error) if is_passing(&error) && tries_left > 0 => tokio::time::sleep(PAUSE).await,
            ended => return ended,
        }
    }
}

fn is_passing(error: &Error) -> bool {
    error.kind() == ErrorKind::Unavailable && !error.is_sleeping()
}

/// The last bytes of a stream, and how many there were in all.
async fn stream_tail(
    driver: &dyn SandboxDriver,
    process: ProcessId,
    stream: LogStream,
) -> Result<(Bytes, u64)> {
    let query = LogQuery { stream: Some(stream), tail_bytes: Some(MAX_TAIL_BYTES), ..LogQuery::default() };
    let mut log = driver.logs(process, query).await?;
    let total_bytes = log.range.total_bytes;
    let mut kept = BytesMut::new();
    while let Some(chunk) = log.next().await {
        kept.extend_from_slice(&chunk?.data);
    }
    Ok((kept.freeze(), total_bytes))
}
