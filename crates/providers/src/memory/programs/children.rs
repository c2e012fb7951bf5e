//! Commands that programs of ours start: each runs in an interpreter of its own, as a child process
//! would, over the same files. It ends with the program that started it.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicI32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use bashkit::{BashBuilder, Command, CommandContext, CommandStatus, ExecOptions};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::rewording::Rewording;
use super::streams::{ProgramInput, ProgramOutput};
use crate::memory::interpreters::{Interpreters, MemoryShare, NO_TIMEOUT};
use crate::memory::not_found::without_guess;
use crate::memory::odd_names::NameDecoder;
use crate::memory::script_text::{failure, quoted};

/// Children may have children, and so on.
const MAX_DEPTH: usize = 32;
/// The status of a program whose reader has gone.
const BROKEN_PIPE: i32 = 141;
/// The status of a program that was killed.
const KILLED: i32 = 137;
/// The command in front of a child, which hands on the input of its caller.
const PASS: &str = "__eyot_child_input";
/// The command behind it, which keeps its status.
const END: &str = "__eyot_child_end";

/// A function that installs our own programs in an interpreter, optionally without one of them.
pub(super) type InstallPrograms = fn(BashBuilder, &CommandSlot, Option<&str>) -> BashBuilder;

/// Access for programs to start children.
#[derive(Clone)]
pub(in crate::memory) struct Children {
    shells: Arc<Interpreters>,
    install: InstallPrograms,
    depth: usize,
    pub deadline: Option<Instant>,
}

/// A slot for the command of an interpreter. It is empty until the interpreter gets a command.
#[derive(Clone, Default)]
pub(in crate::memory) struct CommandSlot(Arc<Mutex<Option<Children>>>);

impl CommandSlot {
    /// Fills the slot.
    pub(in crate::memory) fn fill(&self, children: Children) {
        *lock(&self.0) = Some(children);
    }

    /// Empties the slot: the command has ended.
    pub(in crate::memory) fn empty(&self) {
        *lock(&self.0) = None;
    }

    /// Returns the children of the command.
    pub(super) fn children(&self) -> Option<Children> {
        lock(&self.0).clone()
    }
}

impl From<Children> for CommandSlot {
    fn from(children: Children) -> Self {
        Self(Arc::new(Mutex::new(Some(children))))
    }
}

impl Children {
    /// The children of a command itself.
    pub(super) fn of_command(shells: Interpreters, install: InstallPrograms) -> Self {
        Self { shells: Arc::new(shells), install, depth: 0, deadline: None }
    }

    pub(super) fn shells(&self) -> &Interpreters {
        &self.shells
    }

    /// One level down. `None`: there are too many children, or too deep ones.
    pub(super) fn nested(&self, limit: Option<Duration>) -> Option<(Self, MemoryShare)> {
        if self.depth == MAX_DEPTH {
            return None;
        }
        let limit = limit.and_then(|limit| Instant::now().checked_add(limit));
        let deadline = [self.deadline, limit].into_iter().flatten().min();
        let nested = Self { depth: self.depth + 1, deadline, ..self.clone() };
        Some((nested, self.shells.lend()?))
    }
}

/// A command to run as a child.
pub(super) struct Child {
    /// The program and its arguments.
    pub argv: Vec<String>,
    pub env: HashMap<String, String>,
    pub cwd: PathBuf,
    pub input: ChildInput,
    pub limit: Option<Duration>,
    /// The program of ours that it has not: it has the interpreter's own.
    pub without: Option<&'static str>,
    /// Changes the words of its standard error.
    pub rewording: Option<Rewording>,
    /// Set if names that the interpreter refuses are encoded for the child.
    pub encodes_names: bool,
}

/// The standard input of a child.
pub(super) enum ChildInput {
    Empty,
    Bytes(Vec<u8>),
    /// The rest that its caller has not read.
    Caller,
}

/// The end of a child.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ChildEnd {
    Exited(i32),
    TimedOut,
}

/// The rest of the standard input of the caller.
pub(super) struct CallerInput {
    pub first: Option<Vec<u8>>,
    pub rest: ProgramInput,
}

/// A child that was prepared.
pub(super) struct RunningChild {
    bash: bashkit::Bash,
    pub flag: Arc<AtomicBool>,
    args: Vec<String>,
    script: String,
    status: Arc<AtomicI32>,
    stdout: ProgramOutput,
    stderr: ProgramOutput,
    rewording: Option<Arc<Mutex<Rewording>>>,
    /// The decoders of the standard output and of the standard error.
    decoders: Option<[Mutex<NameDecoder>; 2]>,
    input: Option<Vec<u8>>,
    deadline: Option<Instant>,
    _share: MemoryShare,
}

impl RunningChild {
    pub(super) fn new(
        nested: Children,
        share: MemoryShare,
        child: Child,
        caller: Option<CallerInput>,
        [stdout, stderr]: [&ProgramOutput; 2],
    ) -> Self {
        let left = |deadline: Instant| deadline.saturating_duration_since(Instant::now());
        let timeout = nested.deadline.map_or(NO_TIMEOUT, left);
        let mut builder = nested.shells.builder(&child.cwd, child.env.iter(), share.bytes, timeout);
        builder = (nested.install)(builder, &nested.clone().into(), child.without);
        if child.encodes_names {
            builder = builder.fs(Arc::new(nested.shells.shell_files(true)));
        }
        let status = Arc::new(AtomicI32::new(-1));
        // The interpreter lets output stream where it sees the name of the program.
        let mut argv = child.argv.into_iter();
        let mut script = format!("{} \"$@\"", quoted(&argv.next().unwrap_or_default()));
        if let Some(input) = caller {
            script = format!("{PASS} | {{ {script}; {END} $?; }}");
            let stop = CancellationToken::new();
            builder = builder
                .command(PASS, PassInput { input, stop: stop.clone() })
                .command(END, KeepStatus { status: status.clone(), stop });
        }
        let input = match child.input {
            ChildInput::Bytes(bytes) => Some(bytes),
            ChildInput::Empty | ChildInput::Caller => None,
        };
        let bash = builder.build();
        let flag = bash.cancellation_token();
        nested.shells.cancels.add(&flag);
        Self {
            bash,
            flag,
            args: argv.collect(),
            script,
            status,
            stdout: stdout.clone(),
            stderr: stderr.clone(),
            rewording: child.rewording.map(|rewording| Arc::new(Mutex::new(rewording))),
            decoders: child.encodes_names.then(Default::default),
            input,
            deadline: nested.deadline,
            _share: share,
        }
    }

    /// Runs it, and returns its status.
    pub(super) async fn run(mut self) -> i32 {
        let (stdout, stderr) = (&self.stdout, &self.stderr);
        let (rewording, decoders) = (&self.rewording, &self.decoders);
        let named = |bytes: Vec<u8>, stream: usize| match decoders {
            Some(decoders) => lock(&decoders[stream]).take(&bytes),
            None => bytes,
        };
        let mut options = ExecOptions::new().positional(self.args);
        if let Some(input) = self.input {
            options = options.stdin(input);
        }
        let executing = self
            .bash
            .execute(&self.script)
            .options(options)
            .stdout_fn(|bytes| async move { stdout.write_all(&named(bytes, 0)).await })
            .stderr_fn(|bytes| async move {
                let bytes = match rewording {
                    Some(rewording) => lock(rewording).take(&bytes),
                    None => without_guess(bytes),
                };
                stderr.write_all(&named(bytes, 1)).await
            });
        let (code, text) = match executing.await {
            Ok(result) => (result.exit_code, None),
            Err(bashkit::Error::Io(_)) => (BROKEN_PIPE, None),
            Err(bashkit::Error::Cancelled) => (KILLED, None),
            Err(_) if self.deadline.is_some_and(|deadline| deadline <= Instant::now()) => (KILLED, None),
            Err(error) => {
                let (code, text) = failure(&error);
                (code, Some(text))
            }
        };
        if let Some([decoder, _]) = decoders {
            let rest = lock(decoder).finish();
            if !rest.is_empty() {
                // A closed output takes nothing more.
                let written = stdout.write_all(&rest).await;
                tracing::debug!(?written, "the last output of a child in memory");
            }
        }
        let rest = rewording.as_ref().map(|rewording| lock(rewording).finish()).unwrap_or_default();
        let rest = named(rest, 1);
        let rest =
            [rest, text.map(|text| format!("bash: {text}\n").into_bytes()).unwrap_or_default()].concat();
        if !rest.is_empty() {
            // A closed output hears nothing more.
            let written = stderr.write_all(&rest).await;
            tracing::debug!(?written, "the last words of a child in memory");
        }
        let kept = self.status.load(Ordering::Relaxed);
        if kept < 0 { code & 0xff } else { kept }
    }
}

fn lock<T>(held: &Mutex<T>) -> MutexGuard<'_, T> {
    held.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Hands on the input of the caller.
struct PassInput {
    input: CallerInput,
    stop: CancellationToken,
}

#[async_trait]
impl Command for PassInput {
    async fn execute(&self, context: CommandContext<'_>) -> bashkit::Result<CommandStatus> {
        if let Some(first) = &self.input.first {
            context.stdout.write_all(first).await?;
        }
        loop {
            let bytes = tokio::select! {
                () = self.stop.cancelled() => None,
                bytes = self.input.rest.read_chunk() => bytes?,
            };
            let Some(bytes) = bytes else { return Ok(CommandStatus::success()) };
            context.stdout.write_all(&bytes).await?;
        }
    }
}

/// Keeps the status of a child, and delays its end for no input.
struct KeepStatus {
    status: Arc<AtomicI32>,
    stop: CancellationToken,
}

#[async_trait]
impl Command for KeepStatus {
    async fn execute(&self, context: CommandContext<'_>) -> bashkit::Result<CommandStatus> {
        let status = context.args.first().and_then(|status| status.parse().ok()).unwrap_or(0);
        self.status.store(status, Ordering::Relaxed);
        self.stop.cancel();
        Ok(CommandStatus::success())
    }
}
