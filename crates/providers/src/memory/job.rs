//! A command: the interpreter on a thread of its own, where its output goes, and its end.

use std::collections::BTreeMap;
use std::future::{Future, poll_fn};
use std::path::Path;
use std::pin::pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::task::Poll;
use std::time::{Duration, Instant};

use async_trait::async_trait;
use bashkit::Bash;
use bytes::Bytes;
use eyot::{Command, Error, ExitStatus, LogStream, Result, Signal};
use tokio_util::sync::CancellationToken;

use super::braced_words::keep_words;
use super::cancels::CancelFlags;
use super::end_mark::{EndMark, Mark};
use super::files::MemoryFiles;
use super::input::JobInput;
use super::interpreters::{Interpreters, MAX_LIVE_BYTES, NO_TIMEOUT};
use super::known_programs::KnownPrograms;
use super::not_found::without_guess;
use super::plain::{LineKind, line_kind};
use super::prepared::PreparedShells;
use super::programs;
use super::script_text::{failure, quoted};
use super::shell_factory::ShellFactory;
use super::tasks::{RunningTask, Tasks};
use super::threads::{self, SpareWork};

/// A thread that works on for so long after a kill is stuck.
const STUCK_AFTER: Duration = Duration::from_secs(1);
/// The most of a command that is shown in lists.
const MAX_SHOWN_BYTES: usize = 1024;

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

/// Everything that a command needs.
pub(super) struct ShellJob {
    pub factory: ShellFactory,
    pub programs: Arc<KnownPrograms>,
    pub prepared: Arc<PreparedShells>,
    pub files: MemoryFiles,
    pub tasks: Arc<Tasks>,
    pub command: Command,
    pub cwd: String,
    pub env: BTreeMap<String, String>,
    pub host_name: String,
    pub input: Option<Arc<JobInput>>,
}

/// A command that was started.
pub(super) struct RunningJob {
    sink: Arc<dyn JobSink>,
    tasks: Arc<Tasks>,
    end: OnceLock<JobEnd>,
    stop: CancellationToken,
    cancels: Arc<CancelFlags>,
    pub input: Option<Arc<JobInput>>,
    task: Mutex<Option<RunningTask>>,
    pub pid: u32,
    /// The time at which it was told to end.
    stopped: OnceLock<Instant>,
    /// The thread has ended.
    is_over: AtomicBool,
}

impl RunningJob {
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

    fn finish(&self, end: JobEnd) {
        if self.end.set(end).is_ok() {
            drop(self.task.lock().unwrap_or_else(PoisonError::into_inner).take());
            self.sink.end(end);
        }
    }

    async fn take(&self, stream: LogStream, bytes: Bytes) {
        if !self.has_ended() && !bytes.is_empty() {
            tokio::select! {
                () = self.stop.cancelled() => {}
                () = self.sink.take(stream, bytes) => {}
            }
        }
    }
}

impl ShellJob {
    /// The command as the list of processes shows it.
    pub(super) fn argv(&self) -> Vec<String> {
        match &self.command {
            Command::Shell(line) => ["bash", "-c", line].map(str::to_owned).to_vec(),
            Command::Argv(argv) => argv.clone(),
        }
    }

    /// The command as text, perhaps cut.
    pub(super) fn shown(&self) -> String {
        let mut text = match &self.command {
            Command::Shell(line) => line.clone(),
            Command::Argv(argv) => argv.join(" "),
        };
        text.truncate(text.floor_char_boundary(MAX_SHOWN_BYTES));
        text
    }

    /// Keeps the quoted words that the interpreter would lose.
    fn keep_words(&mut self) {
        if let Command::Shell(line) = &mut self.command {
            keep_words(line);
        }
    }

    /// Returns the command, if it is a shell line without input.
    fn line(&self) -> Option<&String> {
        match (&self.command, &self.input) {
            (Command::Shell(line), None) => Some(line),
            _ => None,
        }
    }

    /// Returns the script of a command that is not a plain line. A mark follows the command, because
    /// whatever the command leaves behind runs on after that.
    fn script(&self) -> String {
        let words = |argv: &[String]| argv.iter().map(|word| quoted(word)).collect::<Vec<_>>().join(" ");
        let end = format!("{} $?; {}", programs::END, programs::MARK);
        match (&self.command, &self.input) {
            (_, None) => format!("{} </dev/null; {end}", words(&self.argv())),
            (Command::Argv(argv), Some(_)) => format!("{} | {{ {}; {end}; }}", programs::INPUT, words(argv)),
            // A shell that is called reads all of its input before it begins; one that is forked does
            // not.
            (Command::Shell(line), Some(_)) => format!("{} | {{ ( {line}\n); {end}; }}", programs::INPUT),
        }
    }

    /// Returns the interpreter for the command, and its script.
    fn shell(&self, running: &RunningJob, mark: &Arc<EndMark>) -> (Bash, String) {
        let shells = self.interpreters(running);
        let cwd = Path::new(&self.cwd);
        let mut script = None;
        if let Some(line) = self.line() {
            let prepared = self.prepared.take();
            let kind = line_kind(&prepared.bash, line, &self.programs);
            if kind == LineKind::Plain {
                return (prepared.give(shells, cwd, self.env.iter()), line.clone());
            }
            self.prepared.put_back(prepared);
            script = (kind == LineKind::Telling).then(|| line.clone());
        }
        let builder = shells.builder(cwd, self.env.iter(), MAX_LIVE_BYTES, NO_TIMEOUT);
        let builder = programs::install(builder, &programs::children_of(shells).into(), None);
        let builder = programs::install_frame(builder, self.input.as_ref(), mark, &running.stop);
        (builder.build(), script.unwrap_or_else(|| self.script()))
    }

    fn interpreters(&self, running: &RunningJob) -> Interpreters {
        Interpreters::new(
            self.factory.clone(),
            self.programs.clone(),
            self.files.clone(),
            self.tasks.clone(),
            running.pid,
            self.host_name.clone(),
            running.cancels.clone(),
        )
    }

    /// Starts it.
    ///
    /// # Errors
    /// The system starts no thread.
    pub(super) fn start(mut self, sink: Arc<dyn JobSink>) -> Result<Arc<RunningJob>> {
        let task = self.tasks.add(self.argv(), None);
        let running = Arc::new(RunningJob {
            sink,
            tasks: self.tasks.clone(),
            end: OnceLock::new(),
            stop: CancellationToken::new(),
            cancels: Arc::default(),
            input: self.input.clone(),
            pid: task.pid,
            stopped: OnceLock::new(),
            is_over: AtomicBool::new(false),
            task: Mutex::new(Some(task)),
        });
        let its_own = running.clone();
        let started = threads::start(Box::new(move || {
            self.keep_words();
            run(&self, &its_own);
            its_own.is_over.store(true, Ordering::Relaxed);
            its_own.tasks.forget(its_own.pid);
            if its_own.stopped.get().is_some() {
                return None;
            }
            let prepared = self.prepared.clone();
            prepared.keep_two();
            Some(Box::new(move || prepared.refill()) as SpareWork)
        }));
        started.map_err(|error| Error::host("start a thread for the interpreter", error))?;
        Ok(running)
    }
}

/// Runs a command on this thread.
fn run(job: &ShellJob, running: &RunningJob) {
    let runtime = match job.prepared.take_runtime() {
        Ok(runtime) => runtime,
        Err(error) => {
            tracing::warn!(%error, "the interpreter has no runtime");
            return running.kill();
        }
    };
    runtime.block_on(async {
        tokio::select! {
            biased;
            () = running.stop.cancelled() => {}
            () = interpret(job, running) => {}
        }
    });
    if let Some(input) = &job.input {
        input.close();
    }
}

async fn interpret(job: &ShellJob, running: &RunningJob) {
    let mark = Arc::new(EndMark::new());
    let (mut bash, script) = job.shell(running, &mark);
    running.cancels.add(&bash.cancellation_token());
    let marks = [mark.stdout(), mark.stderr()].map(|mark| Arc::new(Mutex::new(mark)));
    let send = |stream: LogStream, mark: &Arc<Mutex<Mark>>| {
        let mark = mark.clone();
        move |bytes: Vec<u8>| {
            let mark = mark.clone();
            async move {
                let (before, is_mark) = mark.lock().unwrap_or_else(PoisonError::into_inner).pass(bytes);
                running.take(stream, Bytes::from(without_guess(before))).await;
                if is_mark {
                    mark.lock().unwrap_or_else(PoisonError::into_inner).set_through();
                }
                Ok(())
            }
        }
    };
    let executing = bash
        .execute(&script)
        .options(bashkit::ExecOptions::new().stdin(""))
        .stdout_fn(send(LogStream::Stdout, &marks[0]))
        .stderr_fn(send(LogStream::Stderr, &marks[1]));
    let mut executing = pin!(executing.into_future());
    // The command has ended once both marks have come through. If there is more to do then, it left
    // something behind.
    let result = poll_fn(|context| match executing.as_mut().poll(context) {
        Poll::Ready(result) => Poll::Ready(Some(result)),
        Poll::Pending if mark.is_through() => Poll::Ready(None),
        Poll::Pending => Poll::Pending,
    })
    .await;
    let status = |code: i32| ExitStatus::Exited(code & 0xff);
    for (stream, held) in [LogStream::Stdout, LogStream::Stderr].into_iter().zip(&marks) {
        let held = held.lock().unwrap_or_else(PoisonError::into_inner).take_held();
        running.take(stream, Bytes::from(without_guess(held))).await;
    }
    match result {
        None => {
            running.finish(JobEnd::Ended { status: status(mark.status().unwrap_or(0)), output_open: true });
            if let Err(error) = executing.await {
                tracing::debug!(%error, "what a command left behind in memory has ended");
            }
        }
        Some(Ok(result)) => {
            let status = status(mark.status().unwrap_or(result.exit_code));
            running.finish(JobEnd::Ended { status, output_open: false });
        }
        Some(Err(error)) => {
            let (code, text) = failure(&error);
            running.take(LogStream::Stderr, Bytes::from(format!("bash: {text}\n"))).await;
            let status = status(mark.status().unwrap_or(code));
            running.finish(JobEnd::Ended { status, output_open: false });
        }
    }
}
