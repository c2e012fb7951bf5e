//! The output of a command that somebody reads as it comes.

use std::sync::Arc;

use async_trait::async_trait;
use bytes::Bytes;
use eyot::{
    Error, Execution, ExecutionControl, ExecutionEvent, LogStream, PtySize, Result,
    SandboxOperationUnsupported, Signal,
};
use futures_util::StreamExt;
use tokio::sync::{mpsc, watch};

use super::NAME;
use super::activity::Busy;
use super::input::{JobInput, JobInputWriter};
use super::job::ShellJob;
use super::running_job::{JobEnd, JobSink, RunningJob};

/// The pieces of output that wait for their reader.
const WAITING_PIECES: usize = 16;

struct JobReader {
    pieces: mpsc::Sender<ExecutionEvent>,
    end: watch::Sender<Option<JobEnd>>,
}

#[async_trait]
impl JobSink for JobReader {
    async fn take(&self, stream: LogStream, bytes: Bytes) {
        let event = match stream {
            LogStream::Stdout => ExecutionEvent::Stdout(bytes),
            LogStream::Stderr => ExecutionEvent::Stderr(bytes),
        };
        if self.pieces.send(event).await.is_err() {
            tracing::trace!("output of a command comes after its reader has gone");
        }
    }

    fn end(&self, end: JobEnd) {
        self.end.send_replace(Some(end));
    }
}

/// The output as it comes, and the end.
struct JobOutput {
    pieces: mpsc::Receiver<ExecutionEvent>,
    end: watch::Receiver<Option<JobEnd>>,
    job: Arc<RunningJob>,
    gone: Arc<dyn Fn() -> Error + Send + Sync>,
    busy: Option<Busy>,
    is_over: bool,
}

impl Drop for JobOutput {
    fn drop(&mut self) {
        // What a command that has ended left behind runs on.
        if !self.job.has_ended() {
            self.job.kill();
        }
    }
}

impl JobOutput {
    async fn next(&mut self) -> Option<Result<ExecutionEvent>> {
        if self.is_over {
            return None;
        }
        let end = tokio::select! {
            biased;
            Some(event) = self.pieces.recv() => return Some(Ok(event)),
            end = self.end.wait_for(Option::is_some) => end.ok().and_then(|end| *end),
        };
        // Something may have been written between the two looks.
        if let Ok(event) = self.pieces.try_recv() {
            return Some(Ok(event));
        }
        self.is_over = true;
        self.busy = None;
        Some(match end {
            Some(JobEnd::Ended { status, output_open }) => Ok(ExecutionEvent::Exit { status, output_open }),
            Some(JobEnd::WithSandbox) | None => Err((self.gone)()),
        })
    }
}

/// Starts a command for a reader. `gone` is what the reader is told if the sandbox ends first.
pub(super) fn execute(
    job: ShellJob,
    busy: Busy,
    gone: Arc<dyn Fn() -> Error + Send + Sync>,
    register: impl FnOnce(&Arc<RunningJob>) -> Result<()>,
) -> Result<Execution> {
    let input = job.input.clone();
    let (pieces, arrived) = mpsc::channel(WAITING_PIECES);
    let (end, ended) = watch::channel(None);
    let job = job.start(Arc::new(JobReader { pieces, end }))?;
    let output =
        JobOutput { pieces: arrived, end: ended, job: job.clone(), gone, busy: Some(busy), is_over: false };
    register(&job)?;
    let events = futures_util::stream::unfold(output, |mut output| async move {
        let event = output.next().await?;
        Some((event, output))
    });
    let input =
        input.map(|input: Arc<JobInput>| Box::new(JobInputWriter(input)) as Box<dyn eyot::ExecutionInput>);
    Ok(Execution { events: events.boxed(), input, control: Arc::new(JobControl(job)) })
}

struct JobControl(Arc<RunningJob>);

#[async_trait]
impl ExecutionControl for JobControl {
    async fn kill(&self) -> Result<()> {
        self.0.kill();
        Ok(())
    }

    async fn signal(&self, signal: Signal) -> Result<()> {
        signalled(&self.0, signal)
    }

    async fn resize(&self, _: PtySize) -> Result<()> {
        Err(SandboxOperationUnsupported::new("resize", NAME, &[]).into())
    }
}

/// Kills a command; there are no other signals.
pub(super) fn signalled(job: &RunningJob, signal: Signal) -> Result<()> {
    if signal == Signal::KILL {
        job.kill();
        return Ok(());
    }
    Err(SandboxOperationUnsupported::new("signal", NAME, &[]).into())
}
