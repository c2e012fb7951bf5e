//! The interface that a backend implements per sandbox: about a dozen required methods, and
//! optional ones that refuse by default.
//!
//! A driver maps its backend and stops. It gets absolute, normalised paths, never makes parent directories by itself,
//! has no deadlines, caps nothing and invents nothing: all of that is [`crate::Sandbox`]'s.

use std::collections::BTreeMap;
use std::fmt;

use async_trait::async_trait;
use bytes::Bytes;
use eyot_egress::{EgressDecision, EgressRules};
use futures_util::stream::BoxStream;
use tokio::io::{AsyncRead, AsyncWrite};

use crate::capabilities::Capabilities;
use crate::command::{Command, ExitStatus, PtySize, Signal};
use crate::error::{Result, SandboxOperationUnsupported};
use crate::files::{
    ByteRange, CreateDirOptions, DirEntry, FileStat, RemoveOptions, TarInOptions, WriteOptions,
};
use crate::isolation::Isolation;
use crate::kept::{KeptControl, KeptEvent, KeptInfo};
use crate::path::{ConfinedPath, SandboxPath};
use crate::process::{LiveProcesses, Log, LogQuery, ProcessId, ProcessInfo, StartTerms, Usage};
use crate::published::PublishedPort;
use crate::search::{GlobOptions, GlobResult, GrepOptions, GrepResult};
use crate::spec::Lifecycle;
use crate::watch::{WatchEvent, WatchOptions};

/// Bytes that arrive piece by piece. Dropping it ends the operation behind it.
pub type ByteStream = BoxStream<'static, Result<Bytes>>;

/// A connection to a port inside a sandbox.
pub trait TcpStream: AsyncRead + AsyncWrite + Send + Unpin {}
impl<T: AsyncRead + AsyncWrite + Send + Unpin> TcpStream for T {}

/// A command as a driver is asked to run it.
#[derive(Debug, Clone)]
pub struct ExecRequest {
    /// The command to run; already validated.
    pub command: Command,
    /// The working directory.
    pub cwd: ConfinedPath,
    /// Variables to layer over the backend's own basic ones (`PATH`, `HOME`, …).
    pub env: BTreeMap<String, String>,
    /// The user who runs it; `None`: the sandbox's user.
    pub user: Option<String>,
    /// `true` if [`Execution::input`] is wanted; without it the command reads end of file at once.
    pub stdin: bool,
    /// Run it on a terminal of this size.
    pub pty: Option<PtySize>,
}

/// An event of a running command. [`ExecutionEvent::Exit`] comes exactly once, last: after the
/// command's own process has ended and everything that it wrote was delivered.
///
/// A process that it left behind may hold its output open. Then the driver reads on until the output was silent for
/// 5 ms, and at most for 50 ms: `>(tee log)` still gets its last line out, and `sleep 60 &` delays almost nothing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ExecutionEvent {
    /// Bytes on standard output.
    Stdout(Bytes),
    /// Bytes on standard error.
    Stderr(Bytes),
    /// The command's own process ended.
    Exit {
        /// The status that it ended with.
        status: ExitStatus,
        /// Something that it left behind still held its output open when the driver stopped reading.
        output_open: bool,
    },
}

/// A running command. Dropping `events` before the exit kills the command's whole process tree.
pub struct Execution {
    /// The events. Not reading it stops the command's writing, and nothing else.
    pub events: BoxStream<'static, Result<ExecutionEvent>>,
    /// The standard input, if it was asked for.
    pub input: Option<Box<dyn ExecutionInput>>,
    /// The control.
    pub control: std::sync::Arc<dyn ExecutionControl>,
}

/// A running command's standard input. Dropping it is end of file.
#[async_trait]
pub trait ExecutionInput: Send {
    /// Writes all of it; waits while the command does not read. An error means that the input is
    /// closed.
    async fn write(&mut self, bytes: Bytes) -> Result<()>;
}

/// A running command's control.
#[async_trait]
pub trait ExecutionControl: Send + Sync {
    /// Kills the command and every descendant, and returns once the backend has taken the order; the exit event follows
    /// when the tree is dead. A backend that does not take the order within [`crate::ANSWER_MS`] counts as one that does
    /// not answer. Killing what has ended is fine.
    async fn kill(&self) -> Result<()>;

    /// Kills the command, as [`ExecutionControl::kill`] does, because its deadline has passed. A backend that records why
    /// commands end is told so.
    async fn expire(&self) -> Result<()> {
        self.kill().await
    }

    /// Sends a signal to the command's process group (its terminal's foreground group if it has one).
    async fn signal(&self, signal: Signal) -> Result<()>;

    /// Changes the size of its terminal.
    async fn resize(&self, size: PtySize) -> Result<()>;
}

/// A command as a driver is asked to keep it.
#[derive(Debug, Clone)]
pub struct KeepRequest {
    /// The command; already validated. Its `stdin` says whether it has any.
    pub exec: ExecRequest,
    /// The standard input, then end of file (but on a terminal). If not all of it can be given, the command is killed.
    pub stdin: Bytes,
    /// The deadline in milliseconds from the start, which the backend keeps.
    pub timeout_ms: Option<u64>,
    /// It is ended and forgotten after this many milliseconds in which nobody was attached.
    pub linger_ms: u64,
}

/// A client's hold of a kept command. Dropping it leaves the command running.
pub struct KeptAttachment {
    /// The facts, as of the time at which it began.
    pub info: KeptInfo,
    /// The output from where it was asked for, then the end. They stop without an end when another client attaches, or the
    /// command is forgotten.
    pub events: BoxStream<'static, Result<KeptEvent>>,
    /// The keyboard of a terminal. Dropping it is no end of file.
    pub input: Option<Box<dyn ExecutionInput>>,
}

impl fmt::Debug for KeptAttachment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("KeptAttachment").field("info", &self.info).finish_non_exhaustive()
    }
}

/// One live sandbox of a backend.
///
/// An error's sentence is the reason alone ("is a directory"): the handle begins it with what was to be done, to what,
/// and in which sandbox.
#[async_trait]
#[doc(alias = "SandboxApi")]
pub trait SandboxDriver: Send + Sync + 'static {
    /// The provider's name, such as `native`.
    fn provider(&self) -> &str;

    /// Returns what this sandbox can do.
    fn capabilities(&self) -> &Capabilities;

    /// Returns the protections that are really in force around this sandbox.
    fn isolation(&self) -> &Isolation;

    /// Returns whether its backend is connected, as far as is known without asking it.
    fn is_connected(&self) -> bool {
        true
    }

    /// Reads a regular file, following symbolic links. `not_found`, `is_directory`; `invalid` for a FIFO, a socket
    /// or a device, promptly.
    async fn read(&self, file: &ConfinedPath, range: ByteRange) -> Result<ByteStream>;

    /// Writes a file and says how large it is then. A missing parent directory is `not_found`; it is not made. If
    /// `content` fails, nothing is changed (an append keeps what came before).
    async fn write(&self, file: &ConfinedPath, content: ByteStream, options: WriteOptions) -> Result<u64>;

    /// Says what is known of a file; see [`FileStat`] about symbolic links.
    async fn stat(&self, file: &ConfinedPath) -> Result<FileStat>;

    /// Lists a directory in its own order, without `.` and `..`. The handle sorts.
    async fn list(&self, directory: &ConfinedPath) -> Result<Vec<DirEntry>>;

    /// Returns whether something is there; a dangling link is not. Missing or beneath a file is
    /// `false`, not an error.
    async fn exists(&self, file: &ConfinedPath) -> Result<bool>;

    /// Makes a directory.
    async fn create_dir(&self, directory: &ConfinedPath, options: CreateDirOptions) -> Result<()>;

    /// Removes a file, a symbolic link (not its target) or a directory.
    async fn remove(&self, file: &ConfinedPath, options: RemoveOptions) -> Result<()>;

    /// Moves a file or a directory, replacing a file (or an empty directory) that is in the way.
    async fn rename(&self, from: &ConfinedPath, to: &ConfinedPath) -> Result<()>;

    /// Starts a command. A missing program or working directory is `not_found`, one that may not be run `permission`.
    async fn exec(&self, request: ExecRequest) -> Result<Execution>;

    /// Destroys the sandbox: processes, mounts, files. Twice is fine.
    async fn destroy(&self) -> Result<()>;

    /// Undoes a create whose manifest or observer failed: as `destroy`, but what was there before the create (a
    /// persistent workspace) stays.
    async fn abandon(&self) -> Result<()> {
        self.destroy().await
    }

    /// The working directory that commands start in and relative paths are resolved against.
    fn workdir(&self) -> &SandboxPath;

    // The methods below are optional; each is refused unless the driver has it.

    /// Files whose path matches a pattern.
    async fn glob(&self, options: &GlobOptions) -> Result<GlobResult> {
        let GlobOptions { .. } = options;
        Err(unsupported(self.provider(), "glob"))
    }

    /// Lines that match a pattern.
    async fn grep(&self, options: &GrepOptions) -> Result<GrepResult> {
        let GrepOptions { .. } = options;
        Err(unsupported(self.provider(), "grep"))
    }

    /// A file or a tree as a tar stream; entry names begin with the last segment of the path.
    async fn tar_out(&self, root: &ConfinedPath) -> Result<ByteStream> {
        let ConfinedPath { .. } = root;
        Err(unsupported(self.provider(), "tar_out"))
    }

    /// Unpacks a tar stream below a directory that exists, and says how many entries were made. Nothing is written
    /// outside of it, and no link is followed; devices and hard links that lead out are refused, setuid bits dropped.
    /// Symbolic links are made wherever they lead, unless the place is held beneath a directory: then one that leads
    /// out of the place is refused.
    async fn tar_in(&self, directory: &ConfinedPath, tar: ByteStream, options: TarInOptions) -> Result<u64> {
        let (ConfinedPath { .. }, TarInOptions { .. }) = (directory, options);
        drop(tar);
        Err(unsupported(self.provider(), "tar_in"))
    }

    /// Reports what happens at a path from now on; see [`WatchEvent`] about paths. Nothing is lost
    /// in silence.
    async fn watch(
        &self,
        place: &ConfinedPath,
        options: WatchOptions,
    ) -> Result<BoxStream<'static, Result<WatchEvent>>> {
        let (ConfinedPath { .. }, WatchOptions { .. }) = (place, options);
        Err(unsupported(self.provider(), "watch"))
    }

    /// Connects to a TCP port on the sandbox's own loopback.
    async fn dial(&self, port: u16) -> Result<Box<dyn TcpStream>> {
        let _: u16 = port;
        Err(unsupported(self.provider(), "dial"))
    }

    /// The ports that the spec's `container.ports` asks to be published, in that order, and where each is.
    async fn published_ports(&self) -> Result<Vec<PublishedPort>> {
        Err(unsupported(self.provider(), "published_ports"))
    }

    /// Measures what the sandbox uses now.
    async fn usage(&self) -> Result<Usage> {
        Err(unsupported(self.provider(), "usage"))
    }

    /// Everything that runs now, the guest left out.
    async fn live_processes(&self) -> Result<LiveProcesses> {
        Err(unsupported(self.provider(), "live_processes"))
    }

    /// Starts a process that outlives the call; its output is kept in a ring.
    async fn start(&self, request: ExecRequest, terms: StartTerms) -> Result<ProcessInfo> {
        drop((request, terms));
        Err(unsupported(self.provider(), "start"))
    }

    /// Writes to a started process whose input follows, at most [`crate::MAX_STDIN_BYTES`]; `ends`: end of file comes
    /// behind it. `conflict`: it takes no more, or has not read what it got.
    async fn write_stdin(&self, process: ProcessId, data: Bytes, ends: bool) -> Result<()> {
        drop((process, data, ends));
        Err(unsupported(self.provider(), "write_stdin"))
    }

    /// Every started process that is still known, oldest first. The last 64 that ended are.
    async fn processes(&self) -> Result<Vec<ProcessInfo>> {
        Err(unsupported(self.provider(), "processes"))
    }

    /// Waits until a started process has ended.
    async fn wait(&self, process: ProcessId) -> Result<ProcessInfo> {
        let ProcessId(_) = process;
        Err(unsupported(self.provider(), "wait"))
    }

    /// Waits for the end as an observer. This does not count as activity: the sandbox may fall
    /// asleep meanwhile.
    async fn observe_end(&self, process: ProcessId) -> Result<ProcessInfo> {
        self.wait(process).await
    }

    /// A started process's log. At most one of `tail_bytes` and `tail_lines` is there; `limit_bytes` is the handle's.
    async fn logs(&self, process: ProcessId, query: LogQuery) -> Result<Log> {
        let (ProcessId(_), LogQuery { .. }) = (process, query);
        Err(unsupported(self.provider(), "logs"))
    }

    /// Sends a signal to a started process's group; `None` kills its whole tree, and returns when nothing of it is left.
    async fn kill(&self, process: ProcessId, signal: Option<Signal>) -> Result<()> {
        let (ProcessId(_), _) = (process, signal);
        Err(unsupported(self.provider(), "kill"))
    }

    /// Runs a command that outlives the call and attaches to it. `quota`: 64 of its kind are kept already.
    async fn keep(&self, request: KeepRequest) -> Result<KeptAttachment> {
        drop(request);
        Err(unsupported(self.provider(), "keep"))
    }

    /// Attaches to a kept command: its output from a position on, or from the first that is kept. A client that was attached
    /// before is so no more.
    async fn attach(&self, id: &str, from: Option<u64>) -> Result<KeptAttachment> {
        let (_, _): (&str, Option<u64>) = (id, from);
        Err(unsupported(self.provider(), "attach"))
    }

    /// Every kept command on a terminal, and the others if the backend lists them; oldest first. No activity.
    async fn kept_commands(&self) -> Result<Vec<KeptInfo>> {
        Err(unsupported(self.provider(), "kept_commands"))
    }

    /// Waits for the end of a kept command. No activity.
    async fn kept_end(&self, id: &str) -> Result<KeptInfo> {
        let _: &str = id;
        Err(unsupported(self.provider(), "kept_end"))
    }

    /// Kills, signals, resizes or forgets a kept command, and returns once the backend has taken the order.
    async fn control_kept(&self, id: &str, control: KeptControl) -> Result<()> {
        let (_, _): (&str, KeptControl) = (id, control);
        Err(unsupported(self.provider(), "control_kept"))
    }

    /// The rules of the network `egress` that hold now.
    async fn egress_rules(&self) -> Result<EgressRules> {
        Err(unsupported(self.provider(), "egress_rules"))
    }

    /// Replaces the deadlines and what happens when it is idle, for every handle on the sandbox.
    /// The ttl counts from the create, the idle timeout from now.
    async fn set_lifecycle(&self, lifecycle: &Lifecycle) -> Result<()> {
        let Lifecycle { .. } = lifecycle;
        Err(unsupported(self.provider(), "set_lifecycle"))
    }

    /// Replaces the rules of the network `egress`, for every handle on the sandbox. When this
    /// returns they hold for what is connected to from now on; what they do not allow is being
    /// closed.
    async fn set_egress_rules(&self, rules: &EgressRules) -> Result<()> {
        let EgressRules { .. } = rules;
        Err(unsupported(self.provider(), "set_egress_rules"))
    }

    /// Streams the decisions about attempts to leave, oldest first: the `last` of those that are
    /// remembered (1,000 at most), and with `follow` what comes, until the stream is dropped or the
    /// sandbox ends.
    async fn egress_decisions(
        &self,
        last: usize,
        follow: bool,
    ) -> Result<BoxStream<'static, Result<EgressDecision>>> {
        let (_, _): (usize, bool) = (last, follow);
        Err(unsupported(self.provider(), "egress_decisions"))
    }
}

fn unsupported(provider: &str, operation: &str) -> crate::error::Error {
    SandboxOperationUnsupported::new(operation, provider, &[]).into()
}
