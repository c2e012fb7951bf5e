//! Commands as Anvia has them: a program and its arguments, a result with eight fields, a program that is missing as
//! the exit code that a shell would give.

use std::collections::BTreeMap;
use std::fmt;

use bytes::Bytes;
use futures_util::stream::BoxStream;
use futures_util::{StreamExt, stream};
use serde::{Deserialize, Serialize};
use tokio_util::sync::CancellationToken;

use super::Workspace;
use super::text::TextDecoder;
use crate::error::{Error, ErrorKind, Result};
use crate::exec::{Command, ExecEvent, ExecOptions, ExecResult, ExecStream, FlatResult, Stdin};
use crate::path::ConfinedPath;
use crate::process::LogStream;

/// The deadline of a command when neither the call nor the spec names one, in milliseconds.
pub const DEFAULT_TIMEOUT_MS: u64 = 30_000;

/// Gets each piece of output as it arrives, also what is beyond the cap.
pub type OutputCallback = Box<dyn FnMut(&Bytes) + Send>;

/// A program to run in a workspace. Everything but `command` has a default.
#[derive(Default)]
#[doc(alias = "SandboxExecOptions")]
pub struct WorkspaceExec {
    /// The program, searched for in `PATH` if it has no slash. No shell.
    pub command: String,
    /// The arguments.
    pub args: Vec<String>,
    /// Working directory, relative to the workspace.
    pub cwd: Option<String>,
    /// Variables layered over the sandbox's, for this call alone.
    pub env: BTreeMap<String, String>,
    /// The deadline in milliseconds. `None`: the spec's, and without that [`DEFAULT_TIMEOUT_MS`].
    pub timeout_ms: Option<u64>,
    /// The standard input; by default end of file at once.
    pub input: Stdin,
    /// Ends the command when it is cancelled.
    #[doc(alias = "signal")]
    pub cancel: Option<CancellationToken>,
    /// Gets standard output. Not called by [`Workspace::exec_stream`], whose events say the same.
    pub on_stdout: Option<OutputCallback>,
    /// Gets standard error.
    pub on_stderr: Option<OutputCallback>,
}

impl fmt::Debug for WorkspaceExec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut debug = f.debug_struct("WorkspaceExec");
        debug.field("command", &self.command).field("args", &self.args).field("cwd", &self.cwd);
        debug.field("timeout_ms", &self.timeout_ms).finish_non_exhaustive()
    }
}

/// The result of a command.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[doc(alias = "SandboxExecResult")]
pub struct WorkspaceExecResult {
    /// Standard output as text, up to the cap.
    pub stdout: String,
    /// Standard error as text, up to the cap, with the deadline's sentence.
    pub stderr: String,
    /// The command's own code; 124 on a deadline, 130 if it was aborted, 128 + n on a signal, 126 if it may not be run or
    /// its working directory is missing, 127 if it is missing.
    pub exit_code: i32,
    /// From the start to the outcome, in milliseconds.
    pub duration_ms: u64,
    /// The deadline passed.
    pub timed_out: bool,
    /// The caller cancelled.
    pub aborted: bool,
    /// Standard output was longer than what was kept.
    pub stdout_truncated: bool,
    /// Standard error was longer than what was kept.
    pub stderr_truncated: bool,
}

impl From<FlatResult> for WorkspaceExecResult {
    fn from(flat: FlatResult) -> Self {
        Self {
            stdout: flat.stdout,
            stderr: flat.stderr,
            exit_code: flat.exit_code,
            duration_ms: flat.duration_ms,
            timed_out: flat.timed_out,
            aborted: flat.aborted,
            stdout_truncated: flat.stdout_truncated,
            stderr_truncated: flat.stderr_truncated,
        }
    }
}

impl From<ExecResult> for WorkspaceExecResult {
    fn from(result: ExecResult) -> Self {
        result.flatten().into()
    }
}

/// An event of a running command, in order; the exit comes exactly once, last.
#[derive(Debug, Clone, PartialEq, Eq)]
#[doc(alias = "SandboxExecStreamEvent")]
pub enum WorkspaceExecEvent {
    /// Standard output.
    Stdout {
        /// The bytes.
        chunk: Bytes,
        /// The same as text. A character that two chunks share comes with the second.
        text: String,
    },
    /// Standard error.
    Stderr {
        /// The bytes.
        chunk: Bytes,
        /// The same as text. A character that two chunks share comes with the second.
        text: String,
    },
    /// It ended.
    Exit {
        /// The result.
        result: WorkspaceExecResult,
    },
}

/// A running command's events. Dropping it before the exit kills the command's process tree.
pub type WorkspaceExecStream = BoxStream<'static, Result<WorkspaceExecEvent>>;

impl Workspace {
    /// Runs a program to its end. What it exits with is a result, and so is a program that is missing (127) or may not
    /// be run (126). An error means that the request is wrong or the sandbox could not do its part.
    pub async fn exec(&self, exec: WorkspaceExec) -> Result<WorkspaceExecResult> {
        let (request, callbacks) = self.request(exec)?;
        if callbacks.is_empty() {
            let Request { command, cwd, options } = request;
            return match self.sandbox.exec_at(command, cwd.clone(), options).await {
                Ok(result) => Ok(result.into()),
                Err(error) => self.as_a_shell_would(&cwd, error).await,
            };
        }
        match self.launch(request).await? {
            Ok(stream) => callbacks.drive(stream).await,
            Err(result) => Ok(result),
        }
    }

    /// Runs a program and hands out its events as they come: every byte, then exactly one exit with the same result as
    /// [`Workspace::exec`].
    pub async fn exec_stream(&self, exec: WorkspaceExec) -> Result<WorkspaceExecStream> {
        let (request, callbacks) = self.request(exec)?;
        drop(callbacks);
        Ok(match self.launch(request).await? {
            Ok(events) => stream::unfold(Translation::new(events), Translation::next).boxed(),
            Err(result) => stream::once(async { Ok(WorkspaceExecEvent::Exit { result }) }).boxed(),
        })
    }

    /// Starts it, or says what a shell would have said instead.
    async fn launch(&self, request: Request) -> Result<Result<ExecStream, WorkspaceExecResult>> {
        let Request { command, cwd, options } = request;
        match self.sandbox.exec_stream_at(command, cwd.clone(), options).await {
            Ok(stream) => Ok(Ok(stream)),
            Err(error) => Ok(Err(self.as_a_shell_would(&cwd, error).await?)),
        }
    }

    fn request(&self, exec: WorkspaceExec) -> Result<(Request, Callbacks)> {
        self.sandbox.check_alive()?;
        if exec.command.trim().is_empty() {
            return Err(Error::new(ErrorKind::Invalid, "sandbox command cannot be empty"));
        }
        let cwd = match &exec.cwd {
            Some(path) => self.directory("exec", path)?.1,
            None => self.workdir().clone().into(),
        };
        let default = self.sandbox.info().spec.limits.timeout_ms.unwrap_or(DEFAULT_TIMEOUT_MS);
        let options = ExecOptions {
            cwd: exec.cwd,
            env: exec.env,
            stdin: exec.input,
            timeout_ms: Some(exec.timeout_ms.unwrap_or(default)),
            cancel: exec.cancel,
            ..ExecOptions::default()
        };
        let command = Command::argv(std::iter::once(exec.command).chain(exec.args));
        let callbacks = Callbacks { stdout: exec.on_stdout, stderr: exec.on_stderr };
        Ok((Request { command, cwd, options }, callbacks))
    }

    /// A program that could not be started, as the result that a shell would make of it; any other error as it is.
    async fn as_a_shell_would(&self, cwd: &ConfinedPath, error: Error) -> Result<WorkspaceExecResult> {
        let exit_code = match error.kind() {
            ErrorKind::NotFound => {
                if self.sandbox.driver().exists(cwd).await? {
                    127
                } else {
                    126
                }
            }
            ErrorKind::NotDirectory => 126,
            ErrorKind::Permission => match self.sandbox.driver().stat(cwd).await {
                Ok(_) => 126,
                // It is the working directory that leads out.
                Err(_) => return Err(error),
            },
            _ => return Err(error),
        };
        let (stdout, stderr) = (String::new(), format!("{error}\n"));
        Ok(WorkspaceExecResult {
            stdout,
            stderr,
            exit_code,
            duration_ms: 0,
            timed_out: false,
            aborted: false,
            stdout_truncated: false,
            stderr_truncated: false,
        })
    }
}

/// A command whose paths were checked.
struct Request {
    command: Command,
    cwd: ConfinedPath,
    options: ExecOptions,
}

struct Callbacks {
    stdout: Option<OutputCallback>,
    stderr: Option<OutputCallback>,
}

impl Callbacks {
    fn is_empty(&self) -> bool {
        self.stdout.is_none() && self.stderr.is_none()
    }

    async fn drive(self, stream: ExecStream) -> Result<WorkspaceExecResult> {
        let Self { mut stdout, mut stderr } = self;
        let take = |stream, piece: &Bytes| {
            let callback = match stream {
                LogStream::Stdout => &mut stdout,
                LogStream::Stderr => &mut stderr,
            };
            callback.iter_mut().for_each(|callback| callback(piece));
        };
        stream.collect(take).await.map(Into::into)
    }
}

/// The handle's events on their way to Anvia's.
struct Translation {
    events: ExecStream,
    stdout: TextDecoder,
    stderr: TextDecoder,
}

impl Translation {
    fn new(events: ExecStream) -> Self {
        Self { events, stdout: TextDecoder::default(), stderr: TextDecoder::default() }
    }

    async fn next(mut self) -> Option<(Result<WorkspaceExecEvent>, Self)> {
        let event = self.events.next().await?.map(|event| match event {
            ExecEvent::Stdout(chunk) => {
                WorkspaceExecEvent::Stdout { text: self.stdout.decode(&chunk), chunk }
            }
            ExecEvent::Stderr(chunk) => {
                WorkspaceExecEvent::Stderr { text: self.stderr.decode(&chunk), chunk }
            }
            ExecEvent::End(result) => WorkspaceExecEvent::Exit { result: result.into() },
        });
        Some((event, self))
    }
}
