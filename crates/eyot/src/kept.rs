//! Kept commands: they outlive the call, the connection and the process that asked for them, with their output, for a while.
//!
//! A client attaches to one, reads its output from where it stopped reading, and may leave again. One that nobody reads for
//! too long is ended and forgotten.

use std::collections::BTreeMap;

use bytes::Bytes;

use crate::command::{PtySize, Signal};
use crate::outcome::ExecResult;
use crate::process::LogStream;

/// Options for keeping a command.
#[derive(Debug, Clone, Default)]
pub struct KeepOptions {
    /// Working directory, resolved against the sandbox's own.
    pub cwd: Option<String>,
    /// Variables layered over the sandbox's.
    pub env: BTreeMap<String, String>,
    /// The user who runs it.
    pub user: Option<String>,
    /// The whole standard input. A command on a terminal gets it typed, and gets more by its [`crate::KeptAttachment`].
    pub stdin: Bytes,
    /// The deadline in milliseconds from the start. `None`: the spec's `limits.timeout_ms`, and without that none.
    pub timeout_ms: Option<u64>,
    /// Runs the command on a terminal of this size.
    pub pty: Option<PtySize>,
    /// It is ended and forgotten after this many milliseconds in which nobody was attached.
    pub linger_ms: u64,
}

/// The facts about a kept command.
///
/// The output of a command on a terminal has a position for each byte, from 0 on, and the last 256 KiB are kept. Other output
/// has one for each piece as it was written, from 1 on; 1 MiB of what was read is kept, and all that was not: a command that
/// is 1 MiB ahead of its reader waits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeptInfo {
    /// The id, never used twice.
    pub id: String,
    /// The command, as text, perhaps cut.
    pub command: String,
    /// It runs on a terminal.
    pub is_terminal: bool,
    /// The time of its start, in milliseconds since 1970 (UTC).
    pub started_ms: i64,
    /// The time since its start, in milliseconds.
    pub age_ms: u64,
    /// A client is attached to it.
    pub is_attached: bool,
    /// The deadline that it has, in milliseconds from its start.
    pub timeout_ms: Option<u64>,
    /// The position of the first output that is kept.
    pub first: u64,
    /// The position of the output that comes next.
    pub next: u64,
    /// The result, without output, once it has ended.
    pub result: Option<ExecResult>,
}

/// A part of the output of a kept command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeptPiece {
    /// The stream it was written to; a terminal's is standard output.
    pub stream: LogStream,
    /// The position.
    pub start: u64,
    /// The position of what follows.
    pub end: u64,
    /// The bytes.
    pub data: Bytes,
}

/// An event of a kept command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum KeptEvent {
    /// Output.
    Output(KeptPiece),
    /// The end, with the result. Nothing follows.
    End(Box<ExecResult>),
}

/// A change to a kept command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KeptControl {
    /// Kills it with its whole tree; the outcome is [`crate::Outcome::Cancelled`]. One that has ended is fine.
    Kill,
    /// Sends its process group (its terminal's foreground group) a signal.
    Signal(Signal),
    /// Gives its terminal this size.
    Resize(PtySize),
    /// Kills it if it runs, and forgets it.
    Forget,
}
