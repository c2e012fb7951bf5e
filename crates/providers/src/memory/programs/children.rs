//! Commands that programs of ours start: each runs in an interpreter of its own, as a child process
//! would, over the same files. It ends with the program that started it.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicI32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use bashkit::{Command, CommandContext, CommandStatus, ExecOptions};
use futures_util::FutureExt;
use tokio::task::JoinSet;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::command_names::CommandNames;
use super::rewording::Rewording;
use super::run::{Ending, ProgramRun};
use super::streams::{ProgramInput, ProgramOutput};
use crate::memory::interpreters::{Interpreters, MemoryShare, NO_TIMEOUT};
use crate::memory::job::{failure, quoted};

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

/// What a program needs to start children.
#[derive(Clone)]
pub(in crate::memory) struct Children {
    shells: Arc<Interpreters>,
    names: Arc<OnceLock<CommandNames>>,
    depth: usize,
    deadline: Option<Instant>,
}

impl Children {
    /// The children of a command itself.
    pub(in crate::memory) fn of_command(shells: Interpreters) -> Self {
        Self { shells: Arc::new(shells), names: Arc::default(), depth: 0, deadline: None }
    }

    pub(super) fn shells(&self) -> &Interpreters {
        &self.shells
    }

    /// The names of the programs that a child may be.
    pub(super) fn names(&self) -> &CommandNames {
        self.names.get_or_init(|| {
            let builtin = (self.shells.factory)().build().builtin_names().into_iter();
            CommandNames::new(builtin.chain(super::names_of_ours().map(str::to_owned)))
        })
    }

    /// One level down. `None`: there are too many children, or too deep ones.
    fn nested(&self, limit: Option<Duration>) -> Option<(Self, MemoryShare)> {
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
}

/// The standard input of a child.
pub(super) enum ChildInput {
    Empty,
    Bytes(Vec<u8>),
    /// What its caller has not read.
    Caller,
}

/// The end of a child.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ChildEnd {
    Exited(i32),
    TimedOut,
}

impl ProgramRun<'_> {
    /// A child of this program, in the same place.
    pub(super) fn child(&self, argv: Vec<String>, input: ChildInput) -> Child {
        let (env, cwd) = (self.env.clone(), self.cwd.to_owned());
        Child { argv, env, cwd, input, limit: None, without: None, rewording: None }
    }

    /// Runs a child to its end. Its output is passed on as it comes.
    ///
    /// # Errors
    /// There are too many children, or the shell ends this program.
    pub(super) async fn run_child(&self, child: Child) -> Result<ChildEnd, Ending> {
        let too_many = || Ending::refused("fork system call failed: Resource temporarily unavailable");
        let (nested, share) = self.children.nested(child.limit).ok_or_else(too_many)?;
        let caller = match child.input {
            ChildInput::Caller => input_of(&self.stdin).await?,
            _ => None,
        };
        let deadline = child.limit.and(nested.deadline);
        let running = RunningChild::new(nested, share, child, caller, [&self.stdout, &self.stderr]);
        let _flag = SetOnDrop(running.flag.clone());
        // A task has a stack of its own, however deep its caller is. It ends when this is dropped.
        let mut tasks = JoinSet::new();
        tasks.spawn(running.run());
        let late = tokio::time::sleep_until(deadline.unwrap_or_else(Instant::now));
        let ended = tokio::select! {
            ended = tasks.join_next() => ended,
            () = late, if deadline.is_some() => return Ok(ChildEnd::TimedOut),
        };
        if deadline.is_some_and(|deadline| deadline <= Instant::now()) {
            return Ok(ChildEnd::TimedOut);
        }
        match ended {
            Some(Ok(status)) => Ok(ChildEnd::Exited(status)),
            _ => Err(Ending::refused("a child failed unexpectedly")),
        }
    }
}

/// The rest of a standard input. `None`: nothing is there to be read.
async fn input_of(input: &ProgramInput) -> Result<Option<Input>, Ending> {
    match input.read_chunk().now_or_never().transpose()? {
        Some(None) => Ok(None),
        Some(first) => Ok(Some(Input { first, rest: input.clone() })),
        None => Ok(Some(Input { first: None, rest: input.clone() })),
    }
}

struct Input {
    first: Option<Vec<u8>>,
    rest: ProgramInput,
}

/// Sets the flag that ends an interpreter once nobody waits for it.
struct SetOnDrop(Arc<AtomicBool>);

impl Drop for SetOnDrop {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// A child that was prepared.
struct RunningChild {
    bash: bashkit::Bash,
    flag: Arc<AtomicBool>,
    args: Vec<String>,
    script: String,
    status: Arc<AtomicI32>,
    stdout: ProgramOutput,
    stderr: ProgramOutput,
    rewording: Option<Arc<Mutex<Rewording>>>,
    input: Option<Vec<u8>>,
    deadline: Option<Instant>,
    _share: MemoryShare,
}

impl RunningChild {
    fn new(
        nested: Children,
        share: MemoryShare,
        child: Child,
        caller: Option<Input>,
        [stdout, stderr]: [&ProgramOutput; 2],
    ) -> Self {
        let left = |deadline: Instant| deadline.saturating_duration_since(Instant::now());
        let timeout = nested.deadline.map_or(NO_TIMEOUT, left);
        let mut builder = nested.shells.builder(&child.cwd, child.env.iter(), share.bytes, timeout);
        builder = super::install(builder, &nested, child.without);
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
            input,
            deadline: nested.deadline,
            _share: share,
        }
    }

    /// Runs it, and returns its status.
    async fn run(mut self) -> i32 {
        let (stdout, stderr) = (&self.stdout, &self.stderr);
        let rewording = &self.rewording;
        let mut options = ExecOptions::new().positional(self.args);
        if let Some(input) = self.input {
            options = options.stdin(input);
        }
        let executing = self
            .bash
            .execute(&self.script)
            .options(options)
            .stdout_fn(|bytes| async move { stdout.write_all(&bytes).await })
            .stderr_fn(|bytes| async move {
                let bytes = match rewording {
                    Some(rewording) => lock(rewording).take(&bytes),
                    None => bytes,
                };
                stderr.write_all(&bytes).await
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
        let rest = rewording.as_ref().map(|rewording| lock(rewording).finish()).unwrap_or_default();
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

fn lock(rewording: &Mutex<Rewording>) -> MutexGuard<'_, Rewording> {
    rewording.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Hands on the input of the caller.
struct PassInput {
    input: Input,
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
