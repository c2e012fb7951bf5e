//! Running a command: the options, the events, and what came of it. An outcome is data: bytes untouched, streams apart,
//! no exit code ever invented.

use std::collections::BTreeMap;
use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;
use futures_util::Stream;
use tokio_util::sync::CancellationToken;

use crate::driver::{ByteStream, ExecutionControl};
use crate::error::Result;
use crate::process::{ProcessInfo, ProcessStatus};

pub use crate::command::{Command, ExitStatus, PtySize, Signal};
pub use crate::outcome::{CommandFailed, ExecResult, FlatResult, Outcome};

/// The standard input of a command.
#[derive(Default)]
pub enum Stdin {
    /// Nothing: end of file at once.
    #[default]
    Closed,
    /// These bytes, then end of file.
    Bytes(Bytes),
    /// The bytes of a stream, then end of file. An error of the stream ends the command as
    /// cancelled.
    Stream(ByteStream),
}

impl fmt::Debug for Stdin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Closed => f.write_str("Closed"),
            Self::Bytes(bytes) => write!(f, "Bytes({})", bytes.len()),
            Self::Stream(_) => f.write_str("Stream"),
        }
    }
}

/// Options for running a command. Everything has a default; nothing sticks to the sandbox.
#[derive(Debug, Default)]
pub struct ExecOptions {
    /// Working directory, resolved against the sandbox's own. `None`: exactly the sandbox's own.
    pub cwd: Option<String>,
    /// Variables layered over the sandbox's, for this call alone.
    pub env: BTreeMap<String, String>,
    /// The user who runs it, by name, number, `name:group` or `uid:gid`; `None`: the sandbox's
    /// user. A user whom the image does not name is looked up in the sandbox's own `/etc/passwd` at
    /// the time of the call, so a user made by a command (`adduser`) is found. `NotFound` if there
    /// is none; refused as `Unsupported` where the provider has no users.
    pub user: Option<String>,
    /// The standard input.
    pub stdin: Stdin,
    /// The deadline in milliseconds from the start. `None`: the spec's `limits.timeout_ms`, and without that none.
    pub timeout_ms: Option<u64>,
    /// The most bytes of each stream that are kept. `None`: the spec's `limits.max_output_bytes`,
    /// by default 1 MiB.
    pub max_output_bytes: Option<u64>,
    /// Ends the command when it is cancelled.
    pub cancel: Option<CancellationToken>,
    /// Runs the command on a terminal of this size; stdout and stderr are then one stream, stdout.
    pub pty: Option<PtySize>,
}

/// An event of a running command, in order; [`ExecEvent::End`] comes exactly once, last.
#[derive(Debug, Clone)]
pub enum ExecEvent {
    /// Bytes on standard output (or on the terminal). Not capped.
    Stdout(Bytes),
    /// Bytes on standard error. Not capped.
    Stderr(Bytes),
    /// It ended. The result's `stdout` and `stderr` hold what the cap let through.
    End(ExecResult),
}

/// The control of a running command, apart from its events. Made by [`ExecStream::control`].
#[derive(Clone)]
pub struct ExecControl {
    pub(crate) control: Arc<dyn ExecutionControl>,
    /// Cancelled: the deadline counts as passed.
    pub(crate) expired: CancellationToken,
}

impl ExecControl {
    /// Ends the command as if its deadline had passed now: the outcome is [`Outcome::TimedOut`]. For callers that keep the
    /// deadline themselves. Does nothing after the end.
    pub fn expire(&self) {
        self.expired.cancel();
    }

    /// Sends a signal to the command's own process group (its terminal's foreground group if it has one).
    pub async fn signal(&self, signal: Signal) -> Result<()> {
        self.control.signal(signal.check()?).await
    }

    /// Changes the size of the command's terminal.
    pub async fn resize(&self, size: PtySize) -> Result<()> {
        self.control.resize(size).await
    }
}

/// A running command's events. Dropping it before the end kills the command's process tree.
pub struct ExecStream {
    pub(crate) events: Pin<Box<dyn Stream<Item = Result<ExecEvent>> + Send>>,
    pub(crate) control: ExecControl,
}

impl ExecStream {
    /// Returns the control, for a caller that does not take the events.
    pub fn control(&self) -> ExecControl {
        self.control.clone()
    }

    /// Sends a signal to the command's own process group (its terminal's foreground group if it has one).
    // The futures hold the control alone: a borrow of the stream, which is not `Sync`, would not be `Send`.
    pub fn signal(&self, signal: Signal) -> impl Future<Output = Result<()>> + Send + use<> {
        let control = self.control.clone();
        async move { control.signal(signal).await }
    }

    /// Changes the size of the command's terminal.
    pub fn resize(&self, size: PtySize) -> impl Future<Output = Result<()>> + Send + use<> {
        let control = self.control.clone();
        async move { control.resize(size).await }
    }

    /// The next event, or `None` after the end.
    pub async fn next(&mut self) -> Option<Result<ExecEvent>> {
        futures_util::StreamExt::next(&mut self.events).await
    }
}

impl Stream for ExecStream {
    type Item = Result<ExecEvent>;
    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.events.as_mut().poll_next(context)
    }
}

impl ProcessInfo {
    /// Returns the outcome of a process that has ended.
    pub fn outcome(&self) -> Option<Outcome> {
        match self.status {
            ProcessStatus::Running => None,
            ProcessStatus::Ended(_) if self.timed_out => Some(Outcome::TimedOut),
            ProcessStatus::Ended(status) => Some(Outcome::from(status)),
        }
    }
}
