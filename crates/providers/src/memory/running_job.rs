//! A command that was started, as whoever waits for it or ends it sees it.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use async_trait::async_trait;
use bytes::Bytes;
use eyot::{ExitStatus, LogStream, Signal};
use tokio_util::sync::CancellationToken;

use super::cancels::CancelFlags;
use super::input::JobInput;
use super::tasks::{RunningTask, Tasks};

/// A thread that works on for so long after a kill is stuck.
const STUCK_AFTER: Duration = Duration::from_secs(1);

/// Where the output of a command goes.
#[async_trait]
pub(super) trait JobSink: Send + Sync + 'static {
    /// Takes output, once there is room for it.
    async fn take(&self, stream: LogStream, bytes: Bytes);

    /// Hears of the end, once.
    fn end(&self, end: JobEnd);
}

/// The end of a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum JobEnd {
    /// By itself, or by a kill.
    Ended {
        status: ExitStatus,
        /// Commands that it left behind may still write.
        output_open: bool,
    },
    /// With its sandbox.
    WithSandbox,
}

/// A command that was started.
pub(super) struct RunningJob {
    sink: Arc<dyn JobSink>,
    tasks: Arc<Tasks>,
    end: OnceLock<JobEnd>,
    pub stop: CancellationToken,
    pub cancels: Arc<CancelFlags>,
    pub input: Option<Arc<JobInput>>,
    task: Mutex<Option<RunningTask>>,
    pub pid: u32,
    /// The time at which it was told to end.
    stopped: OnceLock<Instant>,
    /// The thread has ended.
    is_over: AtomicBool,
}

impl RunningJob {
    pub(super) fn new(
        sink: Arc<dyn JobSink>,
        tasks: Arc<Tasks>,
        task: RunningTask,
        input: Option<Arc<JobInput>>,
    ) -> Self {
        Self {
            sink,
            tasks,
            end: OnceLock::new(),
            stop: CancellationToken::new(),
            cancels: Arc::default(),
            input,
            pid: task.pid,
            stopped: OnceLock::new(),
            is_over: AtomicBool::new(false),
            task: Mutex::new(Some(task)),
        }
    }

    /// Kills it. Whoever waits for its end hears of it at once.
    pub(super) fn kill(&self) {
        self.finish(JobEnd::Ended { status: ExitStatus::Signaled(Signal::KILL.0), output_open: false });
        self.stop();
    }

    /// Ends it with its sandbox.
    pub(super) fn end_with_sandbox(&self) {
        self.finish(JobEnd::WithSandbox);
        self.stop();
    }

    /// Ends its thread, with whatever the command left behind.
    pub(super) fn stop(&self) {
        self.stopped.get_or_init(Instant::now);
        if !self.is_over.load(Ordering::Relaxed) {
            self.tasks.kill(self.pid);
        }
        self.stop.cancel();
        self.cancels.set();
        if let Some(input) = &self.input {
            input.close();
        }
    }

    /// Tells whether the command has ended. What it left behind may still run.
    pub(super) fn has_ended(&self) -> bool {
        self.end.get().is_some()
    }

    /// Tells whether it was told to end a while ago, and its thread works on.
    pub(super) fn is_stuck(&self) -> bool {
        let is_late = self.stopped.get().is_some_and(|stopped| stopped.elapsed() > STUCK_AFTER);
        is_late && !self.is_over.load(Ordering::Relaxed)
    }

    /// Says that its thread has ended.
    pub(super) fn thread_ended(&self) {
        self.is_over.store(true, Ordering::Relaxed);
        self.tasks.forget(self.pid);
    }

    /// Tells whether it was told to end.
    pub(super) fn was_stopped(&self) -> bool {
        self.stopped.get().is_some()
    }

    /// Says how it has ended. Only the first end counts.
    pub(super) fn finish(&self, end: JobEnd) {
        if self.end.set(end).is_ok() {
            drop(self.task.lock().unwrap_or_else(PoisonError::into_inner).take());
            self.sink.end(end);
        }
    }

    /// Passes output on, unless the command has ended.
    pub(super) async fn take(&self, stream: LogStream, bytes: Bytes) {
        if !self.has_ended() && !bytes.is_empty() {
            tokio::select! {
                () = self.stop.cancelled() => {}
                () = self.sink.take(stream, bytes) => {}
            }
        }
    }
}

/// Kills a command whose thread panics: nobody else would end it.
pub(super) struct EndOnPanic(pub Arc<RunningJob>);

impl Drop for EndOnPanic {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.kill();
        }
    }
}
