//! A command: the interpreter on a thread of its own, and the way of its output.

use std::collections::BTreeMap;
use std::future::{IntoFuture, poll_fn};
use std::path::Path;
use std::sync::Arc;
use std::task::Poll;

use bashkit::Bash;
use bytes::Bytes;
use eyot::{Command, Error, ExitStatus, LogStream, Result};

use super::end_mark::EndMark;
use super::files::MemoryFiles;
use super::input::JobInput;
use super::interpreters::{Interpreters, MAX_LIVE_BYTES, NO_TIMEOUT};
use super::known_programs::KnownPrograms;
use super::live_stream::{LiveStream, PassOutput};
use super::odd_names::NameDecoder;
use super::plain::{LineKind, line_kind};
use super::prepared::{PreparedShells, ShellParts};
use super::programs;
use super::running_job::{EndOnPanic, JobEnd, JobSink, RunningJob};
use super::script_text::{failure, quoted};
use super::scripts::{PASS, adapt, adapt_background, lets_go_of_outputs, may_name_bytes, script_of_shell};
use super::shell_factory::ShellFactory;
use super::tasks::{Tasks, program_name};
use super::threads::{self, SpareWork};
use super::traceless::leaves_no_trace;

/// The interpreter of a command, and the script that it runs.
struct CommandShell {
    bash: Bash,
    script: String,
    /// Set if the interpreter can serve again.
    parts: Option<ShellParts>,
}

/// The most of a command that is shown in lists.
const MAX_SHOWN_BYTES: usize = 1024;

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
    /// The line as it came.
    pub whole_line: Option<String>,
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

    /// Adapts the line to the interpreter, or the script of a shell that is the whole command.
    fn adapt_line(&mut self) {
        match &mut self.command {
            Command::Shell(line) => {
                self.whole_line = Some(line.clone());
                adapt(line);
                adapt_background(line);
            }
            Command::Argv(argv) => {
                if let [shell, args @ ..] = argv.as_mut_slice()
                    && matches!(program_name(shell), "bash" | "sh")
                    && let Some(script) = script_of_shell(args)
                {
                    adapt_background(script);
                }
            }
        }
    }

    /// Returns the decoder of names that are not UTF-8, for a command that has some.
    fn name_decoder(&self) -> Option<NameDecoder> {
        let has_names = match &self.command {
            Command::Shell(line) => may_name_bytes(line),
            Command::Argv(argv) => argv.iter().any(|word| may_name_bytes(word)),
        };
        has_names.then(NameDecoder::default)
    }

    /// Tells whether what the command leaves behind has let go of its outputs.
    fn lets_go_of_outputs(&self) -> bool {
        self.whole_line.as_deref().is_some_and(lets_go_of_outputs)
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

    /// Returns the interpreter for the command.
    fn shell(&self, running: &RunningJob, mark: &Arc<EndMark>, stdout: &Arc<LiveStream>) -> CommandShell {
        let shells = self.interpreters(running);
        let cwd = Path::new(&self.cwd);
        let mut script = None;
        if let Some(line) = self.line() {
            if leaves_no_trace(line, &self.programs) {
                let (bash, parts) = self.prepared.take_for_traceless().give(shells, cwd, self.env.iter());
                return CommandShell { bash, script: line.clone(), parts: Some(parts) };
            }
            let prepared = self.prepared.take();
            let kind = line_kind(&prepared.bash, line, &self.programs);
            if kind == LineKind::Plain {
                let (bash, _) = prepared.give(shells, cwd, self.env.iter());
                return CommandShell { bash, script: line.clone(), parts: None };
            }
            self.prepared.put_back(prepared);
            script = (kind == LineKind::Telling).then(|| line.clone());
        }
        let builder = shells.builder(cwd, self.env.iter(), MAX_LIVE_BYTES, NO_TIMEOUT);
        let builder = programs::install(builder, &programs::children_of(shells).into(), None);
        let builder = programs::install_frame(builder, self.input.as_ref(), mark, &running.stop);
        let builder = builder.command(PASS, PassOutput(stdout.clone()));
        CommandShell { bash: builder.build(), script: script.unwrap_or_else(|| self.script()), parts: None }
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
        let running = Arc::new(RunningJob::new(sink, self.tasks.clone(), task, self.input.clone()));
        let its_own = running.clone();
        let started = threads::start(Box::new(move || {
            let _end = EndOnPanic(its_own.clone());
            self.adapt_line();
            run(&self, &its_own);
            its_own.thread_ended();
            if its_own.was_stopped() {
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
fn run(job: &ShellJob, running: &Arc<RunningJob>) {
    let runtime = match job.prepared.take_runtime() {
        Ok(runtime) => runtime,
        Err(error) => {
            tracing::warn!(%error, "the interpreter has no runtime");
            return running.kill();
        }
    };
    let traceless = runtime.block_on(async {
        tokio::select! {
            biased;
            () = running.stop.cancelled() => None,
            traceless = interpret(job, running) => traceless,
        }
    });
    if let Some((bash, parts)) = traceless {
        // Whoever kills the command from now on must not hit the next one.
        running.cancels.forget();
        job.prepared.take_back(bash, parts);
        job.prepared.take_runtime_back(runtime);
    }
    if let Some(input) = &job.input {
        input.close();
    }
}

/// Runs a command in its interpreter. Returns the interpreter if it can serve again.
async fn interpret(job: &ShellJob, running: &Arc<RunningJob>) -> Option<(Bash, ShellParts)> {
    let mark = Arc::new(EndMark::new());
    let [stdout, stderr] = [(LogStream::Stdout, mark.stdout()), (LogStream::Stderr, mark.stderr())]
        .map(|(stream, mark)| Arc::new(LiveStream::new(running.clone(), stream, mark, job.name_decoder())));
    let CommandShell { mut bash, script, parts } = job.shell(running, &mark, &stdout);
    running.cancels.add(&bash.cancellation_token());
    let sending = |stream: &Arc<LiveStream>| {
        let stream = stream.clone();
        move |bytes: Vec<u8>| {
            let stream = stream.clone();
            async move {
                stream.pass(bytes).await;
                Ok(())
            }
        }
    };
    let executing = bash
        .execute(&script)
        .options(bashkit::ExecOptions::new().stdin(""))
        .stdout_fn(sending(&stdout))
        .stderr_fn(sending(&stderr));
    let mut executing = executing.into_future();
    // The command has ended once both marks have come through. If there is more to do then, it left
    // something behind.
    let result = poll_fn(|context| match executing.as_mut().poll(context) {
        Poll::Ready(result) => Poll::Ready(Some(result)),
        Poll::Pending if mark.is_through() => Poll::Ready(None),
        Poll::Pending => Poll::Pending,
    })
    .await;
    let has_ended = matches!(result, Some(Ok(_)));
    let status = |code: i32| ExitStatus::Exited(code & 0xff);
    stdout.finish().await;
    stderr.finish().await;
    match result {
        None => {
            running.finish(JobEnd::Ended {
                status: status(mark.status().unwrap_or(0)),
                output_open: !job.lets_go_of_outputs(),
            });
            if let Err(error) = executing.as_mut().await {
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
    drop(executing);
    parts.filter(|_| has_ended).map(|parts| (bash, parts))
}
